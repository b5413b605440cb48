"""The messages between the supervisors of hosts (section 8): the peer is a host of its own."""

import socket
import struct
import time

from .seal import TAG_BYTES, message_key, tag
from .wire import U32, crc32c


TICK_S = 0.05


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
        # With a key: the tags of both hosts, an unconfirmed incarnation of the other host, and the last message taken.
        self.keys = [message_key(settings.key, host) for host in (0, 1)] if settings.key else None
        self.candidate, self.taken = 0, (0, 0)
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
        frame += struct.pack("<BBHIHH", 3 if self.keys else 2, len(self.hosts), self.settings.epoch or 0, self.name, mine, 0)
        hosts = list(self.hosts)
        if self.candidate > hosts[1 - mine][0]:
            # W-95: stage 4, received and not confirmed.
            hosts[1 - mine] = (self.candidate, 0, 4)
        frame += b"".join(struct.pack("<QIB3x", *host) for host in hosts)
        frame += struct.pack("<I", crc32c(frame))
        # W-62
        length = self.settings.frame_bytes if sent % 2 == 0 else 60
        if self.keys:
            # W-94
            frame = frame.ljust(length + 16 - TAG_BYTES, b"\0")
            frame += tag(self.keys[mine], frame)
        if self.settings.epoch is not None:
            try:
                self.socket.sendto(frame.ljust(length, b"\0"), (self.settings.connect, self.settings.port))
            except (BlockingIOError, ConnectionRefusedError):
                pass

    def take(self, frame):
        end = 30 + 16 * len(self.hosts)
        version = 3 if self.keys else 2
        if len(frame) < end + 4 or frame[14:18] != b"RLHW" or frame[18] != version or frame[19] != len(self.hosts):
            return
        epoch, name, speaker = struct.unpack_from("<HIH", frame, 20)
        if self.keys:
            if speaker > 1 or tag(self.keys[speaker], frame[:-TAG_BYTES]) != frame[-TAG_BYTES:]:
                return
        # W-60
        if name != self.name or struct.unpack_from("<I", frame, end)[0] != crc32c(frame[:end]):
            return
        if speaker == 1 - self.settings.host:
            # W-83: who does not compute the epoch takes it from the other supervisor. With a key that of a later run replaces that of
            # an earlier one, until a message is known to be of this run.
            is_later = self.keys and self.taken == (0, 0)
            is_later = is_later and struct.unpack_from("<Q", frame, 30 + 16 * speaker)[0] > self.candidate
            if self.settings.epoch is None or is_later:
                self.settings.epoch = epoch
        if epoch == self.settings.epoch and speaker != self.settings.host:
            other = 1 - self.settings.host
            if self.keys and not self.is_fresh(frame, other):
                return
            self.hosts[other] = max(self.hosts[other], struct.unpack_from("<QIB", frame, 30 + 16 * other))

    def is_fresh(self, frame, other):
        """W-95: the message repeats this supervisor's own incarnation, and its number is new."""
        received_of_me = struct.unpack_from("<QIB", frame, 30 + 16 * self.settings.host)[0]
        number = struct.unpack_from("<QI", frame, 30 + 16 * other)
        if received_of_me != self.hosts[self.settings.host][0]:
            self.candidate = max(self.candidate, number[0])
            return False
        if number <= self.taken:
            return False
        self.taken = number
        return True
