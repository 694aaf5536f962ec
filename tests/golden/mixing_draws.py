"""The draws of mixup and cutmix, written again in Python: data/transform/beta.h and batch_mix.h.

Python's floats are IEEE's doubles, and +, -, *, / and sqrt are all that is used, in the same order:
so the bits are the same, without any mathematical library.
"""
import math
import struct

from order import stream_key, stream_value

AUGMENT = 3  # StreamKind
MIX_STREAM = 1003
KIND, ROW, COLUMN, SHARE = range(4)
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
SQRT2, INVERSE_LN2 = float.fromhex("0x1.6a09e667f3bcdp+0"), float.fromhex("0x1.71547652b82fep+0")


def unit(key, i):
    return (stream_value(key, i) >> 11) * 2.0**-53


def bits_of(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def float_of(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def logarithm(x):
    e = float((bits_of(x) >> 52) - 1023)
    m = float_of(bits_of(x) & (1 << 52) - 1 | 1023 << 52)
    if m > SQRT2:
        m *= 0.5
        e += 1
    f = (m - 1) / (m + 1)
    square = f * f
    total = 0.0
    for k in range(25, 2, -2):
        total = (total + 1.0 / k) * square
    return e * LN2_HIGH + (e * LN2_LOW + 2 * (f + f * total))


def exponential(x):
    if not x > -700:
        return 0.0
    n = math.floor(x * INVERSE_LN2 + 0.5)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    total = 1.0
    for k in range(14, 0, -1):
        total = 1 + total * r / k
    return total * float_of(n + 1023 << 52)


def draw_beta(key, alpha):
    i = 0
    while True:
        if alpha >= 0.5:
            u, v = 2 * unit(key, i) - 1, 2 * unit(key, i + 1) - 1
            s = u * u + v * v
            if 0 < s < 1:
                power = 2 / (2 * alpha - 1) if alpha > 0.5 else math.inf
                return 0.5 + u * v / s * math.sqrt(1 - exponential(power * logarithm(s)))
        else:
            x = logarithm(1 - unit(key, i)) / alpha
            y = logarithm(1 - unit(key, i + 1)) / alpha
            if exponential(x) + exponential(y) <= 1:
                smaller = exponential(y - x if x > y else x - y)
                return (1 if x > y else smaller) / (1 + smaller)
        i += 2


def share_of(x):
    return math.floor(x * 2.0**24 + 0.5) * 2.0**-24


def around(middle, half, length):
    return middle - min(middle, half), min(middle + half, length)


def draw_mix(mixup, cutmix, seed, epoch, position, height, width):
    """Share of the label, and of mixup None, of cutmix (top, bottom, left, right)."""
    stream = stream_key(AUGMENT, seed, epoch, position)
    key = stream_key(stream, MIX_STREAM)
    is_cut = mixup == 0 or (cutmix > 0 and unit(key, KIND) < 0.5)
    share = draw_beta(stream_key(key, SHARE), cutmix if is_cut else mixup)
    if not is_cut:
        return share_of(share), None
    side = 0.5 * math.sqrt(1 - share)
    top, bottom = around(stream_value(key, ROW) % height, int(side * height), height)
    left, right = around(stream_value(key, COLUMN) % width, int(side * width), width)
    cut = (bottom - top) * (right - left)
    return share_of(1 - cut / (height * width)), (top, bottom, left, right)


if __name__ == "__main__":
    for key, alpha in ((1, 0.2), (2, 0.4), (3, 1), (4, 8.5)):
        print(f"draw_beta({key}, {alpha}): {bits_of(draw_beta(key, alpha)):#018x}")
