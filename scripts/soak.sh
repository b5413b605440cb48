#!/usr/bin/env bash
# Random faults on real processes for some minutes: one random run after the other, each with an expectation, with a count of what is
# left behind.
#
#   scripts/soak.sh [MINUTES] [WIRE]        10 minutes on shared memory, by default
#
# Each round takes a rack, a job and a fault script by the round's number, so a round that fails can be repeated by its line. A round
# must end right or with a clean error (exit code 0), within its time limit. After every round no process of it may be left. Beside the
# rounds another rack works all the time under faults that come again and again; what its processes hold, in descriptors and in memory, is
# read early and late. RACKLOOM names the program.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:-10}
wire=${2:-shared-memory}
rackloom=${RACKLOOM:-target/release/rackloom}
first=${FIRST:-1}
work=$(mktemp -d)
trap 'left_behind | xargs -r kill; rm -rf "$work"' EXIT

say() { printf '%s\n' "$*"; }
fail() { say "soak: FAILED: $*"; exit 1; }

[ -x "$rackloom" ] || fail "there is no program $rackloom; hint: cargo build --release, or set RACKLOOM"

# Of the kernel's accounts: bytes in shared memory and memfds, and files open on the whole machine.
shmem_kb() { awk '/^Shmem:/ {print $2}' /proc/meminfo; }
files_open() { awk '{print $1}' /proc/sys/fs/file-nr; }
# Our own processes only: those whose environment carries this run's mark.
marked() { grep -lsz "^RACKLOOM_SOAK=$work$1\$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | grep -vx "$$" || true; }
left_behind() { marked ""; }
# Of all processes of the rack that works all the time: how many, descriptors, kB of private memory.
held() {
    local pid pids=0 files=0 kb=0
    for pid in $(marked -steady); do
        [ -r "/proc/$pid/smaps_rollup" ] || continue
        pids=$((pids + 1)) files=$((files + $(ls "/proc/$pid/fd" | wc -l)))
        kb=$((kb + $(awk '/^Private_Dirty:/ {print $2}' "/proc/$pid/smaps_rollup")))
    done
    say "$pids $files $kb"
}

racks=(topologies/ring-4.yaml topologies/full-mesh-4.yaml topologies/star-4.yaml)
jobs=("--collective all-reduce --bytes 256KiB --repetitions 60 --warm-up 0" "--collective all-gather --bytes 64KiB --repetitions 60 --warm-up 0" "--job litmus")

# Event number $2 of round $1, for a rack whose links are in `links`.
event() {
    local link=${links[RANDOM % ${#links[@]}]} node path at rate for_ms
    path=${link/--/->}
    at=$((RANDOM % 200))ms for_ms=$((1 + RANDOM % 400))ms
    rate=0.$((RANDOM % 3))$((RANDOM % 10))1
    case $((RANDOM % 8)) in
        0) say "  - {what: loss, where: $path, rate: $rate, at: $at, for: $for_ms}" ;;
        1) say "  - {what: corrupt, where: $link, rate: 0.01, at: $at, for: $for_ms}" ;;
        2) say "  - {what: duplicate, where: $link, rate: $rate, at: $at, for: $for_ms}" ;;
        3) say "  - {what: reorder, where: $path, rate: $rate, at: $at, for: $for_ms}" ;;
        4) say "  - {what: down, where: $link, at: $at, for: $for_ms}" ;;
        5) say "  - {what: unplug, where: $path, at: $at, for: $for_ms}" ;;
        6) say "  - {what: pause, where: n$((RANDOM % 4)), at: $at, for: $((1 + RANDOM % 100))ms}" ;;
        # By the job's own progress: who dies before the rack has come together is a rack that could not start.
        7) if [[ $job == --collective* ]]; then node=n$((RANDOM % 4))
               say "  - {what: kill, where: $node, when: {node: $node, run: $((1 + RANDOM % 60)), step: 2}}"
           else say "  - {what: loss, where: $path, rate: 0.3, kinds: [ack], at: $at, for: $for_ms}"; fi ;;
    esac
}

# One rack after the other, each some thousand sums long, until the time is over. What it held is noted in `steady`.
steady() {
    local ends=$1 command early late code runs=0
    cat > "$work/steady.yaml" <<'FAULTS'
name: steady
events:
  - {what: loss, where: all, rate: 0.5%, at: 100ms, for: 300ms, every: 1s}
  - {what: corrupt, where: n0--n1, rate: 1%, at: 500ms, for: 200ms, every: 1s}
  - {what: duplicate, where: n2:n3, rate: 10%, at: 700ms, for: 200ms, every: 1s}
  - {what: down, where: n1--n2, at: 1s, for: 100ms, every: 2s}
  - {what: delay, where: n3:n0, by: 1ms, at: 2s, for: 50ms, every: 3s}
  - {what: pause, where: n3, at: 1500ms, for: 40ms, every: 3s}
expect: {ends: right, happen: any}
FAULTS
    # A busy machine must not make a member look dead: no fault of this rack lasts as long as three heartbeats.
    cat > "$work/steady-rack.yaml" <<'RACK'
name: steady
shape: {ring: {nodes: 4}}
link: {rate: 100Gbit/s, delay: 500ns}
timers: {heartbeat_interval: 1s}
RACK
    while [ "$SECONDS" -lt "$ends" ]; do
        command=("$rackloom" run "$work/steady-rack.yaml" --wire "$wire" --collective all-reduce --algorithm ring --bytes 64KiB
            --repetitions "${SUMS:-60000}" --warm-up 0 --faults "$work/steady.yaml")
        RACKLOOM_SOAK=$work-steady "${command[@]}" > "$work/steady-said" 2>&1 &
        local rack=$!
        sleep 5
        early=$(held) late=$early
        while kill -0 "$rack" 2>/dev/null; do
            local now
            now=$(held)
            [ "${now%% *}" = "${early%% *}" ] && late=$now
            sleep 5
        done
        code=0
        wait "$rack" || code=$?
        runs=$((runs + 1))
        say "$runs $code | $early | $late" >> "$work/steady"
        [ "$code" = 0 ] || { tail -20 "$work/steady-said"; return; }
    done
}

before_kb=$(shmem_kb) before_files=$(files_open)
began=$SECONDS round=$first right=0 clean=0 verified=0
steady $((began + minutes * 60)) &
steady_pid=$!
while [ $((SECONDS - began)) -lt $((minutes * 60)) ]; do
    RANDOM=$round
    rack=${racks[round % 3]} job=${jobs[(round / 3) % 3]}
    mapfile -t links < <("$rackloom" check "$rack" | grep -oE '\b[ns][0-9]+--[ns][0-9]+\b' | sort -u)
    [ "${#links[@]}" -gt 0 ] || fail "no links are named by check $rack"
    script=$work/round-$round.yaml
    { say "name: soak-$round"; say 'events:'
      for ((number = 0; number <= round % 4; number++)); do event; done
      say 'expect: {ends: right-or-clean-error, happen: any}'; } > "$script"
    command=("$rackloom" run "$rack" --wire "$wire" --faults "$script" --seed "$round" --json "$work/report.json")
    # shellcheck disable=SC2206 # the options of a job are words
    command+=($job)
    code=0
    RACKLOOM_SOAK=$work timeout 120 "${command[@]}" > "$work/said" 2>&1 || code=$?
    if [ "$code" != 0 ]; then
        tail -20 "$work/said"; cat "$script"
        fail "round $round ended with $code: ${command[*]} (FIRST=$round repeats it)"
    fi
    if grep -q 'a clean error' "$work/said"; then clean=$((clean + 1)); else right=$((right + 1)); fi
    verified=$((verified + $(grep -m1 -oE '"verified_bytes": [0-9]+' "$work/report.json" | grep -oE '[0-9]+')))
    for _ in 1 2 3 4 5 6 7 8 9 10; do [ -z "$(left_behind)" ] && break; sleep 0.2; done
    [ -z "$(left_behind)" ] || fail "round $round left processes: $(left_behind | tr '\n' ' ')"
    rm -f "$script"
    round=$((round + 1))
done

took=$((SECONDS - began))
wait "$steady_pid"
after_kb=$(shmem_kb) after_files=$(files_open)
say "soak: $((round - first)) rounds on $wire in $took s: $right right, $clean clean errors, 0 wrong; $((verified >> 20)) MiB verified"
say "soak: shared memory $before_kb kB before, $after_kb kB after; open files of the machine $before_files before, $after_files after; no process left"
while IFS='|' read -r which early late; do
    read -r number code <<< "$which"
    read -r pids files kb <<< "$early"
    read -r _ late_files late_kb <<< "$late"
    say "soak: steady rack $number: $pids processes; descriptors $files early, $late_files late; private memory $kb kB early, $late_kb kB late"
    [ "$code" = 0 ] || fail "the steady rack ended with $code"
    [ "$late_files" -le "$files" ] || fail "the steady rack holds more descriptors than at its beginning"
done < "$work/steady"
