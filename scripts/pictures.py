#!/usr/bin/env python3
"""Writes the pictures that the documents show: FOLDER/top.svg, the live view of a rack with load and faults, and FOLDER/page.png, the page of a run.

    scripts/pictures.py PROGRAM FOLDER

`rackloom top` runs in a pseudo-terminal, pyte interprets its output, and the cells of the screen become texts of an SVG file, which is light or dark
as its reader prefers. A browser without a screen opens the file in both, and opens the page. docs/figures/top.svg must have the same headings and keys
as the new picture. `scripts/pictures.sh` installs pyte and the browser.
"""

import fcntl
import html
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte

import page
from page import check

COLUMNS, ROWS = 100, 36
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.43, 18, 12
TIMEOUT_S = 30
COMMITTED = page.ROOT / "docs/figures/top.svg"
LOAD = ["--pattern", "uniform", "--bytes", "64KiB", "--messages", "1000000"]
FAULTS = ["link n0--s0/forward --loss 5%", "link n2--s1 --down"]

# Roles of the colours that the view uses, as pyte names them: by name, and those of the palette of 256 by value.
ROLES = {"default": "ink", "red": "red", "cd0000": "red", "cyan": "cyan", "00cdcd": "cyan"}
LIGHT = {"paper": "#fbfbfa", "ink": "#1b1f24", "red": "#b3001b", "cyan": "#00697a"}
DARK = {"paper": "#15181c", "ink": "#eceff2", "red": "#ff6b7d", "cyan": "#5fd0e0"}


class Terminal:
    """Program in a pseudo-terminal, with its screen."""

    def __init__(self, command, environment):
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execvpe(command[0], command, environment)

    def read(self, seconds):
        """Interprets what the program writes in this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.descriptor], [], [], left)[0]:
                try:
                    self.stream.feed(os.read(self.descriptor, 65536))
                except OSError:
                    check(False, "the view has ended:\n" + "\n".join(self.screen.display))

    def shows(self, texts):
        """Reads until the screen has all of these texts."""
        end = time.monotonic() + TIMEOUT_S
        while missing := [text for text in texts if text not in "\n".join(self.screen.display)]:
            check(time.monotonic() < end, f"not on the screen: {missing}\n" + "\n".join(self.screen.display))
            self.read(0.2)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def runs(cells):
    """Yields the parts of a row with one look: column, text and cell."""
    begin = 0
    look = lambda cell: (cell.fg, cell.bg, cell.bold, cell.underscore, cell.reverse)
    for column in range(1, COLUMNS + 1):
        if column == COLUMNS or look(cells[column]) != look(cells[begin]):
            yield begin, "".join(cells[at].data for at in range(begin, column)), cells[begin]
            begin = column


def drawn(row, cells):
    """Returns the elements of a row."""
    top = MARGIN + row * CELL_HEIGHT
    for column, text, cell in runs(cells):
        left, width = MARGIN + column * CELL_WIDTH, len(text) * CELL_WIDTH
        check(cell.fg in ROLES and cell.bg == "default", f"the picture has no colours {cell.fg} on {cell.bg}")
        ink = ROLES[cell.fg]
        if cell.reverse:
            yield f'<rect class="{ink}" x="{left:.2f}" y="{top}" width="{width:.2f}" height="{CELL_HEIGHT}"/>'
            ink = "paper"
        if not text.strip() and not cell.underscore:
            continue
        looks = [ink] + [name for name, is_set in [("bold", cell.bold), ("line", cell.underscore)] if is_set]
        place = f'x="{left:.2f}" y="{top + 13}" textLength="{width:.2f}"'
        yield f'<text class="{" ".join(looks)}" {place} xml:space="preserve">{html.escape(text)}</text>'


def svg(screen, name):
    """Returns the screen as SVG text."""
    width, height = 2 * MARGIN + COLUMNS * CELL_WIDTH, 2 * MARGIN + ROWS * CELL_HEIGHT
    colours = lambda scheme: "".join(f".{role}{{fill:{colour}}}" for role, colour in scheme.items())
    style = (
        "text{font:14px 'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}.bold{font-weight:bold}.line{text-decoration:underline}"
        f"{colours(LIGHT)}@media (prefers-color-scheme:dark){{{colours(DARK)}}}"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" role="img">',
        f"<title>{html.escape(name)}</title>",
        f"<style>{style}</style>",
        '<rect class="paper" width="100%" height="100%" rx="6"/>',
    ]
    for row in range(ROWS):
        lines += drawn(row, screen.buffer[row])
    return "\n".join([*lines, "</svg>\n"])


def fixed_texts(picture):
    """Returns the texts of a picture that have no measured value: headings, frames of tables, and keys."""
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", picture)
    return [text for text in texts if re.search("[a-z]{3}", text) and not re.search("[0-9]", text)]


def top(program):
    """Returns the picture of the live view."""
    runtime = tempfile.mkdtemp(prefix="rackloom-pictures-")
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    for name in ["LC_ALL", "NO_COLOR"]:
        environment.pop(name, None)

    def rackloom(*arguments):
        command = [program, *arguments]
        ended = subprocess.run(command, env=environment, cwd=page.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        check(ended.returncode == 0, f"{' '.join(command)}: {ended.returncode}: {ended.stderr}")

    terminal = None
    try:
        rackloom("up", "topologies/star-4.yaml", *LOAD)
        terminal = Terminal([program, "top", "--interval", "300ms"], environment)
        terminal.shows(["rack star-4", "8 of 8 links up", "GB/s", "no fault"])
        terminal.read(3)
        for fault in FAULTS:
            rackloom("inject", *fault.split())
        terminal.shows(["7 of 8 links up", "2 faults in force", "loss n0--s0", "down n2--s1"])
        terminal.read(2)
        return svg(terminal.screen, "rackloom top: links, members, faults in force and events of a rack with load")
    finally:
        if terminal:
            terminal.end()
        # The rack may not have started, and its job is broken off.
        subprocess.run([program, "down"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(runtime, ignore_errors=True)


def check_top(browser, path):
    """Opens the picture in both colours. Every text must be within it, and must have another brightness than the paper."""
    for scheme, is_bright in [("light", True), ("dark", False)]:
        browser.colours(scheme)
        browser.open(path)
        browser.picture(f"top-{scheme}", whole=False)
        check((page.brightness(browser, ".paper", "fill") > 128) == is_bright, f"{scheme}: the paper has the wrong brightness")
        for role in ["text.ink", "text.red", "text.cyan"]:
            check((page.brightness(browser, role, "fill") > 128) != is_bright, f"{scheme}: {role} cannot be read")
    browser.colours("light")
    outside = browser.run(
        """const paper = document.querySelector(".paper").getBBox();
        return Array.from(document.querySelectorAll("text")).filter((text) => {
          const box = text.getBBox();
          return box.x < 0 || box.x + box.width > paper.width || box.y + box.height > paper.height;
        }).map((text) => text.textContent);"""
    )
    check(outside == [], f"texts outside of the picture: {outside}")


def main():
    program, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    picture = top(program)
    (folder / "top.svg").write_text(picture)
    browser = page.Browser(folder)
    try:
        browser.size(1220)
        check_top(browser, folder / "top.svg")
        page.draw_figure(browser, page.make_page(program, folder, "faults"))
    finally:
        browser.driver.quit()
    committed, fixed = COMMITTED.read_text() if COMMITTED.exists() else "", fixed_texts(picture)
    check(len(fixed) > 4, f"the picture lacks headings: {fixed}")
    check(fixed_texts(committed) == fixed, f"{COMMITTED} is not of this version; copy {folder}/top.svg to it\n  new: {fixed}")
    print(f"top.svg and page.png are in {folder}")


if __name__ == "__main__":
    main()
