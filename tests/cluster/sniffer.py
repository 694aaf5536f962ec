"""Hears what passes the network interfaces of this host until its stdin ends, then prints as JSON how
many bytes of TCP that was and which of the given words, in hexadecimal, were in it.

    sniffer.py WORD..."""
import json
import select
import socket
import sys

EVERY_PROTOCOL = 3
LONGEST_FRAME = 65_536


def main():
    words = {word: bytes.fromhex(word) for word in sys.argv[1:]}
    found, heard_bytes = set(), 0
    ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
    print("listening", flush=True)
    while True:
        ready, _, _ = select.select([ear, sys.stdin], [], [])
        if sys.stdin in ready:
            break
        frame = ear.recv(LONGEST_FRAME)
        heard_bytes += len(frame)
        found |= {word for word, value in words.items() if value in frame}
    print(json.dumps({"bytes": heard_bytes, "found": sorted(found)}))


if __name__ == "__main__":
    main()
