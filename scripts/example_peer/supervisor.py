"""The messages between the supervisors of hosts (section 8): the peer is a host of its own."""

import socket
import struct
import time

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
