#!/usr/bin/env bash
# Rackloom beside what Debian offers, in turns on the same two processors: UCX, libfabric, Open MPI.
#
#     scripts/compare.sh [ROUNDS]
#
# Installs nothing and says what is missing (ucx-utils, libfabric-bin, openmpi-bin and libopenmpi-dev, python3). Each round
# runs every program once; the table has medians, least and greatest. RACKLOOM names the binary, that of the profile dist if absent;
# rackloom-bench and examples/group_times are beside it.
# None of the others is a fabric with retries and credits: they show what a bare path over the same memory costs here.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-5}
rackloom=${RACKLOOM:-${CARGO_TARGET_DIR:-target}/dist/rackloom}
bench=$(dirname "$rackloom")/rackloom-bench
group=$(dirname "$rackloom")/examples/group_times
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
takes=$scratch/takes
: >"$takes"

missing() { printf 'left out: %s (package %s is not installed)\n' "$1" "$2" >&2; }
failed() { printf 'left out of this round: %s: %s\n' "$1" "$2" >&2; }

# take ROW WHO VALUE: nanoseconds for durations, messages per second for rates.
take() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$takes"; }

ours() {
    local report=$scratch/ours.json
    # A row below its goal is not a failure here.
    RACKLOOM=$rackloom "$bench" --json --rounds 1 --only round-trip,store-single,store-packed,put-4096,all-reduce >"$report" || true
    python3 - "$report" >>"$takes" <<'PYTHON'
import json, sys
names = {
    "round-trip": "round trip, 64 B", "store-single": "64 B, one way", "store-packed": "64 B, one way",
    "put-4096": "4 KiB, one way", "all-reduce": "all-reduce, 1 MiB, 2 ranks",
}
who = {
    "round-trip": "acknowledged store", "store-single": "acknowledged stores, a frame each",
    "store-packed": "posted stores that share frames", "put-4096": "acknowledged puts", "all-reduce": "collective job",
}
for row in json.load(open(sys.argv[1]))["rows"]:
    if row["ours"] is None:
        print(f"left out of this round: rackloom {row['name']}: {row['reason']}", file=sys.stderr)
        continue
    print(f"{names[row['name']]}\trackloom, {who[row['name']]}\t{row['ours']['median']}")
    print(f"{names[row['name']]}\traw loop of {row['name']}\t{row['raw']['median']}")
PYTHON
}

# The library: two processes, opened memory.
group() {
    RACKLOOM=$rackloom "$group" >"$scratch/group.out" || { failed group_times 'see above'; return 0; }
    local row time rest
    while read -r row time rest; do
        case $row in
        array) take 'all-reduce, 1 MiB, 2 ranks' 'rackloom, group of the library' "$(awk -v us="$time" 'BEGIN { print us * 1000 }')" ;;
        persistent) take 'all-reduce, 1 MiB, 2 ranks' 'rackloom, persistent collective' "$(awk -v us="$time" 'BEGIN { print us * 1000 }')" ;;
        esac
    done <"$scratch/group.out"
}

# ucx TEST BYTES COUNT: the last line of figures: messages, then latencies in us, bandwidths, messages per second.
ucx() {
    local port=$((20000 + RANDOM % 10000)) server
    local shared=(env UCX_TLS=posix,sysv,self UCX_LOG_LEVEL=error timeout 30 ucx_perftest -f -p "$port")
    "${shared[@]}" -c 0 >/dev/null 2>&1 &
    server=$!
    for _ in $(seq 100); do
        # The port is looked for in the kernel's list, because a connection would be the test's own.
        grep -qi ":$(printf %04x "$port") .* 0A " /proc/net/tcp && break
        sleep 0.05
    done
    "${shared[@]}" -c 1 -t "$1" -s "$2" -n "$3" 127.0.0.1 2>/dev/null | awk '$1 ~ /^[0-9]+$/' | tail -n 1
    wait "$server" || true
}

ucx_row() { # ROW WHO TEST BYTES COUNT FIELD FACTOR
    local value
    value=$(ucx "$3" "$4" "$5" | awk -v field="$6" -v factor="$7" '{ print $field * factor }')
    if [ -n "$value" ]; then take "$1" "$2" "$value"; else failed "ucx_perftest $3" 'no figures'; fi
}

all_of_ucx() {
    # A latency is one way: half of the trip.
    ucx_row 'round trip, 64 B' 'UCX, tagged messages' tag_lat 64 50000 4 2000
    ucx_row 'round trip, 64 B' 'UCX, puts' ucp_put_lat 64 50000 4 2000
    ucx_row 'round trip, 64 B' 'UCX, active messages' ucp_am_lat 64 50000 4 2000
    ucx_row '64 B, one way' 'UCX, puts' ucp_put_bw 64 1000000 8 1
    ucx_row '64 B, one way' 'UCX, tagged messages' tag_bw 64 500000 8 1
    ucx_row '4 KiB, one way' 'UCX, puts' ucp_put_bw 4096 200000 8 1
    ucx_row '4 KiB, one way' 'UCX, tagged messages' tag_bw 4096 100000 8 1
}

# libfabric PROVIDER ENDPOINT: the time of one transfer, half of the trip, is the last but one figure.
libfabric() {
    local port=$((30000 + RANDOM % 10000)) server value
    local both=(timeout 20 fi_pingpong -p "$1" -e "$2" -S 64 -I 2000)
    "${both[@]}" -B "$port" >/dev/null 2>&1 &
    server=$!
    for _ in $(seq 100); do
        grep -qi ":$(printf %04x "$port") .* 0A " /proc/net/tcp && break
        sleep 0.05
    done
    value=$("${both[@]}" -P "$port" 127.0.0.1 2>/dev/null | awk '$1 == "64" { print $(NF - 1) * 2000 }')
    wait "$server" || true
    if [ -n "$value" ]; then take 'round trip, 64 B' "libfabric, $1" "$value"; else failed "fi_pingpong $1" 'no figures in 20 s'; fi
}

mpi() {
    local name value
    timeout 120 mpirun --allow-run-as-root --bind-to core -np 2 "$scratch/mpi" 2>"$scratch/mpi.log" >"$scratch/mpi.out" ||
        { failed mpirun "$(head -n 1 "$scratch/mpi.log")"; return 0; }
    while read -r name value; do
        case $name in
        round-trip) take 'round trip, 64 B' 'Open MPI, messages' "$value" ;;
        rate-64) take '64 B, one way' 'Open MPI, messages' "$value" ;;
        rate-4096) take '4 KiB, one way' 'Open MPI, messages' "$value" ;;
        all-reduce) take 'all-reduce, 1 MiB, 2 ranks' 'Open MPI' "$value" ;;
        esac
    done <"$scratch/mpi.out"
}

table() {
    python3 - "$takes" <<'PYTHON'
import statistics, sys
rows = {}
for line in open(sys.argv[1]):
    row, who, value = line.rstrip("\n").split("\t")
    rows.setdefault(row, {}).setdefault(who, []).append(float(value))

def figure(row, value):
    if "one way" in row:
        return f"{value / 1e6:.3g} M/s"
    return f"{value:.0f} ns" if value < 1000 else f"{value / 1000:.3g} us"

print("| what | who | median | min to max |\n|---|---|---|---|")
for row, whos in rows.items():
    order = sorted(whos, key=lambda who: statistics.median(whos[who]), reverse="one way" in row)
    for who in order:
        takes = whos[who]
        middle, least, most = (figure(row, value) for value in (statistics.median(takes), min(takes), max(takes)))
        print(f"| {row} | {who} | {middle} | {least} to {most} |")
PYTHON
}

command -v python3 >/dev/null || { echo 'error: python3 is not installed; it reads the reports' >&2; exit 1; }
for program in "$rackloom" "$bench" "$group"; do
    [ -x "$program" ] || { echo "error: $program is not there; hint: cargo build --profile dist -p rackloom-cli -p rackloom-bench && cargo build --profile dist -p rackloom --example group_times" >&2; exit 1; }
done
has_ucx=$(command -v ucx_perftest || missing UCX ucx-utils)
has_libfabric=$(command -v fi_pingpong || missing libfabric libfabric-bin)
has_mpi=
if ! command -v mpirun >/dev/null; then
    missing 'Open MPI' openmpi-bin
elif ! command -v mpicc >/dev/null; then
    missing 'Open MPI' libopenmpi-dev
else
    mpicc -O2 -o "$scratch/mpi" scripts/compare-mpi.c && has_mpi=yes
fi

for round in $(seq "$rounds"); do
    printf 'round %s of %s\n' "$round" "$rounds" >&2
    ours
    group
    [ -z "$has_ucx" ] || all_of_ucx
    [ -z "$has_libfabric" ] || libfabric shm rdm
    [ -z "$has_libfabric" ] || libfabric tcp msg
    [ -z "$has_mpi" ] || mpi
done
table
