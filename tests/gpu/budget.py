"""The time that the suite may take (--minutes): what is left of it, and of the share for checks."""
import math
import time

from running import END_S

CHECKS_SHARE = 0.6  # where figures are wanted too
RESERVE_S = END_S + 5  # to end what runs, and to write


class Budget:
    def __init__(self, minutes=None, now=time.monotonic):
        self.now = now
        self.begin = now()
        self.seconds = math.inf if minutes is None else max(0.0, 60 * minutes - RESERVE_S)

    def left(self, share=1.0):
        """Seconds until this share of the time is over; 0 and more."""
        return max(0.0, self.begin + self.seconds * share - self.now())
