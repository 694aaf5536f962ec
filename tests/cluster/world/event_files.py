"""Reads TensorBoard's event files without TensorBoard, as far as Lockstep writes them."""
import struct


def _table():
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        yield i


TABLE = list(_table())


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The whole ones: the last one may be half written, while its writer is at it."""
    at = 0
    while at + 12 <= len(data):
        (size, check), body = struct.unpack_from("<QI", data, at), data[at + 12:]
        assert check == masked_crc(data[at:at + 8]), "the length is damaged"
        if size + 4 > len(body):
            return
        event = body[:size]
        assert struct.unpack_from("<I", body, size)[0] == masked_crc(event), "damaged"
        yield event
        at += 16 + size


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """{number: last value} of a protobuf message."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            value, size = (struct.unpack_from("<d", data, at)[0], 8) if key & 7 == 1 else \
                          (struct.unpack_from("<f", data, at)[0], 4)
            at += size
        found[key >> 3] = value
    return found


def scalars(directory):
    """{tag: {step: (wall_time, value)}}, without values that newer files replace."""
    tags = {}
    for path in sorted(directory.glob("events.out.tfevents.*")):
        for number, record in enumerate(records(path.read_bytes())):
            event = fields(record)
            if number == 0:
                assert event[3] == b"brain.Event:2", event
            if 7 in event and fields(event[7])[1] == 1:
                for steps in tags.values():
                    for step in [s for s in steps if s >= event.get(2, 0)]:
                        del steps[step]
            if 5 in event:
                value = fields(fields(event[5])[1])
                tags.setdefault(value[1].decode(), {})[event[2]] = (event[1], value[2])
    return tags
