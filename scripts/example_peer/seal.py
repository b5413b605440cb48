"""Authentication (section 15): tags of frames and messages under a key file, with the standard library's BLAKE2b."""

import hashlib
import os
import struct
import sys
import time

from .wire import mac


TAG_BYTES, TRAILER_BYTES, GREETING_BYTES = 8, 16, 64
GREETING, ANSWER_WANTED = 0x2C, 1
GREETING_S, REORDER = 0.002, 64
NO_NONCE = bytes(16)


def derived(key, *parts):
    return hashlib.blake2b(b"".join(parts), digest_size=32, key=key).digest()


def tag(key, data):
    return hashlib.blake2b(data, digest_size=TAG_BYTES, key=key).digest()


def rack_key(path):
    # W-90
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            sys.exit(f"peer: other users have access to {path}; hint: chmod 600 {path}")
        secret = file.read()
    if len(secret) < 32:
        sys.exit(f"peer: {path} has {len(secret)} bytes; hint: a key has at least 32")
    return hashlib.blake2b(b"rackloom 2 rack" + secret, digest_size=32).digest()


def message_key(key, host):
    return derived(key, b"rackloom 2 message", struct.pack("<H", host))


def region_seed(key):
    return struct.unpack("<Q", tag(derived(key, b"rackloom 2 regions"), b""))[0]


class LinkSeal:
    """One end of a link: agrees on a session with the other end, then seals and opens frames."""

    def __init__(self, settings):
        self.settings, self.key = settings, settings.key
        edge, me, other = settings.edge, settings.node, settings.neighbour
        self.to, self.back = struct.pack("<HHH", edge, me, other), struct.pack("<HHH", edge, other, me)
        self.greets = [derived(self.key, b"rackloom 2 greeting", direction) for direction in (self.to, self.back)]
        self.nonce = struct.pack(">Q", time.time_ns()) + os.urandom(8)
        self.theirs, self.received = NO_NONCE, NO_NONCE
        self.sender = self.receiver = None
        self.sent, self.highest, self.taken = 0, 0, set()
        self.greet_at, self.owed = 0.0, []

    def greetings(self, now):
        """The greetings that leave now (W-91)."""
        greetings, self.owed = [self.greeting(to) for to in self.owed], []
        if self.theirs == NO_NONCE and now >= self.greet_at:
            self.greet_at = now + GREETING_S
            greetings.append(self.greeting(self.received))
        return greetings

    def greeting(self, to):
        wanted = 0 if to == self.theirs != NO_NONCE else ANSWER_WANTED
        said = mac(self.settings.neighbour) + mac(self.settings.node)
        said += struct.pack(">H", self.settings.ether_type)
        said += struct.pack("<HBBH4x", 0x4C52, GREETING, wanted, self.settings.epoch) + self.nonce + to
        return said + tag(self.greets[0], said)

    def close(self, frame):
        # W-92
        self.sent += 1
        counted = frame + struct.pack("<Q", self.sent)
        return counted + tag(self.sender, counted)

    def open(self, data):
        """(frame, None), or (None, why not); (None, None) for a greeting."""
        if data[14:17] == b"\x52\x4c\x2c":
            return None, self.take_greeting(data)
        counted, its = data[:-TAG_BYTES], data[-TAG_BYTES:]
        if self.receiver is None or len(data) < TRAILER_BYTES or tag(self.receiver, counted) != its:
            return None, "bad tag"
        # W-93
        number = struct.unpack("<Q", counted[-8:])[0]
        if number in self.taken or number + REORDER <= self.highest or number == 0:
            return None, "replayed"
        self.highest = max(self.highest, number)
        self.taken.add(number)
        if len(self.taken) > 8 * REORDER:
            self.taken = {known for known in self.taken if known + REORDER > self.highest}
        return counted[:-8], None

    def take_greeting(self, data):
        # W-91
        said, its = data[:56], data[56:GREETING_BYTES]
        if len(data) < GREETING_BYTES or tag(self.greets[1], said) != its:
            return "bad tag"
        theirs, received, wants = data[24:40], data[40:56], data[17] & ANSWER_WANTED
        if theirs < self.theirs:
            return "replayed"
        if theirs != self.theirs and received != self.nonce:
            # It may be of an earlier run: only its echo of our own nonce would say that it is not.
            self.received, wants = max(self.received, theirs), True
        elif theirs != self.theirs:
            self.theirs = theirs
            self.sender = derived(self.key, b"rackloom 2 frame", self.to, self.nonce, theirs)
            self.receiver = derived(self.key, b"rackloom 2 frame", self.back, theirs, self.nonce)
            self.sent, self.highest, self.taken = 0, 0, set()
        if wants and theirs not in self.owed:
            self.owed = sorted(self.owed + [theirs])[-4:]
        return None
