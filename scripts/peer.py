#!/usr/bin/env python3
"""A node of a rack, written from docs/wire-format.md alone: Python's standard library and NumPy.

It takes the seat of the second node in a rack of two nodes on two hosts, `wire: udp`, and does the litmus job there
(scripts/peer_litmus.py, from docs/litmus-job.md) together with a real node:

    rackloom run rack.yaml --host A &
    python3 scripts/peer.py --name my-rack --listen 127.0.0.2 --connect 127.0.0.1

It implements: one link without link-level retry, without pauses and with one channel; selective acknowledgement; order
by packet number. It is an example and not fast. Reading order: Wire (bytes), Stream (one class to one node), Link (the
neighbour), Supervisor (the messages between hosts), Node (operations).
"""

import argparse
import collections
import random
import select
import socket
import struct
import sys
import time

import numpy

DATA, ACK, HELLO, HEARTBEAT, REPORT, CREDIT = 1, 2, 3, 4, 5, 6
REQUEST, REPLY, BULK, BULK_REPLY = range(4)
(SELECT, STORE, LOAD, ATOMIC, SIGNAL, PUT, GET, MESSAGE, OFFER, PULL, VOID) = range(1, 12)
LOAD_REPLY, ATOMIC_REPLY, GET_DATA, REFUSAL, RECEIVED, ACK_OPERATION = 16, 17, 18, 19, 20, 32
# Codes of a refusal.
(NO_REGION, BAD_KEY, WRONG_TENANT, OUT_OF_BOUNDS, PERMISSION, REVOKED, MISALIGNED, MEMORY, SOURCE) = range(1, 10)
FETCH_ADD, COMPARE_SWAP, SWAP, SET = range(4)
STATE_INIT, STATE_UP, STATE_DOWN, STATE_ADMIN_DOWN = 0, 1, 3, 5
U16, U32, U64 = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
# Section 6 and 13: what the two ends of a link of the udp wire grant each other.
CREDIT_UNIT, CREDIT_OVERHEAD, CREDIT_LIMIT = 256, 1024, 480
EAGER_BYTES, EAGER_BUDGET, EAGER_COST_MIN = 4096, 65536, 64
WINDOW, REORDER, LOAD_PIECE = 64, 256, 256
RETRANSMISSION_S, HEARTBEAT_S, HELLO_S, TICK_S = 0.04, 0.05, 0.01, 0.05


# ---- Wire: bytes (sections 1 to 4) ------------------------------------------------------------------------------------


def crc_tables(longest):
    """Table k maps a byte that is followed by k zero bytes to its share of a CRC-32C; and the share of the start value."""
    first = numpy.arange(256, dtype=numpy.uint32)
    for _ in range(8):
        first = numpy.where(first & 1, (first >> 1) ^ numpy.uint32(0x82F63B78), first >> 1)
    bytes_, start = numpy.empty((longest, 256), numpy.uint32), numpy.empty(longest + 1, numpy.uint32)
    row, value = first, numpy.uint32(U32)
    for k in range(longest):
        bytes_[k], start[k] = row, value
        row = (row >> numpy.uint32(8)) ^ first[row & 0xFF]
        value = (value >> numpy.uint32(8)) ^ first[value & 0xFF]
    start[longest] = value
    return bytes_, start


CRC_BYTES, CRC_START = crc_tables(9100)
CRC_PLACES = numpy.arange(9100)


def crc32c(data):
    n = len(data)
    shares = CRC_BYTES[CRC_PLACES[:n][::-1], numpy.frombuffer(bytes(data), numpy.uint8)]
    return int(numpy.bitwise_xor.reduce(shares)) ^ int(CRC_START[n]) ^ U32


def murmur_finaliser(word):
    word = ((word ^ word >> 16) * 0x85EBCA6B) & U32
    word = ((word ^ word >> 13) * 0xC2B2AE35) & U32
    return word ^ word >> 16


def tag_of(incarnation):
    return (incarnation ^ incarnation >> 32) & U32


def mark_of(incarnation):
    """The 14 bits by which a report names an incarnation (section 5)."""
    return murmur_finaliser((incarnation & U32) ^ murmur_finaliser(incarnation >> 32)) >> 18


def fingerprint(origin, incarnation, number):
    """What one report adds, by exclusive or, to the digest of a heartbeat (W-80)."""
    word = incarnation ^ origin << 48 ^ number << 16
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & U64
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & U64
    return (word ^ word >> 31) & U32


def mac(member, plane=0):
    return bytes((2, 0x52, 0x4C, plane, member >> 8, member & 255))


def is_ahead(a, b):
    return a != b and (a - b & U32) < 1 << 31


def operation(kind, field, payload=b"", flags=0):
    return struct.pack("<BBHQ", kind, flags, len(payload), field) + payload


def read_operations(body):
    """The list of (kind, flags, field, payload), or None if it does not end where the frame ends (W-12)."""
    found, at = [], 0
    while at < len(body):
        if len(body) - at < 12:
            return None
        kind, flags, length, field = struct.unpack_from("<BBHQ", body, at)
        at += 12 + length
        if at > len(body) or not (SELECT <= kind <= VOID or LOAD_REPLY <= kind <= RECEIVED or kind == ACK_OPERATION):
            return None
        found.append((kind, flags, field, body[at - length : at]))
    return found


Fabric = collections.namedtuple(
    "Fabric",
    "destination source klass count tenant entropy traffic ack_class source_tag destination_tag psn first ack_psn ack_operation",
)
FABRIC = struct.Struct("<HHBBHHBBIIIIII")
LINK = struct.Struct("<HBBHHBBHIIII")


# ---- Stream: the packets of one class to and from the other node (section 7) -------------------------------------------


class Packet:
    def __init__(self, first, count, body):
        self.first, self.count, self.body = first, count, body
        self.sent_at, self.is_held = None, False


class Sender:
    """Numbers packets and operations, keeps them until they are acknowledged, sends them again (W-21, W-22, W-36)."""

    def __init__(self):
        self.packets = collections.deque()
        self.base, self.next_operation, self.visible, self.progress_at = 0, 0, 0, 0.0

    def append(self, count, body):
        first = self.next_operation
        self.packets.append(Packet(first, count, body))
        self.next_operation = first + count & U32
        return first

    def due(self, now):
        """The next (packet number, packet) that may leave now."""
        for index, packet in enumerate(self.packets):
            if index >= WINDOW:
                break
            if not packet.is_held and (packet.sent_at is None or now - packet.sent_at > RETRANSMISSION_S):
                return self.base + index & U32, packet
        if not self.packets and self.visible != self.next_operation and now - self.progress_at > 5 * RETRANSMISSION_S:
            # W-84: everything is taken, not everything is visible: an empty packet asks for the acknowledgement.
            self.progress_at = now
            self.append(0, b"")
            return self.due(now)
        return None

    def take_ack(self, now, psn, visible, bitmap):
        taken = psn - self.base & U32
        if taken > len(self.packets):
            return
        for _ in range(taken):
            self.packets.popleft()
        self.base = psn
        first_unsent = next((p.first for p in self.packets if p.sent_at is None), self.next_operation)
        if (visible - self.visible & U32) <= (first_unsent - self.visible & U32):
            if visible != self.visible or taken:
                self.progress_at = now
            self.visible = visible
        held = [bit + 1 for bit in range(8 * len(bitmap)) if bitmap[bit // 8] >> bit % 8 & 1]
        for index in held:
            if index < len(self.packets):
                self.packets[index].is_held = True
        # Three later ones are there: this one is lost. A second time only after a while, its first resend may be under way.
        for index, packet in enumerate(self.packets):
            overtaken = sum(1 for place in held if place > index) >= 3
            if overtaken and not packet.is_held and packet.sent_at and now - packet.sent_at > RETRANSMISSION_S / 4:
                packet.sent_at = -1.0


class Receiver:
    """Takes each packet once and in order; keeps those behind a hole (W-21, W-22)."""

    def __init__(self):
        self.expected, self.held, self.owes_ack, self.is_marked = 0, {}, False, False
        self.served = 0

    def take(self, psn, packet):
        """The packets that are to be carried out now, in order."""
        ahead = psn - self.expected & U32
        self.owes_ack = True
        if ahead >= REORDER:
            return
        self.held[psn] = packet
        while self.expected in self.held:
            packet = self.held.pop(self.expected)
            self.expected = self.expected + 1 & U32
            yield packet

    def bitmap(self):
        bits = bytearray()
        for psn in self.held:
            bit = (psn - self.expected & U32) - 1
            bits.extend(bytes(max(0, bit // 8 + 1 - len(bits))))
            bits[bit // 8] |= 1 << bit % 8
        return bytes(bits[:32])


# ---- Link: the neighbour (sections 2, 3, 5, 6) --------------------------------------------------------------------------


class Link:
    def __init__(self, settings, deliver):
        self.settings, self.deliver = settings, deliver
        self.me, self.other = settings.node, settings.neighbour
        self.incarnation = time.time_ns()
        self.tag = tag_of(self.incarnation)
        self.neighbour, self.is_heard, self.state = 0, False, STATE_INIT
        self.sequence = self.received = self.consumed = self.freed_by_neighbour = self.neighbour_consumed = 0
        self.heartbeats = self.heartbeat_heard = self.disagreements = 0
        self.hello_at = self.heartbeat_at = self.stalled_at = self.heard_at = 0.0
        self.answer_owed = self.credit_owed = False
        self.reports, self.report_queue, self.number = {}, [], 0
        self.neighbour_carries, self.left = False, False
        self.random = random.Random(settings.loss_seed)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind((settings.listen, settings.port + 1 + settings.edge))
        self.socket.connect((settings.connect, settings.port + 1 + settings.edge))
        self.socket.setblocking(False)
        self.dropped = collections.Counter()

    # -- sending

    def header(self, kind, length, flags=0, numbered=False, cost=0):
        if numbered:
            self.sequence, self.consumed = self.sequence + 1 & U32, self.consumed + cost & U32
        hops = 255 if kind in (DATA, ACK) else 1
        fields = (0x4C52, 0x10 | kind, flags, self.settings.epoch, length, hops, 0, self.tag & U16)
        link = LINK.pack(*fields, self.sequence, self.received, self.consumed, self.neighbour_consumed)
        return mac(self.other) + mac(self.me) + struct.pack(">H", self.settings.ether_type), link

    def transmit(self, frame):
        if self.random.random() < self.settings.loss:
            self.dropped["injected"] += 1
            return
        try:
            self.socket.send(frame)
        except (BlockingIOError, ConnectionRefusedError):
            self.dropped["refused"] += 1

    def control(self, kind, body):
        ethernet, link = self.header(kind, len(body))
        self.transmit(ethernet + link + struct.pack("<I", crc32c(link + body)) + body)

    def admits(self, cost):
        # W-19
        return self.state == STATE_UP and (self.consumed + cost - self.freed_by_neighbour & U32) <= CREDIT_LIMIT

    def routed(self, kind, fabric, body):
        """A data or ack frame. Returns False if the link has no credits for it now."""
        length = 86 + len(body)
        cost = -(-(length + CREDIT_OVERHEAD) // CREDIT_UNIT) if kind == DATA else 0
        if not self.admits(cost):
            return False
        ethernet, link = self.header(kind, length - 46, 1, kind == DATA, cost)
        packed = FABRIC.pack(*fabric)
        # W-9
        end = struct.pack("<I", crc32c(packed + body))
        self.transmit(ethernet + link + struct.pack("<I", crc32c(link)) + packed + end + body)
        return True

    def hello(self, now):
        self.answer_owed, self.hello_at = False, now + HELLO_S
        wanted = 0 if self.is_heard else 1
        body = struct.pack("<HHBBHQQI", self.me, 0, 0, wanted, self.settings.frame_bytes, self.incarnation, self.neighbour, 1)
        self.control(HELLO, body)

    def say_heartbeat(self, now):
        self.heartbeats += 1
        self.heartbeat_at = now + HEARTBEAT_S
        body = struct.pack("<IIHHI", self.heartbeats, self.heartbeat_heard, self.state, 1, self.digest())
        self.control(HEARTBEAT, body)

    def report_self(self, is_farewell=False):
        self.number += 1
        carries = 1 | mark_of(self.neighbour) << 2 if self.state == STATE_UP else 0
        self.reports[self.me] = (self.incarnation, self.number, [(self.settings.edge, 2 if is_farewell else carries)])
        self.report_queue.append(self.me)

    def say_reports(self):
        for origin in self.report_queue:
            incarnation, number, edges = self.reports[origin]
            entries = b"".join(struct.pack("<HH", *edge) for edge in edges)
            self.control(REPORT, struct.pack("<HHQI", origin, len(edges), incarnation, number) + entries)
        self.report_queue = []

    def digest(self):
        # W-80
        value = 0
        for origin, (incarnation, number, _) in self.reports.items():
            value ^= fingerprint(origin, incarnation, number)
        return value

    def pump(self, now):
        if self.answer_owed or (not self.is_heard and now >= self.hello_at):
            self.hello(now)
        if self.state != STATE_INIT:
            if now >= self.heartbeat_at:
                self.say_heartbeat(now)
            self.say_reports()
            if self.credit_owed:
                self.credit_owed = False
                self.control(CREDIT, b"\0")
            if self.state == STATE_UP and now - self.heard_at > self.settings.silence and not self.left:
                sys.exit("peer: the neighbour is silent; hint: is the rack still running on the other host?")

    def ask_for_credits(self, now):
        if now - self.stalled_at > 0.02:
            self.stalled_at = now
            self.control(CREDIT, b"\1")

    # -- receiving

    def receive(self, now):
        """Take everything that has come. Returns whether there was anything."""
        count = 0
        while count < 256:
            try:
                frame = self.socket.recv(65536)
            except (BlockingIOError, ConnectionRefusedError):
                break
            count += 1
            reason = self.take(now, frame)
            if reason:
                self.dropped[reason] += 1
        return count > 0

    def take(self, now, frame):
        """Judge one frame; the reason if it is dropped (section 3)."""
        if len(frame) < 46 or struct.unpack_from(">H", frame, 12)[0] != self.settings.ether_type:
            return "short or foreign"
        if frame[:6] != mac(self.me) or frame[6:12] != mac(self.other):
            return "wrong address"
        magic, version, flags, epoch, length, _, channel, session, sequence, _, consumed, freed = LINK.unpack_from(frame, 14)
        kind, end = version & 15, 46 + length
        if magic != 0x4C52 or version >> 4 != 1 or not 1 <= kind <= 11 or len(frame) < end:
            return "malformed"
        is_routed = kind in (DATA, ACK)
        covered = frame[14:42] + (frame[46:end] if not is_routed or flags & 4 else b"")
        has_check = not (is_routed and flags & 2)
        if struct.unpack_from("<I", frame, 42)[0] != (crc32c(covered) if has_check else 0):
            return "hop check"
        if epoch != self.settings.epoch:
            return "wrong epoch"
        body = frame[46:end]
        if kind == HELLO:
            return self.take_hello(now, body)
        if not self.neighbour or session != tag_of(self.neighbour) & U16:
            return "stale session"
        if channel != 0:
            return "no such channel"
        # W-20
        if is_ahead(consumed, self.neighbour_consumed):
            self.neighbour_consumed = consumed
        if is_ahead(freed, self.freed_by_neighbour) and not is_ahead(freed, self.consumed):
            self.freed_by_neighbour = freed
        if kind == HEARTBEAT:
            return self.take_heartbeat(now, body)
        if kind == REPORT:
            return self.take_report(body)
        if kind == CREDIT:
            self.credit_owed |= bool(body and body[0])
            return None
        if not is_routed:
            return "not for this link"
        if kind == DATA and is_ahead(sequence, self.received):
            self.received = sequence
        return self.take_routed(now, kind, flags, body)

    def take_routed(self, now, kind, flags, body):
        if len(body) < 40:
            return "short or foreign"
        fabric, operations = Fabric(*FABRIC.unpack_from(body)), body[40:]
        if not flags & 1 or struct.unpack_from("<I", body, 36)[0] != crc32c(body[:36] + operations):
            return "end-to-end check"
        known = self.reports.get(self.other)
        # W-7
        is_right = known and (fabric.source, fabric.destination, fabric.tenant) == (self.other, self.me, 0)
        if not is_right or fabric.source_tag != tag_of(known[0]) or fabric.destination_tag != self.tag:
            return "stale incarnation"
        operations = read_operations(operations)
        if operations is None or fabric.klass > BULK_REPLY:
            return "malformed"
        unnumbered = ACK_OPERATION if kind == DATA else SELECT
        numbered = sum(1 for entry in operations if entry[0] != SELECT)
        if any(entry[0] == unnumbered for entry in operations) or (kind == DATA and numbered != fabric.count):
            return "malformed"
        self.deliver(now, kind, fabric, operations, bool(flags & 16))
        return None

    def take_hello(self, now, body):
        if len(body) < 28:
            return "malformed"
        node, _, plane, wanted, frame_bytes, incarnation, heard, options = struct.unpack_from("<HHBBHQQI", body)
        # W-16
        if (node, plane, frame_bytes, options) != (self.other, 0, self.settings.frame_bytes, 1):
            return "stranger"
        if incarnation < self.neighbour:
            return "stale hello"
        if incarnation > self.neighbour:
            if self.state != STATE_INIT:
                sys.exit("peer: the neighbour has restarted; hint: start both again")
            self.neighbour, self.is_heard = incarnation, False
        self.answer_owed |= wanted != 0
        self.is_heard |= heard == self.incarnation
        if self.is_heard and self.state == STATE_INIT:
            self.state, self.heard_at = STATE_UP, now
            self.report_self()
        return None

    def take_heartbeat(self, now, body):
        if len(body) < 16:
            return "malformed"
        self.heartbeat_heard, _, state, _, digest = struct.unpack_from("<IIHHI", body)
        self.heard_at = now
        if state in (STATE_DOWN, STATE_ADMIN_DOWN) and self.state == STATE_UP and not self.left:
            sys.exit("peer: the neighbour has taken the link down; hint: longer heartbeats for a busy machine")
        if state != STATE_UP:
            self.heartbeat_at = now
        self.disagreements = self.disagreements + 1 if digest != self.digest() else 0
        # W-18
        if self.disagreements >= 2:
            self.disagreements, self.report_queue = 0, list(self.reports)
        return None

    def take_report(self, body):
        if len(body) < 16:
            return "malformed"
        origin, count, incarnation, number = struct.unpack_from("<HHQI", body)
        if len(body) < 16 + 4 * count:
            return "malformed"
        edges = [struct.unpack_from("<HH", body, 16 + 4 * place) for place in range(count)]
        if origin != self.other or any(edge != self.settings.edge for edge, _ in edges):
            return None
        known = self.reports.get(origin)
        if known and (incarnation, number) <= known[:2]:
            return None
        self.reports[origin] = (incarnation, number, edges)
        if known and incarnation != known[0]:
            sys.exit("peer: the neighbour has restarted; hint: start both again")
        self.neighbour_carries = any(state & 3 == 1 and state >> 2 == mark_of(self.incarnation) for _, state in edges)
        if edges and all(state & 3 == 2 for _, state in edges):
            self.left, self.heartbeat_at = True, 0.0
        return None


# ---- Supervisor: the messages between hosts (section 8) -----------------------------------------------------------------


class Supervisor:
    def __init__(self, settings):
        self.settings = settings
        self.name = 0x811C9DC5
        for byte in settings.name.encode():
            self.name = ((self.name ^ byte) * 0x01000193) & U32
        # By host: incarnation of its supervisor, messages sent, stage.
        self.hosts = [(0, 0, 0), (0, 0, 0)]
        self.hosts[settings.host] = (time.time_ns(), 0, 0)
        self.due, self.stage = 0.0, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((settings.listen, settings.port))
        self.socket.setblocking(False)

    def other(self):
        return self.hosts[1 - self.settings.host]

    def pump(self, now):
        while True:
            try:
                frame, source = self.socket.recvfrom(65536)
            except BlockingIOError:
                break
            except ConnectionRefusedError:
                continue
            if source[0] == self.settings.connect:
                self.take(frame)
        if now >= self.due:
            self.due = now + TICK_S
            self.say()

    def say(self):
        incarnation, sent, _ = self.hosts[self.settings.host]
        self.hosts[self.settings.host] = (incarnation, sent + 1, self.stage)
        mine = self.settings.host
        frame = bytes((3, 0x52, 0x4C, 255, 255, 255, 2, 0x52, 0x4C, 255, 0, mine))
        frame += struct.pack(">H", self.settings.ether_type) + b"RLHW"
        frame += struct.pack("<BBHIHH", 2, len(self.hosts), self.settings.epoch or 0, self.name, mine, 0)
        frame += b"".join(struct.pack("<QIB3x", *host) for host in self.hosts)
        frame += struct.pack("<I", crc32c(frame))
        # W-62
        length = self.settings.frame_bytes if sent % 2 == 0 else 60
        if self.settings.epoch is not None:
            try:
                self.socket.sendto(frame.ljust(length, b"\0"), (self.settings.connect, self.settings.port))
            except (BlockingIOError, ConnectionRefusedError):
                pass

    def take(self, frame):
        end = 30 + 16 * len(self.hosts)
        if len(frame) < end + 4 or frame[14:18] != b"RLHW" or frame[18] != 2 or frame[19] != len(self.hosts):
            return
        epoch, name, speaker = struct.unpack_from("<HIH", frame, 20)
        # W-60
        if name != self.name or struct.unpack_from("<I", frame, end)[0] != crc32c(frame[:end]):
            return
        if speaker == 1 - self.settings.host and self.settings.epoch is None:
            # W-83: who does not compute the epoch takes it from the other supervisor.
            self.settings.epoch = epoch
        if epoch == self.settings.epoch and speaker != self.settings.host:
            other = 1 - self.settings.host
            self.hosts[other] = max(self.hosts[other], struct.unpack_from("<QIB", frame, 30 + 16 * other))


# ---- Node: operations (section 4) ---------------------------------------------------------------------------------------


class Region:
    def __init__(self, length, key, access=""):
        self.bytes, self.key, self.access = bytearray(length), key, access


class Refused(Exception):
    def __init__(self, code):
        super().__init__(f"refused with code {code}")
        self.code = code


class Pending:
    """An operation that has begun. `result` is its value, or a Refused."""

    def __init__(self):
        self.is_over, self.result = False, None

    def end(self, result=None):
        if not self.is_over:
            self.is_over, self.result = True, result


class Node:
    def __init__(self, settings):
        self.settings = settings
        self.supervisor = Supervisor(settings)
        self.link = Link(settings, self.deliver)
        self.senders, self.receivers = [Sender() for _ in range(4)], [Receiver() for _ in range(4)]
        self.regions, self.refused = {}, collections.Counter()
        # By class: operations that wait for the acknowledgement of their last number: (first, last, pending, errors).
        self.unseen = [[] for _ in range(4)]
        # By (request class, number): (pending, buffer or None, base offset, [bytes missing]).
        self.replies = {}
        # Refusals not yet acknowledged: (class, number, reply class, psn); and what was refused, for signals.
        self.holds, self.spoilt = [], {}
        self.offers, self.offered, self.eager_used = {}, {}, 0
        self.unexpected, self.posted_error = [], None

    # -- the loop

    def step(self, wait=0.002):
        sockets = [self.link.socket, self.supervisor.socket]
        select.select(sockets, [], [], wait)
        now = time.monotonic()
        self.supervisor.pump(now)
        if self.settings.epoch is None:
            return
        self.link.receive(now)
        self.acknowledge()
        self.link.pump(now)
        self.send_data(now)

    def until(self, is_true, what, patience=60.0):
        end = time.monotonic() + patience
        while not is_true():
            if time.monotonic() > end:
                sys.exit(f"peer: waited {patience} s for {what}; hint: see the other host's report")
            self.step()

    def fabric(self, klass, count, psn=0, first=0, traffic=0):
        life = self.link.reports[self.link.other][0]
        tags = (self.link.tag, tag_of(life))
        return (self.link.other, self.link.me, klass, count, 0, 0, traffic, 255, *tags, psn, first, 0, 0)

    def send_data(self, now):
        if not self.link.neighbour_carries:
            return
        for klass in (REPLY, BULK_REPLY, REQUEST, BULK):
            sender = self.senders[klass]
            while (found := sender.due(now)) is not None:
                psn, packet = found
                again = 0 if packet.sent_at is None else 2
                fabric = self.fabric(klass, packet.count, psn, packet.first, 1 | again)
                if not self.link.routed(DATA, fabric, packet.body):
                    self.link.ask_for_credits(now)
                    return
                packet.sent_at = now

    def acknowledge(self):
        body, count = b"", 0
        for klass, receiver in enumerate(self.receivers):
            if receiver.owes_ack:
                receiver.owes_ack = False
                flags = klass | (64 if receiver.is_marked else 0)
                receiver.is_marked = False
                field = receiver.expected | self.acknowledged(klass) << 32
                body, count = body + operation(ACK_OPERATION, field, receiver.bitmap(), flags), count + 1
        if count and self.link.neighbour_carries:
            self.link.routed(ACK, self.fabric(REPLY, count), body)

    def acknowledged(self, klass):
        """The next operation that is not visible: W-14 keeps it before a refusal that has not arrived."""
        held = [number for of, number, _, _ in self.holds if of == klass]
        served = self.receivers[klass].served
        return min(held + [served], key=lambda number: number - served & U32 if number != served else 1 << 33)

    # -- what comes in

    def deliver(self, now, kind, fabric, operations, is_marked):
        if kind == ACK:
            for _, flags, field, bitmap in operations:
                self.take_ack(now, flags & 63, field & U32, field >> 32, bitmap)
            return
        if fabric.ack_class <= BULK_REPLY:
            self.take_ack(now, fabric.ack_class, fabric.ack_psn, fabric.ack_operation, b"")
        receiver = self.receivers[fabric.klass]
        receiver.is_marked |= is_marked
        for first, packet in receiver.take(fabric.psn, (fabric.first, operations)):
            self.carry_out(fabric.klass, first, packet)

    def take_ack(self, now, klass, psn, visible, bitmap):
        sender = self.senders[klass]
        sender.take_ack(now, psn, visible, bitmap)
        while self.unseen[klass] and not is_ahead(self.unseen[klass][0][1] + 1 & U32, sender.visible):
            _, _, pending, errors = self.unseen[klass].pop(0)
            pending.end(Refused(errors[0]) if errors else None)
        before = len(self.holds)
        self.holds = [hold for hold in self.holds if hold[2] != klass or not is_ahead(sender.base, hold[3])]
        if len(self.holds) < before:
            self.receivers[klass - 1].owes_ack = True

    def carry_out(self, klass, number, operations):
        region_of = None
        self.receivers[klass].served = number
        for kind, flags, field, payload in operations:
            if kind == SELECT:
                region_of = (struct.unpack("<I", payload)[0], field)
                continue
            if klass in (REPLY, BULK_REPLY):
                self.take_reply(klass - 1, kind, flags, field, payload)
            else:
                try:
                    self.serve(klass, number, region_of, kind, flags, field, payload)
                except Refused as refused:
                    self.refuse(klass, number, refused.code)
            number = number + 1 & U32
            self.receivers[klass].served = number

    def refuse(self, klass, number, code):
        self.refused[code] += 1
        self.spoilt[klass, number] = code
        self.reply(klass + 1, operation(REFUSAL, number | klass << 32, flags=code))
        sender = self.senders[klass + 1]
        self.holds.append((klass, number, klass + 1, sender.base + len(sender.packets) - 1 & U32))

    def reply(self, klass, body):
        self.senders[klass].append(1, body)

    def check(self, region_of, access, offset, length):
        """W-13: the region that may be touched."""
        if region_of is None or region_of[0] not in self.regions:
            raise Refused(NO_REGION)
        region = self.regions[region_of[0]]
        if region.key != region_of[1]:
            raise Refused(BAD_KEY)
        if access not in region.access:
            raise Refused(PERMISSION)
        if offset + length > len(region.bytes):
            raise Refused(OUT_OF_BOUNDS)
        return region

    def serve(self, klass, number, region_of, kind, flags, field, payload):
        if kind == STORE:
            region = self.check(region_of, "w", field, len(payload))
            region.bytes[field : field + len(payload)] = payload
        elif kind == PUT:
            start, total = struct.unpack_from("<QQ", payload)
            region, data = self.check(region_of, "w", start, total), payload[16:]
            if field < start or field + len(data) > start + total:
                raise Refused(OUT_OF_BOUNDS)
            region.bytes[field : field + len(data)] = data
        elif kind == LOAD:
            length = struct.unpack("<I", payload)[0]
            region = self.check(region_of, "r", field, length)
            self.reply(REPLY, operation(LOAD_REPLY, number, bytes(region.bytes[field : field + length])))
        elif kind == ATOMIC:
            operand, compare = struct.unpack("<QQ", payload)
            old = self.atomic(region_of, "a", field, flags, operand, compare)
            self.reply(klass + 1, operation(ATOMIC_REPLY, number, struct.pack("<Q", old)))
        elif kind == SIGNAL:
            operand, counted = struct.unpack("<QI", payload)
            self.check(region_of, "w", field, 8)
            # W-40
            for place in range(counted):
                if (klass, number - 1 - place & U32) in self.spoilt:
                    raise Refused(self.spoilt[klass, number - 1 - place & U32])
            self.atomic(region_of, "w", field, 0x80 | (FETCH_ADD if flags == 1 else SET), operand, 0)
        elif kind == GET:
            length = struct.unpack("<I", payload)[0]
            region = self.check(region_of, "r", field, length)
            self.send_get_data(number, bytes(region.bytes[field : field + length]))
        elif kind == MESSAGE:
            self.unexpected.append((field, payload, number, None))
        elif kind == OFFER:
            self.unexpected.append((field, None, number, struct.unpack("<I", payload)[0]))
        elif kind == PULL:
            length, data = struct.unpack("<I", payload)[0], self.offers.get(field)
            if data is None:
                raise Refused(NO_REGION)
            if length > len(data):
                raise Refused(OUT_OF_BOUNDS)
            self.send_get_data(number, data[:length])
        elif kind == VOID:
            # W-53
            if klass == REQUEST:
                self.received(number, max(EAGER_COST_MIN, len(payload)))
            raise Refused(SOURCE)
        else:
            raise Refused(PERMISSION)

    def atomic(self, region_of, access, offset, flags, operand, compare):
        width = 8 if flags & 0x80 else 4
        region = self.check(region_of, access, offset, width)
        if offset % width:
            raise Refused(MISALIGNED)
        mask = (1 << 8 * width) - 1
        old = int.from_bytes(region.bytes[offset : offset + width], "little")
        new = {FETCH_ADD: old + operand, SWAP: operand, SET: operand}.get(flags & 0x7F)
        if flags & 0x7F == COMPARE_SWAP:
            new = operand if old == compare & mask else old
        region.bytes[offset : offset + width] = (new & mask).to_bytes(width, "little")
        return old

    def piece_bytes(self):
        return (self.settings.frame_bytes - 86 - 16 - 28) // 256 * 256

    def send_get_data(self, number, data):
        for at in range(0, len(data), self.piece_bytes()):
            piece = data[at : at + self.piece_bytes()]
            self.reply(BULK_REPLY, operation(GET_DATA, number | at << 32, piece))

    def received(self, number, cost):
        self.reply(REPLY, operation(RECEIVED, number, struct.pack("<Q", cost)))

    def take_reply(self, request, kind, flags, field, payload):
        number = field & U32
        if kind in (REFUSAL, VOID):
            of = field >> 32 if kind == REFUSAL else request
            code = flags if kind == REFUSAL else SOURCE
            for first, last, _, errors in self.unseen[of]:
                if (number - first & U32) <= (last - first & U32):
                    errors.append(code)
            if (of, number) in self.replies:
                self.replies.pop((of, number))[0].end(Refused(code))
            if number in self.offered and of == REQUEST:
                self.offers.pop(number, None)
                self.offered.pop(number).end(Refused(code))
        elif kind == RECEIVED:
            if number in self.offered:
                self.offers.pop(number, None)
                self.offered.pop(number).end()
            else:
                self.eager_used -= struct.unpack("<Q", payload)[0]
        elif (request, number) in self.replies:
            pending, buffer, base, missing = self.replies[request, number]
            if kind == ATOMIC_REPLY:
                missing[0], result = 0, struct.unpack("<Q", payload)[0]
            else:
                at = base + (field >> 32 if kind == GET_DATA else 0)
                buffer[at : at + len(payload)] = payload
                missing[0], result = missing[0] - len(payload), buffer
            if missing[0] <= 0:
                del self.replies[request, number]
                pending.end(result)

    # -- what this node asks of the other

    def address(self, region, key):
        return operation(SELECT, key, struct.pack("<I", region))

    def watch(self, klass, first, last):
        pending = Pending()
        self.unseen[klass].append((first, last, pending, []))
        return pending

    def store(self, region, key, offset, data):
        """Ends when the bytes are visible."""
        room, first, last = self.settings.frame_bytes - 86 - 16 - 12, None, 0
        for at in range(0, len(data), room):
            piece = operation(STORE, offset + at & U64, data[at : at + room])
            last = self.senders[REQUEST].append(1, self.address(region, key) + piece)
            first = last if first is None else first
        return self.watch(REQUEST, first, last)

    def put(self, region, key, offset, data, signal=None):
        """`signal`: (region, key, offset, kind, value), raised behind the data."""
        sender, parts, first, last = self.senders[BULK], 0, None, 0
        for at in range(0, len(data), self.piece_bytes()):
            piece = struct.pack("<QQ", offset, len(data)) + data[at : at + self.piece_bytes()]
            last = sender.append(1, self.address(region, key) + operation(PUT, offset + at, piece))
            first, parts = last if first is None else first, parts + 1
        if signal:
            region, key, offset, kind, value = signal
            body = operation(SIGNAL, offset, struct.pack("<QI", value, parts), 1 if kind == FETCH_ADD else 0)
            last = sender.append(1, self.address(region, key) + body)
            first = last if first is None else first
        return self.watch(BULK, first, last)

    def load(self, region, key, offset, length):
        """Pendings of the pieces, which share one buffer: a load crosses no multiple of 256 bytes."""
        buffer, pendings, at = bytearray(length), [], 0
        while at < length:
            piece = min(LOAD_PIECE - (offset + at) % LOAD_PIECE, length - at)
            body = self.address(region, key) + operation(LOAD, offset + at, struct.pack("<I", piece))
            pendings.append(Pending())
            self.replies[REQUEST, self.senders[REQUEST].append(1, body)] = (pendings[-1], buffer, at, [piece])
            at += piece
        return pendings

    def get(self, region, key, offset, length):
        body = self.address(region, key) + operation(GET, offset, struct.pack("<I", length))
        pending = Pending()
        self.replies[BULK, self.senders[BULK].append(1, body)] = (pending, bytearray(length), 0, [length])
        return pending

    def atomic_at(self, region, key, offset, kind, width, operand, compare=0):
        body = operation(ATOMIC, offset, struct.pack("<QQ", operand, compare), kind | (0x80 if width == 8 else 0))
        pending = Pending()
        number = self.senders[REQUEST].append(1, self.address(region, key) + body)
        self.replies[REQUEST, number] = (pending, None, 0, [1])
        return pending

    def send(self, tag, data):
        # W-24
        cost = max(EAGER_COST_MIN, len(data))
        if len(data) <= min(EAGER_BYTES, self.piece_bytes()) and self.eager_used + cost <= EAGER_BUDGET:
            self.eager_used += cost
            number = self.senders[REQUEST].append(1, operation(MESSAGE, tag, data))
            return self.watch(REQUEST, number, number)
        number = self.senders[REQUEST].append(1, operation(OFFER, tag, struct.pack("<I", len(data))))
        self.offers[number], self.offered[number] = data, Pending()
        return self.offered[number]

    def receive(self, tag, ignore=0):
        """The oldest message that fits: (tag, data)."""
        fits = lambda: next((m for m in self.unexpected if (m[0] ^ tag) & ~ignore & U64 == 0), None)
        self.until(lambda: fits() is not None, f"a message of tag {tag:#x}")
        message = fits()
        self.unexpected.remove(message)
        found, data, number, length = message
        if data is not None:
            self.received(number, max(EAGER_COST_MIN, len(data)))
            return found, bytes(data)
        if length == 0:
            self.received(number, EAGER_COST_MIN)
            return found, b""
        pending = Pending()
        pull = self.senders[BULK].append(1, operation(PULL, number, struct.pack("<I", length)))
        self.replies[BULK, pull] = (pending, bytearray(length), 0, [length])
        self.until(lambda: pending.is_over, "the data of an offer")
        self.received(number, 0)
        return found, bytes(pending.result)


def settings_from(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True, help="name of the rack")
    parser.add_argument("--listen", required=True, help="address of this host in the rack file")
    parser.add_argument("--connect", required=True, help="address of the other host")
    parser.add_argument("--port", type=int, default=26000, help="`udp_port` of the rack file")
    parser.add_argument("--frame-bytes", type=int, default=4240, help="`frame_bytes_max` of the rack file")
    parser.add_argument("--ether-type", type=lambda text: int(text, 0), default=0x88B5)
    parser.add_argument("--epoch", type=lambda text: int(text, 0), help="default: what the other supervisor says")
    parser.add_argument("--seed", type=int, default=1, help="`seed` of the rack file")
    parser.add_argument("--rounds", type=int, default=1, help="`rounds` of the litmus")
    parser.add_argument("--bytes-max", type=int, default=65536, help="`bytes_max` of the litmus, in bytes")
    parser.add_argument("--silence", type=float, default=5.0, help="seconds without a heartbeat until the peer gives up")
    parser.add_argument("--loss", type=float, default=0.0, help="share of this node's frames that it drops, for tests")
    parser.add_argument("--spoil", action="store_true", help="write one wrong byte, to see that the other node finds it")
    parser.add_argument("--loss-seed", type=int, default=1)
    settings = parser.parse_args(arguments)
    settings.node, settings.neighbour, settings.host, settings.edge = 1, 0, 1, 0
    return settings


def main(arguments):
    import peer_litmus

    settings = settings_from(arguments)
    node = Node(settings)
    job = peer_litmus.Litmus(node)
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
    # By its own name, as peer_litmus imports it: else there are two of every class.
    import peer

    peer.main(sys.argv[1:])
