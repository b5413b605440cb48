#!/usr/bin/env bash
# Builds the C library with cargo-c: scripts/c-library.sh install [PREFIX] | check
#
# `install` puts librackloom.so, librackloom.a, rackloom.h and rackloom.pc below PREFIX, /usr/local unless given. `check` installs into a
# scratch folder, and compiles and runs the example `ping_pong` with nothing but the flags of pkg-config, shared and static.
set -euo pipefail
cd "$(dirname "$0")/.."

# The newest one that Rust 1.95 can build.
cargo_c_version=0.10.24

need_cargo_c() {
    cargo cinstall --version >/dev/null 2>&1 && return
    echo 'installing cargo-c'
    cargo install cargo-c --version "$cargo_c_version" --locked --quiet
}

install_into() { # PREFIX [DESTDIR]
    cargo cinstall --release --locked --package rackloom-capi --prefix "$1" --libdir "$1/lib" ${2:+--destdir "$2"}
}

check() {
    local scratch flags
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    install_into /usr "$scratch"
    # The file of pkg-config names /usr; the system root puts the scratch folder in front of it.
    export PKG_CONFIG_PATH=$scratch/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$scratch
    export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
    flags=$(pkg-config --cflags --libs rackloom)
    # shellcheck disable=SC2086
    cc -Wall -Wextra -Werror -D_GNU_SOURCE crates/capi/examples-c/ping_pong.c -o "$scratch/shared" $flags -pthread
    LD_LIBRARY_PATH=$scratch/usr/lib "$scratch/shared" 100
    objdump -p "$scratch/shared" | grep NEEDED | grep librackloom
    rm "$scratch"/usr/lib/librackloom.so*
    flags=$(pkg-config --static --cflags --libs rackloom)
    # shellcheck disable=SC2086
    cc -Wall -Wextra -Werror -D_GNU_SOURCE crates/capi/examples-c/ping_pong.c -o "$scratch/static" $flags -pthread
    "$scratch/static" 100
}

case "${1:-}" in
install)
    need_cargo_c
    install_into "${2:-/usr/local}"
    ;;
check)
    need_cargo_c
    check
    ;;
*)
    echo 'usage: scripts/c-library.sh install [PREFIX] | check' >&2
    exit 2
    ;;
esac
