#!/usr/bin/env python3
"""A node of a rack, written from docs/wire-format.md alone: Python's standard library and NumPy.

It takes the seat of the second node in a rack of two nodes on two hosts, `wire: udp`, and does the litmus job there
(docs/litmus-job.md) together with a real node:

    rackloom run rack.yaml --host A &
    python3 scripts/peer.py --name my-rack --listen 127.0.0.2 --connect 127.0.0.1

It implements: one link without link-level retry, without pauses and with one channel; selective acknowledgement; order
by packet number. It gives up when the link goes down. It is an example and not fast. Reading order, in
scripts/example_peer: wire.py (bytes), streams.py (one class to one node), link.py (the neighbour), seal.py (authentication, with `--key-file`), supervisor.py (the
messages between hosts), node.py (operations), litmus.py (the job).
"""

import argparse
import os
import sys
import time

from example_peer.litmus import Litmus
from example_peer.node import Node
from example_peer.seal import rack_key, region_seed


def settings_from(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True, help="name of the rack")
    parser.add_argument("--listen", required=True, help="address of this host in the rack file")
    parser.add_argument("--connect", required=True, help="address of the other host")
    parser.add_argument("--port", type=int, default=26000, help="`udp_port` of the rack file")
    parser.add_argument("--frame-bytes", type=int, default=4240, help="`frame_bytes_max` of the rack file")
    parser.add_argument("--ether-type", type=lambda text: int(text, 0), default=0x88B5)
    parser.add_argument("--epoch", type=lambda text: int(text, 0), help="default: what the other supervisor says")
    parser.add_argument(
        "--key-file", default=os.environ.get("RACKLOOM_KEY_FILE"), help="`security: {key_file: ...}` of the rack file"
    )
    parser.add_argument("--seed", type=int, default=1, help="`seed` of the rack file")
    parser.add_argument("--rounds", type=int, default=1, help="`rounds` of the litmus")
    parser.add_argument("--bytes-max", type=int, default=65536, help="`bytes_max` of the litmus, in bytes")
    parser.add_argument(
        "--silence", type=float, default=10.0, help="seconds without a heartbeat until the peer gives up"
    )
    parser.add_argument("--loss", type=float, default=0.0, help="share of this node's frames that it drops, for tests")
    parser.add_argument(
        "--spoil", action="store_true", help="write one wrong byte, to see that the other node finds it"
    )
    parser.add_argument("--loss-seed", type=int, default=1)
    settings = parser.parse_args(arguments)
    settings.node, settings.neighbour, settings.host, settings.edge = 1, 0, 1, 0
    settings.key = rack_key(settings.key_file) if settings.key_file else None
    settings.key_seed = region_seed(settings.key) if settings.key else settings.seed
    return settings


def main(arguments):
    settings = settings_from(arguments)
    node = Node(settings)
    job = Litmus(node)
    node.until(lambda: node.link.neighbour_carries, "the neighbour", 30.0)
    job.run()
    # Section 8: served until the other host has finished and knows that this one has.
    node.supervisor.stage = 1
    node.until(lambda: node.supervisor.other()[2] >= 1, "the end on the other host")
    node.supervisor.stage = 2
    end = time.monotonic() + 2.0
    node.until(lambda: node.supervisor.other()[2] >= 2 or time.monotonic() > end, "the other host's last message")
    for _ in range(4):
        node.supervisor.say()
    print(f"peer: litmus passed: {job.verified} bytes verified, frames dropped: {dict(node.link.dropped)}")


if __name__ == "__main__":
    main(sys.argv[1:])
