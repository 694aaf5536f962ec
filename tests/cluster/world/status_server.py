"""Kubeflow Trainer's status server, as a reporting client sees it. It is a process of its own that
serves HTTPS, takes what the TrainJob's schema takes, and writes down every request.

    status_server.py HOST CERTIFICATES DIRECTORY

DIRECTORY/token is the valid token. DIRECTORY/mood is the server's behaviour ("serve", "fail",
"hang"). The server makes DIRECTORY/port and DIRECTORY/requests.jsonl."""
import http.server
import json
import pathlib
import re
import ssl
import subprocess
import sys
import threading
import time

PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/shoes/status"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
FIELDS = {"progressPercentage", "estimatedRemainingSeconds", "metrics", "lastUpdatedTime"}


def fault_of(status):
    """The defect for which the API server would refuse a report, by the schema of a TrainJob's
    status.trainerStatus."""
    if not set(status) <= FIELDS:
        return f"unknown fields {set(status) - FIELDS}"
    if not re.fullmatch(TIME, status.get("lastUpdatedTime", "")):
        return "lastUpdatedTime is required when trainerStatus is present"
    if not 0 <= status.get("progressPercentage", 0) <= 100:
        return "progressPercentage"
    if not 0 <= status.get("estimatedRemainingSeconds", 0) < 2**31:
        return "estimatedRemainingSeconds"
    metrics = status.get("metrics", [])
    if len(metrics) > 256 or any(set(m) != {"name", "value"} for m in metrics):
        return "metrics"
    texts = [text for metric in metrics for text in metric.values()]
    return None if all(isinstance(t, str) and 1 <= len(t) <= 64 for t in texts) else "a metric"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        token = self.headers["Authorization"]
        mood = (self.server.directory / "mood").read_text()
        if mood == "hang":
            self._note(0, token, {})
            threading.Event().wait()
        code, message, status = self._judge(mood, token, body)
        answer = body if code == 200 else json.dumps(
            {"kind": "Status", "status": "Failure", "message": message, "code": code}).encode()
        self._note(code, token, status)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _judge(self, mood, token, body):
        if mood == "fail":
            return 500, "Internal error", {}
        if self.path != PATH:
            return 404, "Not found", {}
        if token != "Bearer " + (self.server.directory / "token").read_text():
            return 403, "Forbidden", {}
        status = json.loads(body)["trainerStatus"]
        fault = fault_of(status)
        return (422, fault, {}) if fault else (200, "", status)

    def _note(self, code, token, status):
        line = {"at_s": time.monotonic(), "code": code, "token": token, "status": status}
        with self.server.lock, open(self.server.directory / "requests.jsonl", "a") as out:
            out.write(json.dumps(line) + "\n")

    def log_message(self, *_):
        pass


class StatusServer:
    """The process, for a test. `prefix`: a command that starts it on another host."""

    def __init__(self, directory, certificates, host="127.0.0.1", prefix=()):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir()
        self.requests_file = self.directory / "requests.jsonl"
        self.requests_file.touch()
        self.set("mood", "serve")
        self.process = subprocess.Popen([*prefix, sys.executable, __file__, host, certificates,
                                         self.directory])
        port = self.directory / "port"
        while not port.exists() and self.process.poll() is None:
            time.sleep(0.02)
        self.url = f"https://{host}:{port.read_text()}{PATH}"

    def set(self, what, text):
        """Replaces the file at once, as the kubelet does."""
        fresh = self.directory / f"{what}.new"
        fresh.write_text(text)
        fresh.rename(self.directory / what)

    def requests(self):
        return [json.loads(line) for line in self.requests_file.read_text().splitlines()]

    def statuses(self):
        """The accepted reports, oldest first."""
        return [request["status"] for request in self.requests() if request["code"] == 200]

    def stop(self):
        self.process.kill()
        self.process.wait()


def main(host, certificates, directory):
    server = http.server.ThreadingHTTPServer((host, 0), Handler)
    server.directory, server.lock = pathlib.Path(directory), threading.Lock()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(f"{certificates}/tls.crt", f"{certificates}/tls.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    fresh = server.directory / "port.new"
    fresh.write_text(str(server.server_port))
    fresh.rename(server.directory / "port")
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
