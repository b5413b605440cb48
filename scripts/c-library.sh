#!/usr/bin/env bash
# Builds the C library with cargo-c: scripts/c-library.sh install [PREFIX] | check
#
# `install` puts librackloom.so, librackloom.a, rackloom.h and rackloom.pc below PREFIX, /usr/local unless given. `check` installs into a
# scratch folder and checks the files: soname and its links, version, header, exported names. Then it compiles and runs two programs with
# nothing but the flags of pkg-config, shared and static.
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

fail() {
    echo "$1" >&2
    exit 1
}

# Compares what is installed with the source.
check_files() { # LIBDIR INCLUDEDIR
    local version expected soname found exported declared
    version=$(pkg-config --modversion rackloom)
    expected=$(awk -F'"' '/^version = / { print $2; exit }' Cargo.toml)
    [ "$version" = "$expected" ] || fail "rackloom.pc has the version $version, not $expected"
    # The soname has both numbers: a minor version before 1.0 may change the ABI.
    soname=librackloom.so.${version%.*}
    found=$(objdump -p "$1/librackloom.so" | awk '$1 == "SONAME" { print $2 }')
    [ "$found" = "$soname" ] || fail "the soname is $found, not $soname"
    [ -L "$1/librackloom.so" ] && [ -L "$1/$soname" ] && [ -f "$1/librackloom.so.$version" ] || fail 'a link is missing'
    cmp crates/capi/include/rackloom.h "$2/rackloom.h"
    exported=$(nm -D --defined-only "$1/librackloom.so" | awk '{ print $3 }' | sort)
    declared=$(grep -o '\brackloom_[a-z_]*(' crates/capi/include/rackloom.h | tr -d '(' | sort -u)
    [ "$exported" = "$declared" ] || fail 'the library exports other names than the header declares'
}

# Compiles a program with the flags of pkg-config.
compile() { # SOURCE PROGRAM FLAG...
    # shellcheck disable=SC2046
    cc -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE "$1" -o "$2" -pthread $(pkg-config --cflags --libs "${@:3}" rackloom)
}

check() {
    # The trap runs after the function has returned, so this is no local variable.
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    install_into /usr "$scratch"
    # The file of pkg-config names /usr; the system root puts the scratch folder in front of it.
    export PKG_CONFIG_PATH=$scratch/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$scratch
    export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
    check_files "$scratch/usr/lib" "$scratch/usr/include"
    compile crates/capi/examples-c/ping_pong.c "$scratch/shared"
    compile crates/capi/tests/groups.c "$scratch/shared-groups"
    LD_LIBRARY_PATH=$scratch/usr/lib "$scratch/shared" 100
    LD_LIBRARY_PATH=$scratch/usr/lib "$scratch/shared-groups"
    objdump -p "$scratch/shared" | grep 'NEEDED.*librackloom'
    rm "$scratch"/usr/lib/librackloom.so*
    compile crates/capi/examples-c/ping_pong.c "$scratch/static" --static
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
