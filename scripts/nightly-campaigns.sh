#!/usr/bin/env bash
# Drawn fault scripts over the cross product of {ring, star, mesh, torus, tree, lollipop} x {shrink, break-off} x {llr on, off} x {three rates},
# in virtual time. Every script may draw memory faults. The sizes of the racks, and the trees and lollipops, follow from the first number.
#
#   scripts/nightly-campaigns.sh [COUNT] [FIRST] [DIRECTORY]
#
#   COUNT      fault scripts over all cells together (20000); each of the 72 cells gets its share, rounded up
#   FIRST      number of the first script of each cell (1); another number draws other scripts and other racks
#   DIRECTORY  where racks, failing scripts and the lists of runs are kept (target/nightly); a run that was interrupted goes on from there
#
# RACKLOOM names the program, JOBS how many cells run at once (one per processor). A summary by cell comes last. Exit code 0: every
# script ended right or with a clean error. 1: a script failed. 2: bad arguments, or no program.
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:-20000}
first=${2:-1}
directory=${3:-target/nightly}
rackloom=${RACKLOOM:-target/release/rackloom}
jobs=${JOBS:-$(nproc)}

fail() { printf 'nightly-campaigns: %s\n' "$*" >&2; exit 2; }
[[ $count =~ ^[1-9][0-9]{0,8}$ ]] || fail "'$count' is no number of scripts; hint: scripts/nightly-campaigns.sh 20000"
[[ $first =~ ^[1-9][0-9]{0,8}$ ]] || fail "'$first' is no number of a first script; hint: 1"
[ -x "$rackloom" ] || fail "there is no program $rackloom; hint: cargo build --release, or set RACKLOOM"
mkdir -p "$directory"

shapes=(ring star mesh torus tree lollipop)
modes=(shrink break-off)
retries=(on off)
rates=(10Gbit/s 100Gbit/s 400Gbit/s)
share=$(((count + 71) / 72))

state=$first
# A number below $1, the next of a sequence that follows from FIRST.
draw() {
    state=$(((state * 1103515245 + 12345) & 0x7fffffff))
    drawn=$(((state >> 8) % $1))
}

# The links of a graph as lines of a rack file; nodes are n0, n1, ...
link() { printf '      - {a: n%s, b: n%s}\n' "$1" "$2"; }
custom() {
    local nodes=$1 names
    names=$(seq -s ', ' -f 'n%g' 0 $((nodes - 1)))
    printf 'shape:\n  custom:\n    nodes: [%s]\n    links:\n' "$names"
}

torus() {
    local rows cols row col
    draw 2; rows=$((drawn + 2))
    draw 2; cols=$((drawn + 3))
    custom $((rows * cols))
    for ((row = 0; row < rows; row++)); do
        for ((col = 0; col < cols; col++)); do
            link $((row * cols + col)) $((row * cols + (col + 1) % cols))
            # A column of two is one link.
            ((rows == 2 && row == 1)) || link $((row * cols + col)) $(((row + 1) % rows * cols + col))
        done
    done
}

tree() {
    local nodes node
    draw 5; nodes=$((drawn + 4))
    custom "$nodes"
    for ((node = 1; node < nodes; node++)); do draw "$node"; link "$drawn" "$node"; done
}

# A full mesh with a tail.
lollipop() {
    local head tail a b
    draw 3; head=$((drawn + 3))
    draw 3; tail=$((drawn + 1))
    custom $((head + tail))
    for ((a = 0; a < head; a++)); do for ((b = a + 1; b < head; b++)); do link "$a" "$b"; done; done
    for ((a = head; a < head + tail; a++)); do link $((a - 1)) "$a"; done
}

shape() {
    case $1 in
    ring) draw 6; printf 'shape: {ring: {nodes: %s}}\n' $((drawn + 3)) ;;
    star) draw 6; local nodes=$((drawn + 3)); draw 2; printf 'shape: {star: {nodes: %s, planes: %s}}\n' "$nodes" $((drawn + 1)) ;;
    mesh) draw 4; printf 'shape: {full-mesh: {nodes: %s}}\n' $((drawn + 3)) ;;
    *) "$1" ;;
    esac
}

# The racks of all cells. A rack that is there already stays, so that an interrupted run goes on with the same ones.
cells=()
for shape in "${shapes[@]}"; do for mode in "${modes[@]}"; do for llr in "${retries[@]}"; do for rate in "${rates[@]}"; do
    cell="$first-$shape-$mode-llr-$llr-${rate%%Gbit/s}G"
    cells+=("$cell")
    {
        printf 'name: %s-%s\n' "$shape" "$first"
        shape "$shape"
        # Rings that cross each other need a channel per hop, or full buffers may wait for each other in a circle.
        [ "$shape" != torus ] || printf 'channels: {rise: hop}\n'
        printf 'link: {rate: %s, delay: 500ns, llr: %s}\nseed: %s\n' "$rate" "$llr" "$first"
        printf 'job: {collective: {bytes: 8KiB, repetitions: 2, warm_up: 0, on_loss: %s}}\n' "$mode"
    } > "$directory/$cell.yaml"
done; done; done; done

export rackloom directory share first
# One cell; its result is the last lines of its log.
run_cell() {
    "$rackloom" campaign "$directory/$1.yaml" --runs "$share" --first "$first" --threads 1 --failures-max 1000000 \
        --export "$directory/$1.failing" --resume "$directory/$1.runs" > "$directory/$1.log" 2>&1 ||
        printf '%s: see %s\n' "$1" "$directory/$1.log"
}
export -f run_cell
printf '%s\0' "${cells[@]}" | xargs -0 -P "$jobs" -I{} bash -c 'run_cell {}'

total=0 failed=0 bad_cells=0
printf '%-48s %8s %8s\n' cell scripts failed
for cell in "${cells[@]}"; do
    # The last result of a number counts: a script that failed and was run again may have passed.
    read -r passes fails < <(awk '{last[$1] = $2} END {for (n in last) ++sum[last[n]]; print sum["pass"] + 0, sum["fail"] + 0}' \
        "$directory/$cell.runs" 2>/dev/null || echo 0 0)
    missing=$((share - passes - fails))
    ((missing <= 0)) || bad_cells=$((bad_cells + 1))
    total=$((total + passes + fails)) failed=$((failed + fails))
    printf '%-48s %8s %8s%s\n' "$cell" $((passes + fails)) "$fails" "$( ((missing > 0)) && printf '  %s did not run' "$missing")"
done
printf '%s fault scripts in %s cells: %s failed, %s cells did not come to their end\n' "$total" "${#cells[@]}" "$failed" "$bad_cells"
((failed == 0 && bad_cells == 0))
