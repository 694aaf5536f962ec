"""Calls from another host without a right to, and prints as JSON how the server answered.

    tls_stranger.py control HOST:PORT CERTIFICATES   in each way in which a caller can be wrong
    tls_stranger.py http HOST:PORT CERTIFICATES      the same over HTTP
    tls_stranger.py crowd HOST:PORT COUNT            idle connections, until its input is closed

CERTIFICATES has one directory for each stranger.
"""
import json
import pathlib
import resource
import socket
import ssl
import sys
import time

PATIENCE_S = 300  # no server of ours is so patient


def dial(address):
    host, port = address.rsplit(":", 1)
    line = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    line.settimeout(PATIENCE_S)
    return line


def context_of(directory):
    """Trusts every server. Shows the certificate in the directory, if there is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if directory is not None:
        context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    return context


def hear(line):
    """Reads until the other side hangs up."""
    heard = b""
    try:
        while piece := line.recv(4096):
            heard += piece
    except (ConnectionResetError, ssl.SSLError) as error:
        return heard.decode(errors="replace") + f"<{getattr(error, 'reason', 'reset')}>"
    return heard.decode(errors="replace")


def in_the_clear(address, text):
    with dial(address) as line:
        line.sendall(text)
        return hear(line)


def with_certificate(address, directory, text=b"", old=False):
    context = context_of(directory)
    if old:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    with dial(address) as line:
        try:
            with context.wrap_socket(line) as secured:
                secured.sendall(text)
                return hear(secured)
        except ssl.SSLError as error:
            return f"<{error.reason}>"
        except ConnectionResetError:
            return "<reset>"


def slowly(address):
    """Sends a byte of a fake handshake now and then. Returns whether the server hung up."""
    begun = time.monotonic()
    with dial(address) as line:
        line.sendall(b"\x16\x03\x01\x02\x00")
        line.settimeout(0.2)
        while time.monotonic() - begun < PATIENCE_S:
            try:
                line.sendall(b"\x01")
                if line.recv(1) == b"":
                    return True
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                return True
    return False


def control(address, certificates):
    return {"clear": in_the_clear(address, b"LOCKSTP\x05" + bytes(64)),
            "bare": with_certificate(address, None),
            "old": with_certificate(address, certificates / "ours", old=True),
            "other": with_certificate(address, certificates / "other"),
            "expired": with_certificate(address, certificates / "expired"),
            "garbage": with_certificate(address, certificates / "ours", b"\xff" * 4096),
            "hung_up": slowly(address)}


def http(address, certificates):
    token = (certificates / "http_token").read_text().strip()
    host = address.rsplit(":", 1)[0]

    def ask(path="/metrics", name=host, bearer=token, more=""):
        said = f"Authorization: Bearer {bearer}\r\n" if bearer else ""
        request = f"GET {path} HTTP/1.1\r\nHost: {name}\r\n{said}{more}Connection: close\r\n\r\n"
        answer = with_certificate(address, None, request.encode())
        return answer.split("\r\n", 1)[0]

    return {"token": ask(), "no_token": ask(bearer=None), "wrong_token": ask(bearer="0" * 64),
            "healthz": ask("/healthz", bearer=None), "certified_name": ask(name="localhost"),
            "rebound": ask(name="evil.example"), "header": ask(more=f"X: {'x' * 20000}\r\n"),
            "clear": in_the_clear(address, f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n"
                                  .encode()).split("\r\n", 1)[0],
            "hung_up": slowly(address)}


def crowd(address, count):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    lines = [dial(address) for _ in range(min(count, most - 64))]
    print(len(lines), flush=True)
    sys.stdin.read()


def main(what, address, third):
    if what == "crowd":
        crowd(address, int(third))
        return
    met = {"control": control, "http": http}[what](address, pathlib.Path(third))
    print(json.dumps(met))


main(*sys.argv[1:])
