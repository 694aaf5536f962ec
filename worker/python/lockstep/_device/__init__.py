"""The device that a script computes on, where it is not the CPU: which one (_place.py), how gradients
leave it for the host (_staging.py) or stay there for their sums (_places.py), and how the sums of a
step (_sums.py) and batches (_sender.py) reach it.

Only _place.py knows CUDA: copies, events and pinned memory are torch's own, so the same code serves
every device that torch has, and the device of the tests.
"""

from ._place import HOST, Device, open_device
from ._places import Places
from ._sender import Sender, Sent, sender_to
from ._staging import Staging
from ._sums import Sums, floats_at

__all__ = ["HOST", "Device", "Places", "Sender", "Sent", "Staging", "Sums", "floats_at",
           "open_device", "sender_to"]
