#!/usr/bin/env python3
"""Opens pages of `rackloom --html` in a browser without a screen, and checks what a reader sees.

    scripts/page.py PROGRAM FOLDER

Each page is opened at three widths. No text may cover another, nothing may be wider than the window, and the console must be empty. Tables are
sorted by click and by key, and filtered. The page of a rack of 1024 nodes must be complete within two seconds. The folder gets the pages
and screenshots. `scripts/page.sh` installs the browser.
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDTHS = [360, 800, 1400]
LOAD_S_MAX = 2.0
BYTES_MAX = 5_000_000
ROOT = pathlib.Path(__file__).resolve().parent.parent
HOSTILE = '</script><script>document.title="changed"</script><img src=x onerror="document.title=1">\'"&\u202e\u05d0\u05d1'

JOB = "--collective all-reduce"
# Commands that make a page each, in a folder with the files of make_page.
COMMANDS = {
    "faults": f"sim ring-4.yaml {JOB} --repetitions 50 --faults cut.yaml --json faults.json",
    "sizes": f"sim leaf-spine-8.yaml {JOB} --algorithm ring,two-shot --sizes 4KiB..1MiB --repetitions 2 --json sizes.json",
    "large": f"sim large.yaml {JOB} --algorithm ring --bytes 1MiB --repetitions 1 --warm-up 0 --payload elided --json large.json",
    "experiment": "experiment incast --reduced",
    "sweep": f"sweep ring-4.yaml {JOB} --out sweep --set link.loss=0,1e-3 --algorithm ring,two-shot --seeds 1..3",
    "campaign": "campaign ring-4.yaml --runs 20",
    "failures": f"campaign ring-4.yaml {JOB} --exhaustive links:1,nodes:1 --failure-rates links=1e-5/h,nodes=1e-6/h --repair 4h",
}

# Boxes of all visible texts, within the part of their scrolling box that is shown.
TEXTS = """
const found = [];
const inset = (box) => ({ text: box.text, left: box.left + 1, right: box.right - 1, top: box.top + (box.bottom - box.top) * 0.22,
  bottom: box.bottom - (box.bottom - box.top) * 0.22 });
const add = (element, text, box) => {
  const scroll = element.closest(".scroll");
  let { left, right, top, bottom } = box;
  if (scroll) {
    const limit = scroll.getBoundingClientRect();
    [left, right] = [Math.max(left, limit.left), Math.min(right, limit.right)];
    // The headings of a table stay at its top while rows move below them.
    const head = element.closest("tbody") ? scroll.querySelector("thead").getBoundingClientRect().bottom : limit.top;
    [top, bottom] = [Math.max(top, head), Math.min(bottom, limit.bottom)];
  }
  if (right - left > 3 && bottom - top > 3) found.push(inset({ text, left, right, top: top + scrollY, bottom: bottom + scrollY }));
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode;
  const element = node.parentElement;
  const text = node.data.trim();
  if (!text || element.closest("script, style, title, desc, [hidden], .skip")) continue;
  if (element.closest("svg")) {
    add(element, text, element.getBoundingClientRect());
    continue;
  }
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) add(element, text, box);
}
found.sort((one, other) => one.top - other.top);
const covered = [];
for (let index = 0; index < found.length; index += 1) {
  for (let next = index + 1; next < found.length && found[next].top < found[index].bottom; next += 1) {
    const [one, other] = [found[index], found[next]];
    if (one.left < other.right && other.left < one.right) covered.push([one.text.slice(0, 60), other.text.slice(0, 60)]);
  }
}
return { count: found.length, covered: covered.slice(0, 10) };
"""


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


class Browser:
    """Browser without a screen."""

    def __init__(self, folder):
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.folder = folder

    def command(self, name, **values):
        return self.driver.execute_cdp_cmd(name, values)

    def size(self, width, height=900):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def colours(self, scheme, media=""):
        self.command("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path):
        """Opens a page. Returns the seconds until it is complete and drawn."""
        began = time.monotonic()
        self.driver.get(path.resolve().as_uri())
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));")
        return time.monotonic() - began

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def picture(self, name, whole=True):
        height = self.run("return document.documentElement.scrollHeight") if whole else 900
        width = self.run("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 12_000), "scale": 1}
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        (self.folder / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def column(self, table, number):
        """Returns the texts of the shown cells of a column, from the table with this caption."""
        return self.run(
            """const table = Array.from(document.querySelectorAll("table")).find((one) => one.caption.textContent === arguments[0]);
            return Array.from(table.tBodies[0].rows).filter((row) => !row.hidden).map((row) => row.cells[arguments[1]].textContent);""",
            table,
            number,
        )

    def heading(self, table, title):
        """Returns the heading cell of a column."""
        return self.run(
            """const table = Array.from(document.querySelectorAll("table")).find((one) => one.caption.textContent === arguments[0]);
            return Array.from(table.tHead.rows[0].cells).find((cell) => cell.textContent === arguments[1]);""",
            table,
            title,
        )


def rackloom(program, folder, *arguments):
    command = [program, *map(str, arguments)]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder)
    check(ended.returncode in (0, 1), f"{' '.join(command)}: {ended.returncode}: {ended.stderr}")


def page_of(program, report, path):
    """Writes the page of a report that is a value."""
    file = path.with_suffix(".json")
    file.write_text(json.dumps(report))
    rackloom(program, path.parent, "report", file, "--html", path)
    return path


def with_series(report):
    """Adds time series and phases, as a run that records them does."""
    intervals, interval_ns = 60, max(report["elapsed_ns"] // 60, 1)
    links = []
    for number, link in enumerate(report["links"]):
        wave = [(17 * at + 5 * number) % 40 for at in range(intervals)]
        links.append(
            {
                "name": link["name"],
                "bytes": [1000 * value for value in wave],
                "frames": wave,
                "dropped": {"hop-check": [value // 30 for value in wave]},
                "replayed": [value // 20 for value in wave],
                "retransmitted": [1 if value == 39 else 0 for value in wave],
                "credit_waits": [value // 10 for value in wave],
                "queued": [value // 4 for value in wave],
            }
        )
    nodes = [
        {
            "name": node["name"],
            "operations": [at % 3 for at in range(intervals)],
            "latency_p50_ns": [900 + 20 * at for at in range(intervals)],
            "latency_p99_ns": [2000 + 70 * at for at in range(intervals)],
        }
        for node in report["nodes"]
    ]
    report["series"] = {"from_ns": 0, "interval_ns": interval_ns, "intervals": intervals, "links": links, "nodes": nodes}
    whole = report["balance"][0]
    for number, name in enumerate(["all-reduce ring 65536 B", "all-reduce two-shot 65536 B", "barrier"]):
        begin = report["elapsed_ns"] * (number + 1) // 5
        end = begin + report["elapsed_ns"] // 6
        report.setdefault("phases", []).append({"name": name, "began_ns": begin, "ended_ns": end})
        report["balance"].append({**whole, "name": name, "began_ns": begin, "ended_ns": end, "imbalance": 1.2 + number})
    return report


def hostile(report):
    """Gives members, links and events names that would be markup, would change the direction of text, or are very long."""
    names = {node["name"]: name for node, name in zip(report["nodes"], [HOSTILE, "n" * 3000, "\u05d0\u05d1\u05d2" * 40])}
    text = json.dumps(report)
    for old, new in names.items():
        text = text.replace(f'"{old}"', json.dumps(new)).replace(f'"{old}->', json.dumps(new)[:-1] + "->")
        text = text.replace(f'->{old}"', "->" + json.dumps(new)[1:])
    changed = json.loads(text)
    changed["meta"]["rack"] = HOSTILE
    changed["meta"]["command"] = f"rackloom sim {HOSTILE}"
    changed["failures"] = [HOSTILE]
    changed["notes"] = [HOSTILE]
    return changed


def make_page(program, folder, name):
    """Makes one page of COMMANDS. Returns its path."""
    for rack in ["ring-4.yaml", "leaf-spine-8.yaml"]:
        shutil.copy(ROOT / "topologies" / rack, folder)
    (folder / "cut.yaml").write_text(
        "name: cut\nevents:\n  - {what: down, where: n0--n1, at: 20us, for: 300us}\n  - {what: kill, where: n3, at: 600us}\n"
    )
    (folder / "large.yaml").write_text("name: large\nshape: {star: {nodes: 1024, planes: 4}}\n")
    rackloom(program, folder, *COMMANDS[name].split(), "--html", f"{name}.html")
    return folder / f"{name}.html"


def make_pages(program, folder):
    """Makes all pages. Returns their paths by name."""
    pages = {name: make_page(program, folder, name) for name in COMMANDS}
    read = lambda name: json.loads((folder / f"{name}.json").read_text())
    pages["series"] = page_of(program, with_series(read("sizes")), folder / "series.html")
    pages["hostile"] = page_of(program, hostile(with_series(read("faults"))), folder / "hostile.html")
    return pages


def draw_figure(browser, path):
    """Writes page.png, the picture of docs/how-to/report-page.md: the begin of a page."""
    browser.size(1220)
    browser.open(path)
    clip = {"x": 0, "y": 0, "width": 1220, "height": 1800, "scale": 0.66}
    shot = browser.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    (browser.folder / "page.png").write_bytes(base64.b64decode(shot["data"]))


def check_layout(browser, name, path):
    """Opens a page at each width, and looks for texts that cover each other and for anything that is wider than the window."""
    for width in WIDTHS:
        browser.size(width)
        browser.open(path)
        whole = browser.run("return document.documentElement.scrollWidth")
        check(whole <= width, f"{name} at {width}: the page is {whole} wide")
        texts = browser.run(TEXTS)
        check(texts["count"] > 20, f"{name} at {width}: only {texts['count']} texts")
        check(not texts["covered"], f"{name} at {width}: texts cover each other: {texts['covered']}")
        browser.picture(f"{name}-{width}")
    check(browser.errors() == [], f"{name}: the console has errors")
    browser.size(1400)


def check_content(browser, path):
    browser.open(path)
    headings = [heading.text for heading in browser.driver.find_elements(By.CSS_SELECTOR, "h2")]
    for wanted in ["Result", "Repeat this run", "Rack", "Time line", "Operations", "Load of the links", "Faults", "Nodes", "Links", "Events"]:
        check(wanted in headings, f"no section {wanted}: {headings}")
    entries = browser.run("return Array.from(document.querySelectorAll('nav a'), (entry) => entry.textContent)")
    check(entries == headings, f"the contents differ from the headings: {entries}")
    targets = browser.run("return Array.from(document.querySelectorAll('nav a')).every((entry) => document.querySelector(entry.hash))")
    check(targets, "an entry of the contents leads nowhere")
    verdict = browser.find(".verdict").text
    check("verdict: pass" in verdict, verdict)
    check("rackloom sim" in browser.find(".command").text, "no command")
    marks = browser.run("return Array.from(document.querySelectorAll('.mark title'), (title) => title.textContent)")
    check(any("down n0--n1 begins" in mark and "until" in mark for mark in marks), f"no fault in the time line: {marks}")
    check(any("suspect -> down" in mark for mark in marks), f"no detection in the time line: {marks}")


def check_sorting(browser, path):
    browser.open(path)
    table = "Links, by direction"
    numbers = lambda column: [int(text.replace("\u202f", "")) for text in browser.column(table, column)]
    frames = 1
    heading = browser.heading(table, "frames")
    button = heading.find_element(By.TAG_NAME, "button")
    before = numbers(frames)
    check(len(set(before)) > 2, f"all links have equal frames: {before}")
    button.click()
    check(numbers(frames) == sorted(before, reverse=True), f"not descending: {numbers(frames)}")
    check(heading.get_attribute("aria-sort") == "descending", heading.get_attribute("aria-sort"))
    button.send_keys(Keys.ENTER)
    check(numbers(frames) == sorted(before), f"not ascending by key: {numbers(frames)}")
    check(heading.get_attribute("aria-sort") == "ascending", heading.get_attribute("aria-sort"))
    names = browser.heading(table, "direction")
    names.find_element(By.TAG_NAME, "button").send_keys(Keys.SPACE)
    check(browser.column(table, 0) == sorted(browser.column(table, 0)), "names are not sorted")
    check(heading.get_attribute("aria-sort") == "none", "two columns are sorted")
    # Times are sorted as numbers and not as texts.
    seconds = lambda text: float(text.split()[0]) * {"ns": 1e-9, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1}[text.split()[1]]
    before = [seconds(text) for text in browser.column("Events", 0)]
    button = browser.heading("Events", "at").find_element(By.TAG_NAME, "button")
    for is_reversed in [True, False]:
        button.click()
        after = [seconds(text) for text in browser.column("Events", 0)]
        check(after == sorted(before, reverse=is_reversed), f"events are not sorted by time: {after}")


def check_filter(browser, path):
    browser.open(path)
    table = "Links, by direction"
    all_rows = browser.column(table, 0)
    field = browser.run(
        "return Array.from(document.querySelectorAll('.bar')).find((bar) => bar.textContent.includes(arguments[0])).querySelector('input')", table
    )
    field.send_keys("N0->")
    expected = [name for name in all_rows if "n0->" in name]
    check(0 < len(expected) < len(all_rows), f"the filter has no effect: {all_rows}")
    check(browser.column(table, 0) == expected, f"filtered: {browser.column(table, 0)}")
    output = browser.run("return arguments[0].parentElement.querySelector('output').textContent", field)
    check(output == f"{len(expected)} of {len(all_rows)} rows", output)
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.DELETE)
    check(browser.column(table, 0) == all_rows, "rows are missing after the filter was emptied")


def check_keyboard(browser, path):
    """Goes through the page by the tabulator key: the first stop skips to the content, and each stop can be seen."""
    browser.size(360)
    browser.open(path)
    body = browser.find("body")
    body.send_keys(Keys.TAB)
    check(browser.run("return document.activeElement.className") == "skip", "the first stop does not skip to the content")
    stops = []
    for _ in range(400):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        stop = browser.run(
            """const one = document.activeElement;
            const style = getComputedStyle(one);
            return [one.tagName, one.className, style.outlineStyle];"""
        )
        if stop[0] == "BODY":
            break
        stops.append(stop)
    names = {tag for tag, _, _ in stops}
    check({"A", "BUTTON", "INPUT"} <= names, f"stops: {names}")
    check(any("scroll" in name for _, name, _ in stops), "boxes that scroll cannot be reached")
    check(all(outline != "none" for _, _, outline in stops), f"a stop cannot be seen: {stops}")
    browser.size(1400)


def check_copy(browser, path):
    browser.open(path)
    button = browser.find(".copied button")
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    button.click()
    time.sleep(0.2)
    check(button.text == "Copied", f"the button says {button.text}")
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], (error) => arguments[0](String(error)))")
    check(copied == browser.find(".command").text, f"copied: {copied}")


def brightness(browser, selector, name):
    """Returns the brightness of a colour of an element, from 0 to 255."""
    colour = browser.run("return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name)
    return sum(float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]) / 3


# Lines of the texts of numbers and headings in tables: a text with more lines than words is broken within a word. And tables that are
# wider than the paper: 720 px upright, 1020 px for wide ones.
BROKEN = """
const broken = [];
for (const cell of document.querySelectorAll("td.n, th")) {
  const [lines, texts] = [new Set(), document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)];
  while (texts.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    for (const box of range.getClientRects()) lines.add(Math.round(box.top / 4));
  }
  const words = cell.classList.contains("n") && cell.tagName === "TD" ? 1 : cell.textContent.trim().split(/[ \\u00a0-]+/).length;
  if (lines.size > words) broken.push(cell.textContent);
}
for (const table of document.querySelectorAll("table")) {
  const width = table.closest(".wide") ? 1020 : 720;
  if (table.getBoundingClientRect().width > width) broken.push(`${table.caption.textContent} is wider than the paper`);
}
return broken;
"""


def check_print(browser):
    """Checks the tables on paper. The media must be that of print."""
    browser.size(720)
    broken = browser.run(BROKEN)
    check(not broken, f"print: {broken[:8]}")
    browser.picture("faults-paper")
    browser.size(WIDTHS[-1])


def check_colours(browser, path):
    parts = [("body", "backgroundColor"), (".rk .paper", "fill")]
    for scheme, is_bright in [("light", True), ("dark", False)]:
        browser.colours(scheme)
        browser.open(path)
        for selector, name in parts:
            check((brightness(browser, selector, name) > 128) == is_bright, f"{scheme}: {selector} has the wrong brightness")
        check((brightness(browser, "body", "color") > 128) != is_bright, f"{scheme}: texts cannot be read")
        browser.picture(f"faults-{scheme}")
    # Paper is bright, also for readers of dark pages.
    browser.colours("dark", "print")
    for selector, name in parts:
        value = brightness(browser, selector, name)
        check(value > 250 or value == 0 and selector == "body", f"print: {selector} is dark")
    check(brightness(browser, "body", "color") < 60, "print: pale texts")
    shown = browser.run("return Array.from(document.querySelectorAll('nav, .bar, .copied button')).filter((one) => one.offsetParent !== null).length")
    check(shown == 0, f"print: {shown} parts for the screen")
    browser.picture("faults-print")
    check_print(browser)
    pdf = base64.b64decode(browser.command("Page.printToPDF", printBackground=True)["data"])
    (browser.folder / "faults.pdf").write_bytes(pdf)
    check(len(pdf) > 20_000, f"the print has only {len(pdf)} bytes")
    browser.colours("light")


def check_hostile(browser, path):
    browser.open(path)
    check("</script><script>" in browser.driver.title, f"title: {browser.driver.title}")
    scripts = browser.run("return [document.querySelectorAll('script').length, document.querySelectorAll('img').length]")
    check(scripts == [1, 0], f"scripts and images: {scripts}")
    cells = browser.column("Nodes and switches", 0)
    check(any(cell.startswith("</script>") or "</script><script>" in cell for cell in cells), f"the name is no text: {cells}")
    check("\u202e" not in browser.run("return document.documentElement.outerHTML"), "an override of direction is left")


def check_size(browser, path):
    size = path.stat().st_size
    check(size < BYTES_MAX, f"the page of 1024 nodes has {size} bytes")
    times = [browser.open(path) for _ in range(3)]
    check(max(times) < LOAD_S_MAX, f"the page of 1024 nodes took {times} s")
    check("500 of 8192 rows" in browser.find("main").text.replace("\u202f", ""), "rows that are left out are not stated")
    print(f"page of 1024 nodes: {size} bytes, complete after {', '.join(f'{seconds:.2f}' for seconds in times)} s")


def check_without_script(browser, path):
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    browser.driver.get(path.resolve().as_uri())
    check(not browser.driver.find_elements(By.CSS_SELECTOR, "button, input"), "a button without a script")
    check("n0->n1" in browser.find("main").text, "no content without a script")
    browser.command("Emulation.setScriptExecutionDisabled", value=False)


def main():
    program, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    pages = make_pages(program, folder)
    browser = Browser(folder)
    try:
        browser.colours("light")
        for name, path in pages.items():
            check_layout(browser, name, path)
        check_content(browser, pages["faults"])
        check_sorting(browser, pages["faults"])
        check_filter(browser, pages["faults"])
        check_keyboard(browser, pages["faults"])
        check_copy(browser, pages["faults"])
        check_colours(browser, pages["faults"])
        check_hostile(browser, pages["hostile"])
        check_without_script(browser, pages["faults"])
        check_size(browser, pages["large"])
        check(browser.errors() == [], "the console has errors")
    finally:
        browser.driver.quit()
    print(f"pages: {len(pages)} at {len(WIDTHS)} widths, without a failure; screenshots are in {folder}")


if __name__ == "__main__":
    main()
