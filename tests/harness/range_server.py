"""An HTTP server of files that knows byte ranges, counts requests, and has faults on demand. The
test owns the server, so it knows its faults and their times.

    with RangeServer(directory) as server:
        server.url              # http://127.0.0.1:PORT
        server.fault = ...      # f(path, range) -> name of a fault or None, per GET of content
        server.head = 405       # answers HEAD so
        server.unknown = 400    # answers so to names of no file; "page": with a page, and 200
"""
import contextlib
import hashlib
import http.server
import pathlib
import re
import ssl
import subprocess
import threading
import time
import urllib.parse


class Throttle:
    """Limits all connections together to this many bytes/s, with a pause before each answer."""

    def __init__(self, bytes_per_s, latency_s=0):
        self.bytes_per_s, self.latency_s = bytes_per_s, latency_s
        self.lock, self.free_at = threading.Lock(), 0.0

    def wait(self, count):
        with self.lock:
            begin = max(self.free_at, time.monotonic())
            self.free_at = begin + count / self.bytes_per_s
        time.sleep(max(0, self.free_at - time.monotonic()))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def owner(self):
        return self.server.owner

    def path_and_content(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
        target = (self.owner.directory / path).resolve()
        if not target.is_file() or self.owner.directory not in target.parents:
            return path, None
        return path, target.read_bytes()

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.send(body)

    def answer_unknown(self):
        if self.owner.unknown == "page":
            self.answer(200, b"\n<!DOCTYPE html><html><body>Welcome</body></html>")
        else:
            self.answer(self.owner.unknown)

    def send(self, body):
        throttle = self.owner.throttle
        for at in range(0, len(body), 16384):
            piece = body[at:at + 16384]
            if throttle:
                throttle.wait(len(piece))
            self.wfile.write(piece)

    def do_HEAD(self):
        path, content = self.path_and_content()
        self.owner.note("HEAD", path, 0)
        if self.owner.head:
            self.answer(self.owner.head)
            return
        if content is None:
            self.answer_unknown()
            return
        self.send_response(200)
        self.send_header("ETag", self.owner.etag(path, content))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()

    def do_GET(self):
        path, content = self.path_and_content()
        said = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if content is None:
            self.owner.note("GET", path, 0)
            self.answer_unknown()
            return
        if not said:
            self.owner.note("GET", path, len(content))
            self.answer(200, content, ETag=self.owner.etag(path, content))
            return
        if self.owner.throttle:
            time.sleep(self.owner.throttle.latency_s)
        first, last = int(said[1]), min(int(said[2]), len(content) - 1)
        part = content[first:last + 1]
        self.owner.note("GET", path, len(part))
        fault = self.owner.fault and self.owner.fault(path, (first, last))
        if fault:
            with self.owner.lock:
                self.owner.faults.append(fault)
        etag = '"another"' if fault == "another etag" else self.owner.etag(path, content)
        whole = f"bytes {first}-{last}/{len(content)}"
        if fault == "500":
            self.answer(500)
        elif fault == "no ranges":
            self.answer(200, content, ETag=etag)
        elif fault == "redirect":
            self.answer(302, Location=self.owner.elsewhere + self.path)
        elif fault == "wrong range":
            self.answer(206, part, ETag=etag, Content_Range=f"bytes {first + 1}-{last + 1}/{len(content)}")
        elif fault == "more":
            self.answer(206, part + b"more", ETag=etag, Content_Range=whole)
        elif fault in ("cut", "stall"):
            self.send_response(206)
            self.send_header("ETag", etag)
            self.send_header("Content-Range", whole)
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part[:len(part) // 2])
            self.wfile.flush()
            if fault == "stall":
                self.owner.closing.wait()
            self.close_connection = True
        else:
            self.answer(206, part, ETag=etag, Content_Range=whole)

    def handle(self):
        with contextlib.suppress(OSError):  # whoever asked has gone
            super().handle()


class RangeServer:
    handler = Handler

    def __init__(self, directory, throttle=None):
        self.directory = pathlib.Path(directory).resolve()
        self.throttle = throttle
        self.fault = None
        self.head, self.unknown = None, 404
        self.elsewhere = ""
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.requests, self.faults, self.bytes = [], [], 0

    def note(self, method, path, count):
        with self.lock:
            self.requests.append((method, path))
            self.bytes += count

    def etag(self, path, content):
        return f'"{hashlib.md5(content).hexdigest()}"'

    def write_manifest(self):
        names = sorted(str(path.relative_to(self.directory)) for path in self.directory.rglob("*")
                       if path.is_file() and path.name != "manifest.txt")
        (self.directory / "manifest.txt").write_text("".join(name + "\n" for name in names))

    def encrypt(self, directory):
        """Serves over HTTPS from now on, with a new certificate. Returns the certificate's path."""
        key, certificate = directory / "key.pem", directory / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")
        return certificate

    def __enter__(self):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.http.daemon_threads = True
        self.http.owner = self
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()
