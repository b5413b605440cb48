#!/usr/bin/env bash
# Runs fuzz targets for longer than the tests do: scripts/fuzz.sh TARGET|all [SECONDS]
#
# Without SECONDS a single target runs until it fails or is interrupted; `all` takes 60 seconds per target. RACKLOOM_FUZZ_SEED is drawn anew
# unless it is set. The script works with stable Rust.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each target: its name, the package, what selects the tests of the package, and the name of the test.
targets() {
    cat <<'LIST'
arrays rackloom-fuzz --test=targets headers_of_arrays_are_read_and_written_alike
captures rackloom-fuzz --test=targets captures_are_read_alike_in_any_pieces
faults rackloom-fuzz --test=targets fault_scripts_become_events_or_mistakes
frames rackloom-fuzz --test=targets frames_are_read_and_written_alike
operations rackloom-fuzz --test=targets operations_are_read_and_written_alike
racks rackloom-fuzz --test=targets rack_files_become_plans_or_mistakes
traces rackloom-fuzz --test=targets traces_are_read_and_written_alike
workloads rackloom-fuzz --test=targets workloads_are_read_and_written_alike
chakra rackloom-fuzz --test=targets traces_of_chakra_become_workloads_or_mistakes
connections rackloom-fuzz --test=targets connection_matrices_become_workloads_or_mistakes
fat-trees rackloom-fuzz --test=targets fat_trees_become_racks_or_mistakes
goal rackloom-fuzz --test=targets goal_texts_become_workloads_or_mistakes
nccl-log rackloom-fuzz --test=targets logs_of_nccl_become_workloads_or_mistakes
nccl-topology rackloom-fuzz --test=targets topologies_of_nccl_become_racks_or_mistakes
control rackloom-runtime --lib requests_and_answers_survive_a_write_and_a_read
seats rackloom-runtime --lib orders_and_notices_survive_a_write_and_a_read
lines rackloom-runtime --lib lines_are_bounded_and_equal_in_any_pieces
hosts rackloom-runtime --lib messages_of_hosts_survive_a_write_and_a_read
fabric rackloom-protocol --test=fuzz corrupted_frames_change_nothing_and_forged_frames_cause_no_panic
LIST
}

usage() {
    echo "usage: scripts/fuzz.sh TARGET|all [SECONDS]; targets: $(targets | cut -d ' ' -f 1 | paste -s -d ' ')" >&2
    exit 2
}

[ $# -ge 1 ] && [ $# -le 2 ] || usage
wanted=$1
if [ "$wanted" = all ]; then seconds=${2:-60}; else seconds=${2:-4000000000}; fi
export RACKLOOM_FUZZ_SECONDS=$seconds
export RACKLOOM_FUZZ_SEED=${RACKLOOM_FUZZ_SEED:-$(($(date +%s%N) | 1))}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
count=0
while read -r name package tests test; do
    [ "$wanted" = all ] || [ "$wanted" = "$name" ] || continue
    count=$((count + 1))
    echo "==> $name"
    # No backtrace: the harness prints the position. A test that is not found under its name is a failure too.
    RUST_BACKTRACE=0 cargo test --locked --package "$package" "$tests" "$test" 2>&1 </dev/null | tee "$log"
    grep -q '^running 1 test' "$log" || { echo "the target $name has no test $test" >&2; exit 1; }
done < <(targets)
[ "$count" -gt 0 ] || usage
