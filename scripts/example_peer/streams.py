"""Packets of one class to and from the other node: numbers, acknowledgements, retransmission (section 7)."""

import collections

from .wire import U32


WINDOW, REORDER = 64, 256
RETRANSMISSION_S = 0.04


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
            # W-84: everything is taken, not everything is visible: an empty packet requests the acknowledgement.
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
        # Three later ones have arrived: this one is lost. It is resent again only later, because its first resend may be in flight.
        for index, packet in enumerate(self.packets):
            overtaken = sum(1 for later in held if later > index) >= 3
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
