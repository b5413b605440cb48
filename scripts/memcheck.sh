#!/usr/bin/env bash
# Runs library suites under valgrind's memcheck: scripts/memcheck.sh [SUITE...]
#
# Memcheck finds reads of undefined memory, accesses outside of allocations and lost memory, in unsafe code and in what is below it. It makes
# programs some thirty times slower, so suites that wait for real time, start processes, or do much arithmetic are left out; the table below
# says which tests of each suite run. A machine without valgrind gets it from its package manager.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

if ! command -v valgrind >/dev/null; then
    { as_root apt-get update -qq && as_root apt-get install -y -qq valgrind; } || {
        echo 'SKIPPED (1): valgrind cannot be installed; memcheck is not run'
        exit 0
    }
fi

# Each line: package, its folder, then filters of the library's unit tests. No filter runs all of them.
suites() {
    cat <<'LIST'
rackloom-capture capture
rackloom-plan plan trace:: quantity::
rackloom-jobs jobs arrays::
rackloom node wires::ring_tests::a_ wires::doorbell wires::kinds::shared_memory seal::window::
LIST
}

# One build with the features that the tests of the workspace have, so that nothing is built again behind them.
built=$(cargo test --locked --workspace --lib --no-run --message-format=json 2>/dev/null </dev/null)

program_of() { # PACKAGE FOLDER
    grep -E '"manifest_path":"[^"]*/crates/[^"]*".*"profile":\{[^}]*"test":true' <<<"$built" |
        grep -E "\"package_id\":\"[^\"]*(/$2#|#$1@)" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

status=0
while read -r package folder filters; do
    [ $# -eq 0 ] || [[ " $* " == *" $package "* ]] || continue
    echo "==> memcheck $package $filters"
    program=$(program_of "$package" "$folder")
    [ -n "$program" ] || { echo "the suite of $package cannot be built" >&2; exit 1; }
    # A filter that finds no test is a mistake of the list above.
    for filter in $filters; do
        found=$("$program" --list "$filter" </dev/null | grep -c ': test$' || true)
        [ "$found" -gt 0 ] || { echo "$package has no test $filter" >&2; exit 1; }
    done
    # Properties run a few cases: each of them takes as long as thirty.
    # shellcheck disable=SC2086
    (cd "crates/$folder" && PROPTEST_CASES=4 RUST_BACKTRACE=0 \
        timeout 240 valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        --num-callers=20 "$program" --test-threads=1 $filters </dev/null) || { echo "memcheck of $package: status $?" >&2; status=1; }
done < <(suites)
exit "$status"
