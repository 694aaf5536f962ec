"""Reads a PNG of 8 bits a channel, without interlacing, as browsers write them."""
import collections
import struct
import zlib


class Picture:
    """`rows`: the bytes of each row, `channels` a pixel."""

    def __init__(self, png):
        assert png[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
        data, at = b"", 8
        while at < len(png):
            size, kind = struct.unpack(">I4s", png[at:at + 8])
            chunk = png[at + 8:at + 8 + size]
            at += 12 + size
            if kind == b"IHDR":
                self.width, self.height, depth, color = struct.unpack(">IIBB", chunk[:10])
                assert depth == 8 and color in (2, 6), (depth, color)
                self.channels = 3 if color == 2 else 4
            elif kind == b"IDAT":
                data += chunk
        self.rows = list(self._unfiltered(zlib.decompress(data)))

    def _unfiltered(self, data):
        stride, step = self.width * self.channels, self.channels
        above = bytearray(stride)
        for y in range(self.height):
            begin = y * (stride + 1)
            row = bytearray(data[begin + 1:begin + 1 + stride])
            kind = data[begin]
            if kind == 2:
                row = bytearray((a + b) & 255 for a, b in zip(row, above))
            elif kind != 0:
                for i in range(stride):
                    left = row[i - step] if i >= step else 0
                    if kind == 1:
                        guess = left
                    elif kind == 3:
                        guess = (left + above[i]) // 2
                    else:
                        guess = paeth(left, above[i], above[i - step] if i >= step else 0)
                    row[i] = (row[i] + guess) & 255
            above = row
            yield bytes(row)

    def colors(self):
        """The count of each colour."""
        count = collections.Counter()
        for row in self.rows:
            count.update(zip(*(row[c::self.channels] for c in range(3))))
        return count


def paeth(left, up, corner):
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner
