#!/usr/bin/env bash
# Writes the pictures of docs/figures that show the command at work, top.svg and page.png, to a folder (scripts/pictures.py).
#
#     scripts/pictures.sh [FOLDER]
#
# RACKLOOM names the program; the default is that of the debug build. On Debian the packages are python3-pyte, chromium, chromium-driver and
# python3-selenium. As root, the script installs them if they are missing. Without them it prints the reason and ends with 0, unless
# RACKLOOM_PICTURES=required is set.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-target/pictures}
program=${RACKLOOM:-${CARGO_TARGET_DIR:-target}/debug/rackloom}

skip() {
    echo "SKIPPED (1): no pictures are made: $*"
    [ "${RACKLOOM_PICTURES:-}" != required ]
    exit
}

# A Python that stands before that of Debian may lack the packages.
python=
has_all() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import pyte, selenium' 2>/dev/null && break
        python=
    done
    [ -n "$python" ] && command -v chromium >/dev/null && command -v chromedriver >/dev/null
}

[ -x "$program" ] || skip "there is no $program; build it with: cargo build --workspace --bin rackloom"
if ! has_all && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y -qq --no-install-recommends python3-pyte chromium chromium-driver python3-selenium >/dev/null || true
fi
has_all || skip 'pyte, selenium, chromium or chromium-driver is missing'
exec "$python" scripts/pictures.py "$program" "$folder"
