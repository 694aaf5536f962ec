"""Imported for what it does: signals that this process was told to ignore get a handler.

A shell without job control, and many agents of CI, start commands with SIGINT and SIGQUIT ignored;
`nohup` ignores SIGHUP. Children inherit that, so a test that sends such a signal would wait for its
limit. A handler goes with exec, so children begin with what the kernel does by default.
"""
import signal


def stay(*_):
    """For this process the signal stays without effect."""


signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, stay)
