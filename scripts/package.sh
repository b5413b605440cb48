#!/usr/bin/env bash
# Makes the packages of all library crates: scripts/package.sh [check]
#
# Without an argument the packages are made and listed, which takes seconds. `check` also builds each package from nothing but its files.
# Not packaged: the command, the programs that measure, the libraries for programs on seats, and the fuzz targets and model checks, whose sources stand in other crates.
set -euo pipefail
cd "$(dirname "$0")/.."

left_out=(rackloom-cli rackloom-bench rackloom-fuzz rackloom-models rackloom-ibverbs rackloom-device-files)
case "${1:-}" in
'') verify=--no-verify ;;
check) verify= ;;
*)
    echo 'usage: scripts/package.sh [check]' >&2
    exit 2
    ;;
esac

# Uncommitted changes are packaged as well: a developer checks before committing.
# shellcheck disable=SC2086
cargo package --workspace "${left_out[@]/#/--exclude=}" --locked --allow-dirty $verify
