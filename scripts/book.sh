#!/usr/bin/env bash
# Builds docs/ as a book in target/book with MkDocs. Broken links and pages without a section are errors.
#
# MkDocs is installed into target/mkdocs on the first call (5 to 12 s) and nowhere else. Without Python or an index of packages the
# script prints the reason and ends with 0, unless RACKLOOM_BOOK=required is set.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.6.1
folder=target/mkdocs
python=python3

skip() {
    echo "SKIPPED (1): the book is not built: $*"
    [ "${RACKLOOM_BOOK:-}" != required ]
    exit
}

command -v "$python" >/dev/null || skip "there is no $python"
if [ ! -e "$folder/installed-$version" ]; then
    rm -rf "$folder"
    "$python" -m pip install --quiet --no-warn-conflicts --root-user-action ignore --target "$folder" "mkdocs==$version" ||
        skip "MkDocs $version cannot be installed"
    touch "$folder/installed-$version"
fi
"$python" scripts/draw_collectives.py --check
PYTHONPATH=$folder "$python" -m mkdocs build --strict --site-dir target/book
echo 'the book is in target/book'
