#!/usr/bin/env python3
"""Drive a live rack from Python: inject a fault over its control socket, and assert on the events that it tells.

    RACKLOOM=target/debug/rackloom python3 scripts/live_rack.py

docs/control-socket.md is the law for the lines. Needs nothing beyond the standard library.
"""

import json
import os
import socket
import subprocess
import sys

RACKLOOM = os.environ.get("RACKLOOM", "rackloom")
NAME = f"live-rack-py-{os.getpid()}"
TIMEOUT_S = 20

FAULT = """name: blink
events:
  - {what: unplug, where: n0--n1, for: 300ms}
"""


class Rack:
    """One connection to a rack's control socket."""

    def __init__(self, name):
        session = os.environ.get("XDG_RUNTIME_DIR")
        directory = f"{session}/rackloom" if session else f"/tmp/rackloom-{os.getuid()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(f"{directory}/{name}/control")
        self.lines = self.socket.makefile("r", encoding="utf-8")

    def request(self, request):
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        return self.receive()

    def receive(self):
        return json.loads(self.lines.readline())

    def await_event(self, kind, text):
        """The next event of this kind with these words in it; a silence of TIMEOUT_S is an error."""
        while True:
            event = self.receive().get("event", {})
            if event.get("kind") == kind and text in event["text"]:
                return event


def main():
    subprocess.run([RACKLOOM, "up", "topologies/ring-4.yaml", "--name", NAME], check=True, stdout=subprocess.DEVNULL)
    try:
        listener, rack = Rack(NAME), Rack(NAME)
        assert "subscribed" in listener.request({"subscribe": {}})
        assert rack.request({"inject": {"script": FAULT}}) == {"injected": {"events": 1}}
        begun = listener.await_event("fault", "begins")
        down = listener.await_event("link-changed", "-> down")
        listener.await_event("fault", "ends")
        listener.await_event("link-changed", "-> up")
        assert down["at_ns"] >= begun["at_ns"]
        refused = rack.request({"inject": {"script": FAULT.replace("n0--n1", "n0--n9")}})
        assert refused["error"]["kind"] == "refused", refused
        after_ms = (down["at_ns"] - begun["at_ns"]) / 1e6
        print(f"the link was reported down {after_ms:.1f} ms after it was unplugged, and came back: as it should be")
    finally:
        subprocess.run([RACKLOOM, "down", NAME], stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
