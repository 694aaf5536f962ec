"""How much longer runs must be on this machine than on the one that their lengths were chosen on.

A test that disturbs a run needs the run to last, while processes start and leases and graces pass.
How long a number of steps lasts depends on the machine. So tests say how many steps they want on a
2.8 GHz Xeon of 2019, and get more on a faster machine."""
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
    """At least 1, because shorter runs would miss their faults on any machine. Takes the fastest of
    many loops, so that other work makes no difference."""
    return min(max(REFERENCE_S / min(_loop_s() for _ in range(50)), 1), MOST)


def paced(train):
    """The job's section with as many more steps, or epochs."""
    return {key: math.ceil(value * pace()) if key in ("max_steps", "epochs") else value
            for key, value in train.items()}
