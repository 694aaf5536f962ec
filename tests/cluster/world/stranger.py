"""Calls an address without knowing the run's token, and expects the other end to hang up each time.

    stranger.py HOST:PORT                     says something that is no message
    stranger.py HOST:PORT frame               begins a message of 4 GiB
    stranger.py HOST:PORT replay LISTEN_PORT  stands between the address and a friend who calls
                                              LISTEN_PORT; then repeats what the friend has said
"""
import select
import socket
import sys

PREAMBLE = b"LOCKSTP\x05"
AUTH_RESPONSE = b"\x02"
SECONDS = 300


def call(address):
    host, port = address.rsplit(":", 1)
    line = socket.create_connection((host, int(port)), timeout=SECONDS)
    line.settimeout(SECONDS)
    return line


def says(line, words):
    """Talks until the other end hangs up."""
    line.sendall(words)
    try:
        while line.recv(4096):
            pass  # a challenge, which cannot be answered
    except ConnectionResetError:
        pass


def pass_on(friend, server):
    """Passes everything both ways until one end closes. Returns what the friend has said."""
    said = b""
    while True:
        ready, _, _ = select.select([friend, server], [], [], SECONDS)
        for end in ready:
            words = end.recv(65_536)
            if not words:
                return said
            if end is friend:
                said += words
            (server if end is friend else friend).sendall(words)
        if not ready:
            return said


def replay(address, port):
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(SECONDS)
        print("listening", flush=True)
        friend, _ = listener.accept()
        with friend, call(address) as server:
            said = pass_on(friend, server)
    with call(address) as line:
        says(line, said)


def main():
    address, how = sys.argv[1], sys.argv[2:]
    if how[:1] == ["replay"]:
        return replay(address, int(how[1]))
    with call(address) as line:
        says(line, PREAMBLE + b"\xff\xff\xff\xff" + AUTH_RESPONSE if how == ["frame"]
             else b"\xff" * 4096)


if __name__ == "__main__":
    main()
