#!/usr/bin/env bash
# Every step of continuous integration, in the order in which a mistake is cheapest to find.
#
# Runs on a bare Linux machine without root as long as a C linker and a Rust toolchain are there; what is missing is
# installed first, and nothing is touched when nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

# A build that runs once gains nothing from incremental compilation, which takes 6 GB.
export CARGO_INCREMENTAL=0

# The command that the README tells a newcomer to type. The check below keeps the two the same.
test_command='cargo test --workspace'

# Prints the next step, and the minutes and seconds since the beginning.
step() { printf '\n==> %s (after %d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# A build and its tests take about 11 GB. A linker without space ends with a bus error, which says nothing.
need_space() {
    local free_kb
    free_kb=$(df --output=avail -k . | tail -n 1)
    [ "$free_kb" -ge $((11 * 1000 * 1000)) ] && return
    echo "only $((free_kb / 1000 / 1000)) GB are free here, and a run takes 11 GB; hint: free some, or remove target/" >&2
    [ -d target/debug ] || exit 1
}

# Tests that root runs start racks as the user without rights as well, and every process needs the null device.
need_null_device() {
    [ "$(id -u)" != 0 ] || setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'test -r /dev/null -a -w /dev/null' || {
        echo '/dev/null is closed to other users than root; hint: chmod 666 /dev/null' >&2
        exit 1
    }
}

need_linker() {
    command -v cc >/dev/null && return
    step 'installing a C linker'
    as_root apt-get update -qq
    as_root apt-get install -y -qq gcc libc6-dev
}

has_numpy() { "$1" -c 'import numpy' >/dev/null 2>&1; }

# Results are compared with NumPy where there is one, and scripts/peer.py needs it; without it the tests say so.
want_numpy() {
    has_numpy "${RACKLOOM_PYTHON:-python3}" && return
    if ! has_numpy /usr/bin/python3; then
        step 'installing NumPy'
        { as_root apt-get update -qq && as_root apt-get install -y -qq python3-numpy; } ||
            echo 'NumPy cannot be installed; results are not compared with it, and scripts/peer.py is not run'
    fi
    # A python3 found earlier in the path may be another one than the system's.
    if has_numpy /usr/bin/python3; then export RACKLOOM_PYTHON=/usr/bin/python3; fi
}

# Captures are shown to Wireshark's dissector; without tshark the tests say that they were not.
want_tshark() {
    command -v tshark >/dev/null && return
    step 'installing tshark'
    # Who may capture from interfaces is a question for people; nothing is captured from one here.
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq tshark; } ||
        echo 'tshark cannot be installed; the dissector is not tried'
}

# Programs in C run under valgrind, too; without it the tests say that they did not.
want_valgrind() {
    command -v valgrind >/dev/null && return
    step 'installing valgrind'
    { as_root apt-get update -qq && as_root apt-get install -y -qq valgrind; } ||
        echo 'valgrind cannot be installed; programs in C do not run under it'
}

# The verbs library is compared with the headers and tried with the utilities of the distribution; without them the tests say that they were not.
want_verbs() {
    [ -e /usr/include/rdma/rdma_cma.h ] && command -v ibv_devinfo >/dev/null && command -v rping >/dev/null &&
        command -v ib_write_bw >/dev/null && command -v ucx_perftest >/dev/null && command -v fi_pingpong >/dev/null && return
    step 'installing headers and utilities of verbs'
    { as_root apt-get update -qq && as_root apt-get install -y -qq libibverbs-dev ibverbs-utils ibverbs-providers librdmacm-dev rdmacm-utils perftest ucx-utils libfabric-bin; } ||
        echo 'they cannot be installed; the verbs library is not compared with them'
}

# Programs that use IP run on racks; those that are missing are named.
want_ip() {
    command -v ping >/dev/null && command -v iperf3 >/dev/null && command -v curl >/dev/null && return
    step 'installing programs that use IP'
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq iputils-ping iperf3 curl; } ||
        echo 'they cannot be installed; some are not tried on a rack'
}

# Pages of reports are opened in a browser, and pictures are made with it; without it the scripts say that they were not.
want_browser() {
    command -v chromium >/dev/null && command -v chromedriver >/dev/null && /usr/bin/python3 -c 'import pyte, selenium' 2>/dev/null && return
    step 'installing a browser'
    { as_root apt-get update -qq && as_root apt-get install -y -qq --no-install-recommends chromium chromium-driver python3-pyte python3-selenium; } ||
        echo 'they cannot be installed; pages are not opened in a browser, and no pictures are made'
}

# Completions are tried in these shells; those that are missing are named.
want_shells() {
    command -v zsh >/dev/null && command -v fish >/dev/null && return
    step 'installing zsh and fish'
    { as_root apt-get update -qq && as_root apt-get install -y -qq zsh fish; } ||
        echo 'they cannot be installed; completions are not tried in them'
}

# Kernels are compiled where NVIDIA's run-time compiler is to be had; it needs no GPU. Without it the tests say so.
want_nvrtc() {
    local folder=target/nvrtc library
    [ -z "${RACKLOOM_NVRTC:-}" ] && [ "$(uname -m)" = x86_64 ] || return 0
    if [ ! -d "$folder" ]; then
        step 'fetching NVRTC'
        python3 -m pip install --quiet --no-deps --target "$folder" nvidia-cuda-nvrtc-cu12 || {
            echo 'NVRTC cannot be fetched; kernels are not compiled'
            rm -rf "$folder"
            return 0
        }
    fi
    library=$(find "$PWD/$folder" -name 'libnvrtc.so.*' | head -n 1)
    if [ -n "$library" ]; then export RACKLOOM_NVRTC=$library; fi
}

need_toolchain() {
    # shellcheck disable=SC1091
    [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
    for tool in 'cargo --version' 'cargo fmt --version' 'cargo clippy --version'; do
        $tool >/dev/null 2>&1 && continue
        echo "\`$tool\` does not answer; hint: install the stable Rust toolchain with rustfmt and clippy" >&2
        exit 1
    done
}

readme_names_the_test_command() {
    # The README shows commands indented or in a fence, perhaps with a comment behind them. No pipe into `grep -q`: it
    # leaves at the first match, and under pipefail the writer's SIGPIPE would then count as "not found", now and then.
    local commands
    commands=$(sed -E 's/^[[:space:]]+//; s/[[:space:]]+#.*$//' README.md)
    grep -qxF -- "$test_command" <<<"$commands" || {
        echo "README.md does not show the test command of scripts/ci.sh: $test_command" >&2
        exit 1
    }
}

# No suite is repeated: one that fails and then passes is a bug of the product or of the test.
run_tests() {
    local status=0
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    $test_command --no-fail-fast 2>&1 | tee "$log" || status=$?
    # Cargo ends each suite with a line of its own; the sum shows a missing suite.
    awk '/^test result:/ { suites++; passed += $4; failed += $6; ignored += $8 }
         /^SKIPPED \(/ { skipped++ }
         END { printf "\n%d suites: %d passed, %d failed, %d ignored, %d skipped\n",
               suites, passed, failed, ignored, skipped }' "$log"
    grep -E '^SKIPPED \(' "$log" || true
    # The runner's own closing line: that of the last suite.
    grep -h '^test result:' "$log" | tail -n 1
    return "$status"
}

need_null_device
need_space
need_linker
need_toolchain
want_numpy
want_tshark
want_valgrind
want_verbs
want_ip
want_browser
want_shells
want_nvrtc

step 'cargo fmt --all --check'
cargo fmt --all --check

step 'cargo clippy --workspace --all-targets'
cargo clippy --workspace --all-targets --locked -- -D warnings

# The one part that can be left out; everything else is the same with and without it.
step 'cargo clippy of the node library without GPUs'
cargo clippy --package rackloom --lib --no-default-features --locked -- -D warnings

step 'cargo doc --workspace'
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked --quiet

step 'scripts/book.sh'
scripts/book.sh

step 'scripts/public_api.py check'
scripts/public_api.py check

step 'scripts/package.sh'
scripts/package.sh

step "$test_command"
readme_names_the_test_command
run_tests

# The command and the library are those that the tests have built.
step 'programs of RDMA and of IP on a rack'
scripts/verbs_programs.py target/debug/rackloom --quick
scripts/ip_programs.py target/debug/rackloom --quick

step 'scripts/page.sh'
RACKLOOM=target/debug/rackloom scripts/page.sh

step 'scripts/pictures.sh'
RACKLOOM=target/debug/rackloom scripts/pictures.sh

step 'scripts/metrics.sh'
RACKLOOM=target/debug/rackloom scripts/metrics.sh

step 'scripts/memcheck.sh'
scripts/memcheck.sh

# The bugs are in no build but this one, of the simulator and what is below it.
step 'cargo test --package rackloom-simulator --features planted-bugs'
cargo test --package rackloom-simulator --features planted-bugs --test planted --locked

step 'all steps passed'
