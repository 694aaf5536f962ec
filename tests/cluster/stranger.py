"""Calls an address without knowing the run's token, and expects to be hung up on.

    stranger.py HOST:PORT
"""
import socket
import sys

host, port = sys.argv[1].rsplit(":", 1)
with socket.create_connection((host, int(port)), timeout=20) as line:
    line.settimeout(20)
    line.sendall(b"\xff" * 4096)
    try:
        while line.recv(4096):
            pass  # a challenge, which cannot be answered
    except ConnectionResetError:
        pass
