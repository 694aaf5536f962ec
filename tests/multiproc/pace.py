"""How much longer runs must be on this machine than on the one that their lengths were chosen on.

A test that does something to a run needs it to last: processes start, leases and graces pass. A
number of steps lasts as long as a machine is slow, so tests say how many they want on a 2.8 GHz
Xeon of 2019, and get as many more as this machine is faster."""
import functools
import math
import time

REFERENCE_S = 0.0048  # of one loop, on that Xeon
MOST = 6


def _loop_s():
    began = time.perf_counter()
    total = 0
    for i in range(50_000):
        total += i * i % 7
    return time.perf_counter() - began


@functools.cache
def pace():
    """At least 1: shorter runs would hit nothing on any machine. The fastest of many loops, so that
    work beside it makes no difference."""
    return min(max(REFERENCE_S / min(_loop_s() for _ in range(50)), 1), MOST)


def paced(train):
    """A job's section with as many more steps, or epochs."""
    return {key: math.ceil(value * pace()) if key in ("max_steps", "epochs") else value
            for key, value in train.items()}
