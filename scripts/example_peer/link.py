"""The neighbour: greeting, heartbeats, reports, credits (sections 2, 3, 5 and 6), on the udp wire (section 13)."""

import collections
import random
import socket
import struct
import sys
import time

from .seal import LinkSeal
from .wire import *


STATE_INIT, STATE_UP, STATE_DOWN, STATE_ADMIN_DOWN = 0, 1, 3, 5
# Section 6 and 13: what the two ends of a link of the udp wire grant each other.
CREDIT_UNIT, CREDIT_OVERHEAD, CREDIT_LIMIT = 256, 1024, 480
HEARTBEAT_S, HELLO_S = 0.05, 0.01


class Link:
    def __init__(self, settings, deliver):
        self.settings, self.deliver = settings, deliver
        self.me, self.other = settings.node, settings.neighbour
        self.incarnation = time.time_ns()
        self.tag = tag_of(self.incarnation)
        self.neighbour, self.is_received, self.state = 0, False, STATE_INIT
        self.sequence = self.received = self.consumed = self.freed_by_neighbour = self.neighbour_consumed = 0
        self.announced = 0
        self.heartbeats = self.heartbeat_received = self.disagreements = 0
        self.hello_at = self.heartbeat_at = self.stalled_at = self.received_at = 0.0
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
        self.seal = LinkSeal(settings) if settings.key else None

    # -- sending

    def header(self, kind, length, flags=0, numbered=False, cost=0):
        if numbered:
            self.sequence, self.consumed = self.sequence + 1 & U32, self.consumed + cost & U32
        self.announced = self.neighbour_consumed
        hops = 255 if kind in (DATA, ACK) else 1
        fields = (0x4C52, 0x10 | kind, flags, self.settings.epoch, length, hops, 0, self.tag & U16)
        link = LINK.pack(*fields, self.sequence, self.received, self.consumed, self.neighbour_consumed)
        return mac(self.other) + mac(self.me) + struct.pack(">H", self.settings.ether_type), link

    def transmit(self, frame):
        if self.random.random() < self.settings.loss:
            self.dropped["injected"] += 1
            return
        if self.seal:
            self.greet()
            if self.seal.sender is None:
                return
            frame = self.seal.close(frame)
        self.push(frame)

    def greet(self, now=0.0):
        for greeting in self.seal.greetings(now):
            self.push(greeting)

    def push(self, frame):
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
        wanted = 0 if self.is_received else 1
        body = struct.pack(
            "<HHBBHQQI", self.me, 0, 0, wanted, self.settings.frame_bytes, self.incarnation, self.neighbour, 1
        )
        self.control(HELLO, body)

    def say_heartbeat(self, now):
        self.heartbeats += 1
        self.heartbeat_at = now + HEARTBEAT_S
        body = struct.pack("<IIHHI", self.heartbeats, self.heartbeat_received, self.state, 1, self.digest())
        self.control(HEARTBEAT, body)

    def report_self(self, is_departure=False):
        self.number += 1
        carries = 1 | mark_of(self.neighbour) << 2 if self.state == STATE_UP else 0
        self.reports[self.me] = (self.incarnation, self.number, [(self.settings.edge, 2 if is_departure else carries)])
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
        if self.seal:
            self.greet(now)
        if self.answer_owed or (not self.is_received and now >= self.hello_at):
            self.hello(now)
        if self.state != STATE_INIT:
            if now >= self.heartbeat_at:
                self.say_heartbeat(now)
            self.say_reports()
            if self.credit_owed:
                self.credit_owed = False
                self.control(CREDIT, b"\0")
            if self.state == STATE_UP and now - self.received_at > self.settings.silence and not self.left:
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
            reason = None
            if self.seal:
                frame, reason = self.seal.open(frame)
            if frame is not None:
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
        magic, version, flags, epoch, length, _, channel, session, sequence, _, consumed, freed = LINK.unpack_from(
            frame, 14
        )
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
        self.take_counters(consumed, freed)
        if kind == HEARTBEAT:
            return self.take_heartbeat(now, body)
        if kind == REPORT:
            return self.take_reports(body)
        if kind == CREDIT:
            self.credit_owed |= bool(body and body[0])
            return None
        if not is_routed:
            return "not for this link"
        if kind == DATA and is_ahead(sequence, self.received):
            self.received = sequence
        return self.take_routed(now, kind, flags, body)

    def take_counters(self, consumed, freed):
        # W-20
        is_possible = (consumed - self.announced & U32) <= CREDIT_LIMIT
        if is_ahead(consumed, self.neighbour_consumed) and is_possible:
            self.neighbour_consumed = consumed
        if is_ahead(freed, self.consumed):
            freed = self.consumed if (freed - self.consumed & U32) <= CREDIT_LIMIT else self.freed_by_neighbour
        if is_ahead(freed, self.freed_by_neighbour):
            self.freed_by_neighbour = freed

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
        node, _, plane, wanted, frame_bytes, incarnation, received, options = struct.unpack_from("<HHBBHQQI", body)
        # W-16
        if (node, plane, frame_bytes, options) != (self.other, 0, self.settings.frame_bytes, 1):
            return "unknown-sender"
        if incarnation < self.neighbour:
            return "stale hello"
        if incarnation > self.neighbour:
            if self.state != STATE_INIT:
                sys.exit("peer: the neighbour has restarted; hint: start both again")
            self.neighbour, self.is_received = incarnation, False
        self.answer_owed |= wanted != 0
        self.is_received |= received == self.incarnation
        if self.is_received and self.state == STATE_INIT:
            self.state, self.received_at = STATE_UP, now
            self.report_self()
        return None

    def take_heartbeat(self, now, body):
        if len(body) < 16:
            return "malformed"
        self.heartbeat_received, _, state, _, digest = struct.unpack_from("<IIHHI", body)
        self.received_at = now
        if state in (STATE_DOWN, STATE_ADMIN_DOWN) and self.state == STATE_UP and not self.left:
            sys.exit("peer: the neighbour has taken the link down; hint: longer heartbeats for a busy machine")
        if state != STATE_UP:
            self.heartbeat_at = now
        self.disagreements = self.disagreements + 1 if digest != self.digest() else 0
        # W-18
        if self.disagreements >= 2:
            self.disagreements, self.report_queue = 0, list(self.reports)
        return None

    def take_reports(self, body):
        reports = []
        while body or not reports:
            if len(body) < 16:
                return "malformed"
            origin, count, incarnation, number = struct.unpack_from("<HHQI", body)
            if len(body) < 16 + 4 * count:
                return "malformed"
            edges = [struct.unpack_from("<HH", body, 16 + 4 * index) for index in range(count)]
            reports.append((origin, incarnation, number, edges))
            body = body[16 + 4 * count:]
        for report in reports:
            self.take_report(*report)
        return None

    def take_report(self, origin, incarnation, number, edges):
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
