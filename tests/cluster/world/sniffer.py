"""Listens on the network interfaces of this host until a number of bytes has passed. Then prints as
JSON which of the given words, in hexadecimal, were among them.

    sniffer.py BYTES WORD..."""
import json
import socket
import sys

EVERY_PROTOCOL = 3
LONGEST_FRAME = 65_536


def main():
    enough_bytes = int(sys.argv[1])
    words = {word: bytes.fromhex(word) for word in sys.argv[2:]}
    found, heard_bytes = set(), 0
    ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
    while heard_bytes < enough_bytes:
        frame = ear.recv(LONGEST_FRAME)
        heard_bytes += len(frame)
        found |= {word for word, value in words.items() if value in frame}
    print(json.dumps(sorted(found)))


if __name__ == "__main__":
    main()
