"""Writes samples (name, label, content of an image file) as shards of each format. tests/unit/data
has real files of the formats' own libraries. These have as many samples as a run needs."""
import gzip
import io
import json
import struct
import tarfile


def tar(path, samples):
    with tarfile.open(path, "w") as archive:
        for name, label, content in samples:
            key, ending = name.split(".")
            for suffix, part in ((ending, content), ("cls", str(label).encode())):
                entry = tarfile.TarInfo(f"{key}.{suffix}")
                entry.size = len(part)
                archive.addfile(entry, io.BytesIO(part))


def _after_a_byte(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


_CRC32C = [_after_a_byte(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _field(number, content):
    """A protobuf field of bytes."""
    size, length = b"", len(content)
    while length >= 0x80:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def tfrecord(path, samples):
    with open(path, "wb") as out:
        for _, label, content in samples:
            image = _field(1, _field(1, content))
            number = _field(3, _field(1, bytes([label])))
            example = _field(1, b"".join(
                _field(1, _field(1, name) + _field(2, feature))
                for name, feature in ((b"image", image), (b"label", number))))
            length = struct.pack("<Q", len(example))
            out.write(length + _masked(length) + example + _masked(example))


def mds(directory, samples, each=15):
    """`each`: samples in a shard."""
    directory.mkdir(parents=True)
    columns = {"column_encodings": ["bytes", "int"], "column_names": ["image", "label"],
               "column_sizes": [None, 8], "compression": None, "format": "mds", "hashes": [],
               "size_limit": None, "version": 2}
    shards = []
    for first in range(0, len(samples), each):
        bodies = [struct.pack("<I", len(content)) + content + struct.pack("<q", label)
                  for _, label, content in samples[first:first + each]]
        said = json.dumps(columns).encode()
        places = [4 + 4 * (len(bodies) + 1) + len(said)]
        for body in bodies:
            places.append(places[-1] + len(body))
        data = struct.pack(f"<I{len(places)}I", len(bodies), *places) + said + b"".join(bodies)
        name = f"shard.{len(shards):05d}.mds"
        (directory / name).write_bytes(data)
        shards.append({**columns, "samples": len(bodies), "zip_data": None,
                       "raw_data": {"basename": name, "bytes": len(data), "hashes": {}}})
    (directory / "index.json").write_text(json.dumps({"shards": shards, "version": 2}))


def gzipped(write):
    """Runs `write`, a function of this file, and compresses its result as a whole."""
    def write_both(path, samples):
        write(path, samples)
        path.write_bytes(gzip.compress(path.read_bytes()))
    return write_both


def compress_mds(directory):
    """Compresses as Streaming's compression="gz" does: removes the plain shards."""
    index = json.loads((directory / "index.json").read_text())
    for shard in index["shards"]:
        plain = directory / shard["raw_data"]["basename"]
        packed = gzip.compress(plain.read_bytes())
        plain.unlink()
        name = plain.name + ".gz"
        (directory / name).write_bytes(packed)
        shard.update(compression="gz",
                     zip_data={"basename": name, "bytes": len(packed), "hashes": {}})
    (directory / "index.json").write_text(json.dumps(index))
