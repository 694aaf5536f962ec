"""Ports of loopback for servers that must know theirs before they start."""
import socket


def held_port(add_cleanup, host="127.0.0.1"):
    """A port that no other program is given until the cleanup: a bound socket keeps it. It does not
    listen, so a server that sets SO_REUSEADDR, as servers do, can bind the port besides."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    add_cleanup(holder.close)
    holder.bind((host, 0))
    return holder.getsockname()[1]
