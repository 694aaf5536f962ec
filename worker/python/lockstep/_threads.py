"""Names the threads that keep a script's process alive after its last line."""
from __future__ import annotations

import contextlib
import faulthandler
import sys
import threading

from ._waits import WAITS

WAIT_S = 10.0  # from the last line on


def watch_threads() -> None:
    """Call it at the end of the loop; a second call does nothing."""
    if not any(thread.name == _NAME for thread in threading.enumerate()):
        threading.Thread(target=_watch, name=_NAME, daemon=True).start()


_NAME = "lockstep-threads"


def _watch() -> None:
    threading.main_thread().join()
    staying = [thread for thread in threading.enumerate()
               if not thread.daemon and thread is not threading.main_thread()]
    for thread in staying:
        thread.join(WAIT_S / len(staying))
    names = ", ".join(thread.name for thread in staying if thread.is_alive())
    if not names:
        return
    WAITS.say(f"the script has come to its end, and its process waits for the thread {names}, which "
              "goes on; end the thread, or make it with daemon=True. Where it stands follows")
    with contextlib.suppress(AttributeError, OSError, ValueError):  # stderr is no file
        faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
