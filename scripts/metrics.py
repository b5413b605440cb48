"""Checks what a Prometheus has scraped from a rack while faults come and go: metrics.py PORT RACKLOOM."""

import json
import subprocess
import sys
import time
import urllib.parse
import urllib.request

port, rackloom = sys.argv[1], sys.argv[2]
TIMEOUT_S = 60


def value(query):
    """Returns the value of the first series of a query, or None."""
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return None
    return float(found[0]["value"][1]) if found else None


def wait(query, holds, what):
    """Waits until a query has a value for which the condition holds."""
    until = time.monotonic() + TIMEOUT_S
    last = None
    while time.monotonic() < until:
        last = value(query)
        if last is not None and holds(last):
            print(f"{what}: {query} = {last:g}")
            return last
        time.sleep(0.25)
    raise SystemExit(f"error: {what}: `{query}` is {last} after {TIMEOUT_S} s")


def command(*arguments):
    subprocess.run([rackloom, *arguments], check=True, stdout=subprocess.DEVNULL)


links = wait("rackloom_links", lambda links: links > 0, "links of the rack")
wait("rackloom_links_up", lambda up: up == links, "all links are up")
wait("sum(rackloom_faults)", lambda faults: faults == 0, "no fault yet")
before = wait("sum(rackloom_link_sent_frames_total)", lambda frames: frames > 0, "frames")
wait("sum(rackloom_link_sent_frames_total)", lambda frames: frames > before, "a counter that grows")
command("inject", "link", "n0--s0", "--down")
wait("sum(rackloom_faults)", lambda faults: faults == 2, "a fault in both directions")
wait("rackloom_links_up", lambda up: up == links - 1, "one link is down")
wait('min(rackloom_link_up{link="n0->s0"})', lambda up: up == 0, "the link by name")
wait('sum(rackloom_link_dropped_frames_total{reason="injected"})', lambda lost: lost > 0, "lost frames")
command("heal")
wait("sum(rackloom_faults)", lambda faults: faults == 0, "the faults have ended")
wait("rackloom_links_up", lambda up: up == links, "all links are up again")
wait("sum(rackloom_member_processor_seconds_total)", lambda seconds: seconds > 0, "processor time")
