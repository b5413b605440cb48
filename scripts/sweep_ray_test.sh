#!/bin/sh
# Runs a sweep as tasks of a local Ray from PyPI, and compares its results with those of this machine's processes. It needs a network, so it is no
# step of CI.
#
#     scripts/sweep_ray_test.sh [PATH OF RACKLOOM]
set -eu
cd "$(dirname "$0")/.."
program=$(realpath "${1:-target/release/rackloom}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet ray
export PATH="$work/venv/bin:$PATH" RAY_USAGE_STATS_ENABLED=0
grid="topologies/star-4.yaml --collective all-reduce --bytes 16KiB --repetitions 5 --set link.loss=0,1% --set planes=1,2 --seeds 1..2"
# The words of the grid are options.
# shellcheck disable=SC2086
"$program" sweep $grid --out "$work/local" > "$work/local.txt"
# shellcheck disable=SC2086
"$program" sweep $grid --out "$work/ray" --engine ray --jobs 2 > "$work/ray.txt"
cmp "$work/local/results.csv" "$work/ray/results.csv"
echo "a sweep of Ray has the results of this machine: $(head -n 1 "$work/ray.txt")"
