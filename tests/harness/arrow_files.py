"""Writes Arrow IPC streams with as many samples as a run needs, as Hugging Face's datasets leave
them on a disk. tests/unit/data has real files of Arrow's own library.

Their metadata are FlatBuffers. A table is a list of (its place, a number's format or the class of
the referred object, value). Referred objects follow the table."""
import struct

INT64, INT32, INT16, BYTE = "q", "i", "h", "b"
VERSION_5, SCHEMA, RECORD_BATCH = 4, 1, 3  # of Message
INT, BINARY, LIST, FIXED_BINARY = 2, 4, 12, 15  # of Type


def _pad(out, size, beyond=0):
    """Pads so that the bytes `beyond` bytes later stand at a multiple of `size`."""
    out += bytes(-(len(out) + beyond) % size)


def _refer(out, at):
    """The offset from this place to the next written object."""
    struct.pack_into("<I", out, at, len(out) - at)


class Table(list):
    def write(self, out, at):
        inline, later = [0] * (1 + max((place for place, _, _ in self), default=-1)), []
        body = bytearray(4)
        for place, kind, value in self:
            size = struct.calcsize(kind) if isinstance(kind, str) else 4
            _pad(body, size)
            inline[place] = len(body)
            if isinstance(kind, str):
                body += struct.pack("<" + kind, value)
            else:
                later.append((len(body), kind(value)))
                body += bytes(4)
        vtable = struct.pack(f"<HH{len(inline)}H", 4 + 2 * len(inline), len(body), *inline)
        _pad(out, 8, beyond=len(vtable))
        out += vtable
        begin = len(out)
        _refer(out, at)
        out += body
        struct.pack_into("<i", out, begin, len(vtable))
        for place, child in later:
            child.write(out, begin + place)


class Text(str):
    def write(self, out, at):
        _pad(out, 4)
        _refer(out, at)
        content = self.encode()
        out += struct.pack("<I", len(content)) + content + b"\0"


class Tables(list):
    def write(self, out, at):
        _pad(out, 4)
        _refer(out, at)
        out += struct.pack("<I", len(self))
        first = len(out)
        out += bytes(4 * len(self))
        for i, table in enumerate(self):
            table.write(out, first + 4 * i)


class Pairs(list):
    """Pairs of 8-byte numbers."""
    def write(self, out, at):
        _pad(out, 8, beyond=4)
        _refer(out, at)
        out += struct.pack("<I", len(self))
        for pair in self:
            out += struct.pack("<qq", *pair)


def _message(kind, header, body=b""):
    out = bytearray(4)
    Table([(0, INT16, VERSION_5), (1, BYTE, kind), (2, Table, header),
           (3, INT64, len(body))]).write(out, 0)
    _pad(out, 8)
    return struct.pack("<II", 0xFFFFFFFF, len(out)) + bytes(out) + body


def _field(name, kind, about=(), children=(), metadata=None):
    said = Tables(Table([(0, Text, key), (1, Text, value)])
                  for key, value in (metadata or {}).items())
    return Table([(0, Text, name), (2, BYTE, kind), (3, Table, about), (5, Tables, children),
                  (6, Tables, said)])


def _numbers(name, bits):
    return _field(name, INT, [(0, INT32, bits), (1, BYTE, 1)])


def _stream(fields, batches):
    """`batches`: rows, rows of every field followed by its children, buffers."""
    out = _message(SCHEMA, [(1, Tables, fields)])
    for rows, nodes, buffers in batches:
        body, places = bytearray(), []
        for buffer in buffers:
            places.append((len(body), len(buffer)))
            body += buffer
            _pad(body, 8)
        out += _message(RECORD_BATCH, [(0, INT64, rows), (1, Pairs, [(n, 0) for n in nodes]),
                                       (2, Pairs, places)], bytes(body))
    return out + struct.pack("<II", 0xFFFFFFFF, 0)


def _offsets(parts):
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return struct.pack(f"<{len(offsets)}i", *offsets)


def _parts(rows, each):
    return [rows[i:i + each] for i in range(0, len(rows), each)]


def encoded(path, samples, each=15):
    """Samples (name, label, content of an image file), `each` in a batch."""
    batches = []
    for part in _parts(samples, each):
        contents = [content for _, _, content in part]
        labels = struct.pack(f"<{len(part)}q", *(label for _, label, _ in part))
        batches.append((len(part), [len(part)] * 2,
                        [b"", _offsets(contents), b"".join(contents), b"", labels]))
    path.write_bytes(_stream([_field("image", BINARY), _numbers("label", 64)], batches))


def pixels(path, shape, samples, each=40):
    """Samples (label, pixels in this shape, one after another)."""
    size = shape[0] * shape[1] * shape[2]
    image = _field("image", FIXED_BINARY, [(0, INT32, size)], metadata={"shape": str(list(shape))})
    batches = [(len(part), [len(part)] * 2,
                [b"", b"".join(content for _, content in part),
                 b"", struct.pack(f"<{len(part)}i", *(label for label, _ in part))])
               for part in _parts(samples, each)]
    path.write_bytes(_stream([image, _numbers("label", 32)], batches))


def tokens(path, lists, each=10):
    item = _numbers("item", 64)
    batches = []
    for part in _parts(lists, each):
        ids = [token for row in part for token in row]
        batches.append((len(part), [len(part), len(ids)],
                        [b"", _offsets(part), b"", struct.pack(f"<{len(ids)}q", *ids)]))
    path.write_bytes(_stream([_field("input_ids", LIST, children=Tables([item]))], batches))
