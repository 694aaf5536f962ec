"""The epoch order, the plan and the initial weights of Lockstep, written again in Python.

Independent of the C++ on purpose: the golden losses come from these batches and these weights, so
they also pin the algorithms down.
"""
import gzip
import os

import numpy as np

MASK = (1 << 64) - 1
INIT, ORDER = 1, 4  # StreamKind
ORDER_VERSION = 1


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def stream_key(*fields):
    h = 0x6C6F636B73746570
    for field in fields:
        h = mix64(h ^ mix64(field))
    return h


def stream_value(key, i):
    return mix64(key ^ mix64(i))


def stream_values(key, n):
    """stream_value(key, 0..n-1) at once."""

    def mix(x):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    with np.errstate(over="ignore"):
        return mix(np.uint64(key) ^ mix(np.arange(n, dtype=np.uint64)))


class EpochOrder:
    """Six Feistel rounds with cycle walking; `name` is the XXH3-128 of the fingerprint (low, high)."""

    def __init__(self, seed, epoch, name, samples):
        key = stream_key(ORDER, ORDER_VERSION, seed, epoch, *name)
        self.samples = samples
        bits = max(8, (samples - 1).bit_length())
        self.low_bits = (bits + 1) // 2
        self.low_mask = (1 << self.low_bits) - 1
        self.high_mask = (1 << (bits - self.low_bits)) - 1
        self.keys = [stream_value(key, i) for i in range(6)]

    @staticmethod
    def _round(half, key):
        z = ((half ^ key) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 32)) * 0xD6E8FEB86659FD93) & MASK
        return z >> 32

    def at(self, x):
        while True:
            high, low = x >> self.low_bits, x & self.low_mask
            for r in range(0, 6, 2):
                high ^= self._round(low, self.keys[r]) & self.high_mask
                low ^= self._round(high, self.keys[r + 1]) & self.low_mask
            x = high << self.low_bits | low
            if x < self.samples:
                return x


def initial_weights(shape, fan_in, seed, index):
    """PyTorch's default distribution, from the stream of (seed, parameter index)."""
    n = int(np.prod(shape))
    share = (stream_values(stream_key(INIT, seed, index), n) >> np.uint64(11)).astype(np.float64)
    bound = 1 / np.sqrt(float(fan_in))
    return ((2 * (share * 2.0**-53) - 1) * bound).astype(np.float32).reshape(shape)


def normal_weights(shape, std, seed, index):
    """Weights from the same stream, by Box and Muller's transform of two numbers each."""
    n = int(np.prod(shape))
    bits = stream_values(stream_key(INIT, seed, index), 2 * n) >> np.uint64(11)
    share = bits.astype(np.float64) * 2.0**-53
    radius = np.sqrt(-2 * np.log(1 - share[0::2]))
    return (radius * np.cos(2 * np.pi * share[1::2]) * std).astype(np.float32).reshape(shape)


def read_idx(directory, name):
    path = os.path.join(directory, name)
    opened = gzip.open(path + ".gz", "rb") if os.path.exists(path + ".gz") else open(path, "rb")
    with opened as f:
        raw = f.read()
    dims = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(dims)).reshape(dims)
