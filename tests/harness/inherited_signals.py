"""Gives a handler, on import, to signals that this process was told to ignore.

A shell without job control, and many agents of CI, start commands with SIGINT and SIGQUIT ignored;
`nohup` ignores SIGHUP. Children inherit that, so a test that sends such a signal would wait for its
limit. exec removes a handler, so children begin with the kernel's default action.
"""
import signal


def stay(*_):
    """Keeps the signal without effect for this process."""


signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, stay)
