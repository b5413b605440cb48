"""Bytes and values of frames (docs/wire-format.md, sections 1 to 5)."""

import collections
import struct

import numpy


DATA, ACK, HELLO, HEARTBEAT, REPORT, CREDIT = 1, 2, 3, 4, 5, 6
REQUEST, REPLY, BULK, BULK_REPLY = range(4)
(SELECT, STORE, LOAD, ATOMIC, SIGNAL, PUT, GET, MESSAGE, OFFER, PULL, VOID) = range(1, 12)
LOAD_REPLY, ATOMIC_REPLY, GET_DATA, REFUSAL, RECEIVED, ACK_OPERATION = 16, 17, 18, 19, 20, 32
# Codes of a refusal.
(NO_REGION, BAD_KEY, WRONG_TENANT, OUT_OF_BOUNDS, PERMISSION, REVOKED, MISALIGNED, MEMORY, SOURCE) = range(1, 10)
FETCH_ADD, COMPARE_SWAP, SWAP, SET = range(4)
U16, U32, U64 = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


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
