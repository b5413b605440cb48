#!/usr/bin/env bash
# Drive a live rack from a shell: bring it up, take a link away for a moment, and assert on its events.
#
#     RACKLOOM=target/debug/rackloom scripts/live-rack.sh
#
# Faults are injected with `rackloom inject`; the state of the rack is read with `rackloom status --json`. scripts/live_rack.py does the
# same over the control socket itself, and receives each event at once.
set -euo pipefail
rackloom=${RACKLOOM:-rackloom}
name=live-rack-sh-$$

fail() { echo "live-rack: $1" >&2; exit 1; }
# Ask until the rack has so many links, for at most ten seconds.
await_links() {
    for _ in $(seq 200); do
        [ "$("$rackloom" status "$name" --json | grep -c "\"links_up\": $1,\$")" -gt 0 ] && return 0
        sleep 0.05
    done
    fail "the rack never had $1 links up"
}

"$rackloom" up topologies/ring-4.yaml --name "$name" > /dev/null
trap '"$rackloom" down "$name" > /dev/null 2>&1 || true' EXIT
await_links 4
"$rackloom" inject link n0--n1 --unplug --for 2s --rack "$name"
await_links 3
await_links 4
"$rackloom" inject link n0--n9 --down --rack "$name" 2> /dev/null && fail "a link that does not exist was taken"
echo "one link went and came back: as it should be"
