"""Operations: what this node serves, and what it wants of the other (section 4)."""

import collections
import select
import struct
import sys
import time

from .link import Link
from .streams import Receiver, Sender
from .supervisor import Supervisor
from .wire import *


EAGER_BYTES, EAGER_BUDGET, EAGER_COST_MIN = 4096, 65536, 64
LOAD_PIECE = 256


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
        self.holds, self.failed = [], {}
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

    def until(self, is_true, what, timeout_s=120.0):
        end = time.monotonic() + timeout_s
        while not is_true():
            if time.monotonic() > end:
                sys.exit(f"peer: waited {timeout_s} s for {what}; hint: see the other host's report")
            self.step()

    def fabric(self, klass, count, psn=0, first=0, traffic=0):
        incarnation = self.link.reports[self.link.other][0]
        tags = (self.link.tag, tag_of(incarnation))
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
        self.failed[klass, number] = code
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
            for index in range(counted):
                if (klass, number - 1 - index & U32) in self.failed:
                    raise Refused(self.failed[klass, number - 1 - index & U32])
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

    # -- requests of this node to the other

    def address(self, region, key):
        return operation(SELECT, key, struct.pack("<I", region))

    def watch(self, klass, first, last):
        pending = Pending()
        self.unseen[klass].append((first, last, pending, []))
        return pending

    def store(self, region, key, offset, data):
        """Ends when the bytes are visible."""
        space, first, last = self.settings.frame_bytes - 86 - 16 - 12, None, 0
        for at in range(0, len(data), space):
            piece = operation(STORE, offset + at & U64, data[at : at + space])
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
