#!/usr/bin/env bash
# Opens pages of `rackloom --html` in a browser without a screen, and checks them (scripts/page.py). Screenshots are written to a folder.
#
#     scripts/page.sh [FOLDER]
#
# RACKLOOM names the program; the default is that of the debug build. On Debian the browser is in the packages chromium, chromium-driver and
# python3-selenium. As root, the script installs them if they are missing. Without them it prints the reason and ends with 0, unless
# RACKLOOM_PAGE=required is set.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-target/pages}
program=${RACKLOOM:-${CARGO_TARGET_DIR:-target}/debug/rackloom}

skip() {
    echo "SKIPPED (1): pages are not opened in a browser: $*"
    [ "${RACKLOOM_PAGE:-}" != required ]
    exit
}

# Another Python may stand before that of Debian, which has the package.
python=
has_all() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import selenium' 2>/dev/null && break
        python=
    done
    [ -n "$python" ] && command -v chromium >/dev/null && command -v chromedriver >/dev/null
}

[ -x "$program" ] || skip "there is no $program; build it with: cargo build --workspace --bin rackloom"
if ! has_all && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y -qq --no-install-recommends chromium chromium-driver python3-selenium >/dev/null || true
fi
has_all || skip 'chromium, chromium-driver or python3-selenium is missing'
mkdir -p "$folder"
exec "$python" scripts/page.py "$program" "$folder"
