"""The litmus job written from docs/litmus-job.md: the second of two ranks.

Every byte that either rank writes follows from the seed, so the owner checks its memory without further messages.
"""

import sys

import numpy

from .node import Refused, Region
from .wire import (
    BAD_KEY,
    COMPARE_SWAP,
    FETCH_ADD,
    MISALIGNED,
    NO_REGION,
    OUT_OF_BOUNDS,
    PERMISSION,
    SET,
    SWAP,
    U64,
)

CONTROL, DATA, LANES, READABLE, MAIL, NOWHERE = 1, 2, 3, 4, 5, 99
SLOT, GUARD, READ, LANE, KEY, FLAG, TOKEN, INITIAL, PLACE = range(1, 10)
SIZES = [1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 65, 255, 256, 257, 1000, 4096, 4097, 65537, 1 << 20]
POSTED, ACKNOWLEDGED, PUT, PUT_SIGNAL, FENCED_STORE, FENCED_PUT = range(6)
STORE_BYTES_MAX, EAGER_BYTES = 4096, 4096
ADD4, ADD8, CAS4, CAS8, SWAP4, SWAP8 = range(6)
ANY, EARLY, BURST, GO, LATE = range(1, 6)
ATOMICS = 32


def mix(value):
    """The finaliser of SplitMix64."""
    value = (value + 0x9E3779B97F4A7C15) & U64
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & U64
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & U64
    return value ^ value >> 31


def fold(seed, *parts):
    value = mix(seed)
    for part in parts:
        value = mix(value ^ mix(part))
        value = (value << 17 | value >> 47) & U64
    return value


def mix_array(value):
    value = value + numpy.uint64(0x9E3779B97F4A7C15)
    value = (value ^ value >> numpy.uint64(30)) * numpy.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ value >> numpy.uint64(27)) * numpy.uint64(0x94D049BB133111EB)
    return value ^ value >> numpy.uint64(31)


def pattern(name, start, length):
    """Bytes `start .. start + length` of the endless string of this name."""
    words = numpy.arange(start // 8, (start + length + 7) // 8, dtype=numpy.uint64)
    words = mix_array(numpy.uint64(name) ^ words * numpy.uint64(0xD6E8FEB86659FD93))
    return words.astype("<u8").tobytes()[start % 8 : start % 8 + length]


def cases(largest):
    """What a rank writes: (kind, bytes, distance from a multiple of 64)."""
    found = []

    def add(kind, sizes):
        for number, size in enumerate(sizes):
            odd = (1, 3, 5, 7)[number % 4]
            both = size < 65537
            if both or number % 2 == 0:
                found.append((kind, size, 0))
            if both or number % 2 == 1:
                found.append((kind, size, odd))

    def up_to(most):
        return [size for size in SIZES if size <= most] + ([most] if most not in SIZES else [])

    store_max = min(largest, STORE_BYTES_MAX)
    add(POSTED, up_to(store_max))
    add(ACKNOWLEDGED, up_to(store_max))
    add(PUT, up_to(largest))
    add(PUT_SIGNAL, [0] + up_to(largest))
    add(FENCED_STORE, [size for size in (1, 8, 65, 256) if size <= store_max])
    add(FENCED_PUT, [size for size in (257, 4097, 65537) if size <= largest])
    return found


class Part:
    """Things one behind the other, with at least 64 bytes of guard before each."""

    def __init__(self):
        self.cursor, self.places = 0, []

    def place(self, length, misalignment=0):
        offset = (self.cursor + 64 + 63) // 64 * 64 + misalignment
        self.cursor = offset + length
        self.places.append((offset, length))
        return offset

    def length(self):
        return (self.cursor + 63) // 64 * 64


class Layout:
    def __init__(self, largest):
        control, contended, slots, flags = Part(), Part(), Part(), Part()
        self.cases = cases(largest)
        self.abort = control.place(8)
        self.barrier = [control.place(8) for _ in range(16)]
        self.words, self.ledgers = [], []
        for word in range(6):
            self.words.append(contended.place(4 if word % 2 == 0 else 8, 4 if word % 2 == 0 else 0))
            self.ledgers.append(contended.place(8))
        self.slots, self.flags = [], []
        for kind, size, misalignment in self.cases:
            self.slots.append(contended.length() + slots.place(size, misalignment))
            has_flag = kind in (PUT_SIGNAL, FENCED_STORE, FENCED_PUT)
            self.flags.append(control.length() + flags.place(8) if has_flag else None)
        self.control_bytes = control.length() + flags.length() + 64
        self.data_bytes = contended.length() + slots.length() + 64
        self.readable_bytes = largest + 4096
        self.message_bytes = min(largest, 20000)


class Litmus:
    def __init__(self, node):
        self.node, self.settings, self.seed = node, node.settings, node.settings.seed
        self.me, self.other, self.round, self.episode, self.verified = 1, 0, 0, 0, 0
        self.layout = Layout(node.settings.bytes_max)
        lengths = {CONTROL: (self.layout.control_bytes, "rwa"), DATA: (self.layout.data_bytes, "rwa"), LANES: (64, "")}
        lengths |= {READABLE: (self.layout.readable_bytes, "r"), MAIL: (64, "")}
        for region, (length, access) in lengths.items():
            node.regions[region] = Region(length, self.key(self.me, region), access)
        self.control, self.data = node.regions[CONTROL].bytes, node.regions[DATA].bytes
        self.readable = self.readable_of(self.me, 0, self.layout.readable_bytes)
        node.regions[READABLE].bytes[:] = self.readable

    # -- what must be where

    def key(self, owner, region):
        return fold(self.settings.key_seed, KEY, owner, region)

    def readable_of(self, owner, start, length):
        return pattern(fold(self.seed, READ, owner), start, length)

    def slot(self, writer, owner, case):
        name = fold(self.seed, SLOT, self.round, writer, owner, case)
        return pattern(name, 0, self.layout.cases[case][1])

    def guard(self, region, length):
        return bytearray(pattern(fold(self.seed, GUARD, self.round, self.me, region, 0), 0, length))

    def flag(self, writer, owner, case):
        return fold(self.seed ^ FLAG, self.round, writer, owner, case) | 1

    def initial(self, owner, word):
        value = fold(self.seed, INITIAL, self.round, owner, word)
        if word in (ADD4, CAS4):
            return 0xFFFFFFFF - value % 16
        return value & (0xFFFFFFFF if word % 2 == 0 else U64)

    def token(self, contender, owner, word, number):
        value = fold(self.seed ^ TOKEN, self.round, contender, owner, word, number)
        return value & (0xFFFFFFFF if word % 2 == 0 else U64)

    def fail(self, what):
        sys.exit(f"peer: round {self.round}: {what}")

    def expect(self, found, wanted, what):
        if found != wanted:
            if isinstance(wanted, (bytes, bytearray)):
                at = next(i for i, (a, b) in enumerate(zip(found, wanted)) if a != b)
                self.fail(f"{what}: byte {at} is {found[at]:#x}, must be {wanted[at]:#x}")
            self.fail(f"{what}: {found!r}, must be {wanted!r}")
        self.verified += len(wanted) if isinstance(wanted, (bytes, bytearray)) else 8

    # -- the script

    def run(self):
        for self.round in range(self.settings.rounds):
            self.prepare()
            self.meet()
            self.write()
            self.meet()
            self.sweep_writes()
            self.read()
            self.order()
            self.message()
            self.contend()
            self.trespass()
            self.meet()
            self.sweep()
        self.meet()
        self.expect(self.word(self.layout.barrier[0]), self.episode, "barrier word")

    def word(self, offset):
        return int.from_bytes(self.control[offset : offset + 8], "little")

    def until(self, is_true, what):
        def is_true_or_aborted():
            if self.word(self.layout.abort):
                self.fail(f"the other rank has broken off, during {what}")
            return is_true()

        self.node.until(is_true_or_aborted, what)

    def wait(self, pendings, what):
        """Until all have ended; their results."""
        self.until(lambda: all(pending.is_over for pending in pendings), what)
        for pending in pendings:
            if isinstance(pending.result, Refused):
                self.fail(f"{what}: {pending.result}")
        return [pending.result for pending in pendings]

    def prepare(self):
        control, data = self.guard(CONTROL, len(self.control)), self.guard(DATA, len(self.data))
        for offset in [self.layout.abort, *self.layout.barrier]:
            control[offset : offset + 8] = self.control[offset : offset + 8]
        for case, (_, size, _) in enumerate(self.layout.cases):
            offset, flag = self.layout.slots[case], self.layout.flags[case]
            data[offset : offset + size] = bytes(size)
            if flag is not None:
                control[flag : flag + 8] = bytes(8)
        for word in range(6):
            offset, width = self.layout.words[word], 4 if word % 2 == 0 else 8
            data[offset : offset + width] = self.initial(self.me, word).to_bytes(width, "little")
            data[self.layout.ledgers[word] : self.layout.ledgers[word] + 8] = bytes(8)
        self.control[:], self.data[:] = control, data

    def meet(self):
        """A barrier: each rank signals the other, odd ones by fetch-add, even ones by a put of no bytes."""
        self.episode += 1
        key, offset = self.key(self.other, CONTROL), self.layout.barrier[0]
        if self.episode % 2 == 1:
            pending = self.node.atomic_at(CONTROL, key, offset, FETCH_ADD, 8, 1)
            self.expect(self.wait([pending], "a barrier's signal")[0], self.episode - 1, "barrier word")
        else:
            signal = (CONTROL, key, offset, FETCH_ADD, 1)
            self.wait([self.node.put(CONTROL, key, offset, b"", signal)], "a barrier's signal")
        self.until(lambda: self.word(offset) >= self.episode, f"barrier {self.episode}")

    def transfer(self, case):
        kind = self.layout.cases[case][0]
        data = self.slot(self.me, self.other, case)
        if self.settings.spoil and case == 0:
            data = bytes([data[0] ^ 1]) + data[1:]
        target = (DATA, self.key(self.other, DATA), self.layout.slots[case], data)
        if kind in (POSTED, ACKNOWLEDGED, FENCED_STORE):
            return self.node.store(*target)
        signal = None
        if kind == PUT_SIGNAL:
            how = SET if case % 2 == 0 else FETCH_ADD
            value = self.flag(self.me, self.other, case)
            signal = (CONTROL, self.key(self.other, CONTROL), self.layout.flags[case], how, value)
        return self.node.put(*target, signal)

    def write(self):
        chosen = [case for case in range(len(self.layout.cases)) if self.layout.flags[case] is None]
        self.wait([self.transfer(case) for case in chosen], "writes")

    def check_slot(self, case):
        offset, size = self.layout.slots[case], self.layout.cases[case][1]
        wanted = self.slot(self.other, self.me, case)
        self.expect(bytes(self.data[offset : offset + size]), wanted, f"slot of case {case}")

    def sweep_writes(self):
        for case in range(len(self.layout.cases)):
            if self.layout.flags[case] is None:
                self.check_slot(case)

    def read(self):
        key = self.key(self.other, READABLE)
        largest = self.settings.bytes_max
        sizes = [size for size in SIZES if size < largest] + [largest]
        for number, size in enumerate(sizes):
            offset = number * 7 % 4096
            wanted = self.readable_of(self.other, offset, size)
            got = self.wait([self.node.get(READABLE, key, offset, size)], "a get")[0]
            self.expect(bytes(got), wanted, f"get of {size} bytes")
            if size <= STORE_BYTES_MAX:
                pieces = self.node.load(READABLE, key, offset, size)
                self.wait(pieces, "a load")
                self.expect(bytes(pieces[0].result), wanted, f"load of {size} bytes")

    def order(self):
        """Who sees the flag must see the data."""
        node, key = self.node, self.key(self.other, CONTROL)
        flagged = [case for case in range(len(self.layout.cases)) if self.layout.flags[case] is not None]
        unseen = list(flagged)

        def look():
            while unseen and self.word(self.layout.flags[unseen[0]]):
                case = unseen.pop(0)
                wanted = self.flag(self.other, self.me, case)
                self.expect(self.word(self.layout.flags[case]), wanted, f"flag of case {case}")
                self.check_slot(case)
            return not unseen

        pendings = []
        for case in flagged:
            pendings.append(self.transfer(case))
            if self.layout.cases[case][0] != PUT_SIGNAL:
                # The fence: what was begun before is visible first.
                self.until(lambda: look() is None or all(pending.is_over for pending in pendings), "a fence")
                value = self.flag(self.me, self.other, case).to_bytes(8, "little")
                pendings.append(node.store(CONTROL, key, self.layout.flags[case], value))
        self.until(lambda: look() and all(pending.is_over for pending in pendings), "flags")
        self.wait(pendings, "transfers with a flag")

    def script(self):
        """Messages in order of sending: (kind, number, bytes)."""
        most = self.layout.message_bytes
        early = [0, 1, 255, 1000, EAGER_BYTES] + ([most] if most > EAGER_BYTES else [])
        late = [0, 7, 8, 63, 64, 65, 257, 1001, EAGER_BYTES, EAGER_BYTES + 1, most]
        messages = [(ANY, 0, 48)] + [(EARLY, number, size) for number, size in enumerate(early)]
        messages += [(BURST, 0, 4000)] * 18 + [(GO, 0, 0)] + [(BURST, 0, 4000)] * 6
        messages += [(LATE, number, size) for number, size in enumerate(late)]
        return [(kind, number, min(size, most)) for kind, number, size in messages]

    def tag(self, kind, number):
        return kind << 32 | self.round << 8 | number

    def message_place(self, writer, owner, index, size):
        space = self.layout.readable_bytes - size
        return fold(self.seed, PLACE, self.round, owner, writer, index | 1 << 15) % max(space, 1)

    def message(self):
        script, pendings = self.script(), []
        for index, (kind, number, size) in enumerate(script):
            offset = self.message_place(self.me, self.other, index, size)
            pendings.append(self.node.send(self.tag(kind, number), self.readable[offset : offset + size]))

        def take(index, ignore=0):
            kind, number, size = script[index]
            tag, data = self.node.receive(self.tag(kind, number), ignore)
            self.expect(tag, self.tag(kind, number), f"tag of message {index}")
            offset = self.message_place(self.other, self.me, index, size)
            wanted = self.readable_of(self.other, offset, size)
            self.expect(len(data), size, f"length of message {index}")
            self.expect(data, wanted, f"message {index}")

        of = lambda wanted: [index for index, (kind, _, _) in enumerate(script) if kind == wanted]
        take(of(ANY)[0])
        take(of(GO)[0])
        early = of(EARLY)
        for number, ignore in ((0, 255), (4, 0), (2, 0), (1, 255), (3, 255), (5, 0)):
            if number < len(early):
                take(early[number], ignore)
        for index in of(BURST) + of(LATE):
            take(index)
        self.wait(pendings, "sends")

    def contend(self):
        """Contended words: the sum of the values that atomics return must match the history of the word."""
        key, node = self.key(self.other, DATA), self.node
        for word in range(6):
            offset, width = self.layout.words[word], 4 if word % 2 == 0 else 8
            mask, ledger = (1 << 8 * width) - 1, 0
            if word in (CAS4, CAS8):
                expected, done = self.initial(self.other, word), 0
                while done < ATOMICS:
                    new = expected + self.me + 1 & mask
                    pending = node.atomic_at(DATA, key, offset, COMPARE_SWAP, width, new, expected)
                    old = self.wait([pending], "compare-swap")[0]
                    if old == expected:
                        done, ledger, expected = done + 1, ledger - mix(new) + mix(old), new
                    else:
                        expected = old
            else:
                kind = FETCH_ADD if word in (ADD4, ADD8) else SWAP
                operands = [
                    1 if kind == FETCH_ADD else self.token(self.me, self.other, word, n) for n in range(ATOMICS)
                ]
                pendings = [node.atomic_at(DATA, key, offset, kind, width, operand) for operand in operands]
                ledger = sum(mix(old) for old in self.wait(pendings, "atomics"))
            self.wait([node.atomic_at(DATA, key, self.layout.ledgers[word], FETCH_ADD, 8, ledger & U64)], "a ledger")

    def trespass(self):
        """Accesses that the owner must refuse, each with one thing wrong."""
        node, right = self.node, lambda region: self.key(self.other, region)
        end, eight = self.layout.data_bytes, b"\xff" * 8
        attempts = [
            (lambda: node.store(DATA, right(DATA) ^ 1, 0, eight), BAD_KEY),
            (lambda: node.store(DATA, right(DATA), end - 4, eight), OUT_OF_BOUNDS),
            (lambda: node.store(READABLE, right(READABLE), 0, eight), PERMISSION),
            (lambda: node.store(NOWHERE, right(NOWHERE), 0, eight), NO_REGION),
            (lambda: node.load(DATA, right(DATA) ^ 1, 0, 200)[0], BAD_KEY),
            (lambda: node.load(DATA, right(DATA), end, 200)[0], OUT_OF_BOUNDS),
            (lambda: node.load(LANES, right(LANES), 0, 200)[0], PERMISSION),
            (lambda: node.atomic_at(READABLE, right(READABLE), 0, FETCH_ADD, 8, U64 // 3), PERMISSION),
            (lambda: node.atomic_at(DATA, right(DATA), 1, FETCH_ADD, 8, U64 // 3), MISALIGNED),
            (lambda: node.put(DATA, right(DATA), end - 4496, b"\xff" * 4500), OUT_OF_BOUNDS),
            (lambda: node.put(READABLE, right(READABLE), 0, b"\xff" * 4500), PERMISSION),
            (lambda: node.get(DATA, right(DATA) ^ 1, 0, 4500), BAD_KEY),
            (lambda: node.get(LANES, right(LANES), 0, 4500), PERMISSION),
            (lambda: node.store(DATA, right(DATA) ^ 1, 0, eight), BAD_KEY),
        ]
        for number, (attempt, code) in enumerate(attempts):
            pending = attempt()
            self.until(lambda: pending.is_over, f"forbidden access {number}")
            found = pending.result.code if isinstance(pending.result, Refused) else None
            self.expect(found, code, f"refusal of forbidden access {number}")

    def sweep(self):
        """Every byte of the regions that the other rank may write."""
        control, data = self.guard(CONTROL, len(self.control)), self.guard(DATA, len(self.data))
        for offset in [self.layout.abort, *self.layout.barrier]:
            control[offset : offset + 8] = self.control[offset : offset + 8]
        for case, (_, size, _) in enumerate(self.layout.cases):
            offset, flag = self.layout.slots[case], self.layout.flags[case]
            data[offset : offset + size] = self.slot(self.other, self.me, case)
            if flag is not None:
                control[flag : flag + 8] = self.flag(self.other, self.me, case).to_bytes(8, "little")
        for word in range(6):
            offset, width = self.layout.words[word], 4 if word % 2 == 0 else 8
            value, ledger = self.contended(word, int.from_bytes(self.data[offset : offset + width], "little"))
            data[offset : offset + width] = value.to_bytes(width, "little")
            data[self.layout.ledgers[word] : self.layout.ledgers[word] + 8] = ledger.to_bytes(8, "little")
        self.expect(bytes(self.control), bytes(control), "region 1")
        self.expect(bytes(self.data), bytes(data), "region 2")
        self.expect(bytes(self.node.regions[READABLE].bytes), self.readable, "region 4")

    def contended(self, word, found):
        """Returns the values of a word and its ledger after the other rank is done."""
        first, mask = self.initial(self.me, word), 0xFFFFFFFF if word % 2 == 0 else U64
        if word in (SWAP4, SWAP8):
            tokens = sum(mix(self.token(self.other, self.me, word, number)) for number in range(ATOMICS))
            return found, tokens + mix(first) - mix(found) & U64
        if word in (CAS4, CAS8):
            last = first + ATOMICS * (self.other + 1) & mask
            return last, mix(first) - mix(last) & U64
        return first + ATOMICS & mask, sum(mix(first + step & mask) for step in range(ATOMICS)) & U64
