#!/usr/bin/env python3
"""Counts lines of Rust code outside tests, without comments and blank lines, for each crate.

    scripts/code_lines.py             # the working tree
    scripts/code_lines.py v0.1.0      # a commit

Counted are the sources of `crates/*/src`. Left out are modules under `#[cfg(test)]`, inline or in files of their own, items with that attribute,
and the crates that only test others (fuzz targets, models).
"""

import os
import re
import subprocess
import sys

LEFT_OUT = {"fuzz", "models"}
TEST_ATTRIBUTE = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.DOTALL
)


def without_comments(text):
    """Returns the text without comments. Literals are replaced by `0`, so that braces in them do not count."""

    def replace(match):
        found = match.group(0)
        if found.startswith("/"):
            return "\n" * found.count("\n")
        return "0" + "\n0" * found.count("\n")

    return TOKEN.sub(replace, text)


def end_of_item(text, start):
    """Returns the index behind the item that begins at `start`: its semicolon, comma or closing brace."""
    depth = 0
    for index in range(start, len(text)):
        character = text[index]
        if character in "({[":
            depth += 1
        elif character in ")}]":
            depth -= 1
            if depth < 0:
                return index
            if depth == 0 and character == "}":
                return index + 1
        elif depth == 0 and character in ";,":
            return index + 1
    return len(text)


def split(text):
    """Returns the text without items for tests, and the names of test modules in files of their own (with their path attribute)."""
    modules = []
    while found := TEST_ATTRIBUTE.search(text):
        end = end_of_item(text, found.end())
        item = text[found.end() : end]
        if module := re.search(r"\bmod\s+(\w+)\s*;", item):
            modules.append(module.group(1))
        text = text[: found.start()] + "\n" * text[found.start() : end].count("\n") + text[end:]
    return text, modules


def children(path, module):
    """Returns where the file of a module may be, declared in the file at `path`."""
    folder, name = os.path.split(path)
    if name not in ("lib.rs", "main.rs", "mod.rs"):
        folder = os.path.join(folder, name[: -len(".rs")])
    return [os.path.join(folder, f"{module}.rs"), os.path.join(folder, module) + "/"]


def sources(commit):
    """Returns the text of each source by its path."""
    if commit is None:
        listed = subprocess.run(["git", "ls-files", "crates"], check=True, capture_output=True, text=True).stdout
        read = lambda path: open(path, encoding="utf-8").read()
    else:
        command = ["git", "ls-tree", "-r", "--name-only", commit, "crates"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        show = lambda path: ["git", "show", f"{commit}:{path}"]
        read = lambda path: subprocess.run(show(path), check=True, capture_output=True, text=True).stdout
    paths = [path for path in listed.splitlines() if re.fullmatch(r"crates/[^/]+/src/.*\.rs", path)]
    return {path: read(path) for path in paths if commit is not None or os.path.exists(path)}


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else None
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    code, tests = {}, []
    for path, text in sources(commit).items():
        code[path], modules = split(without_comments(text))
        tests += [place for module in modules for place in children(path, module)]
    counts = {}
    for path, text in code.items():
        crate = path.split("/")[1]
        is_test = any(path == place or (place.endswith("/") and path.startswith(place)) for place in tests)
        if crate not in LEFT_OUT and not is_test:
            counts[crate] = counts.get(crate, 0) + sum(bool(line.strip()) for line in text.splitlines())
    for crate, count in sorted(counts.items()):
        print(f"{crate:<14}{count:>8}")
    print(f"{'all':<14}{sum(counts.values()):>8}")


if __name__ == "__main__":
    main()
