"""A cloud's metadata service, for tests: AWS, GCP or Azure, with notices on demand.

    with MetadataServer("aws") as service:
        start(env={**os.environ, "LOCKSTEP_METADATA_URL": service.setting})
        service.answers["/latest/meta-data/spot/instance-action"] = '{"action": "terminate", ...}'
"""
import datetime
import http.server
import threading

TOKEN = "AQAEAtoken=="
ABOVE = {"gcp": ("Metadata-Flavor", "Google"), "azure": ("Metadata", "true"),
         "aws": ("X-aws-ec2-metadata-token", TOKEN)}


def in_seconds(seconds, form):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.strftime(form)


def aws_interruption(seconds):
    return f'{{"action": "terminate", "time": "{in_seconds(seconds, "%Y-%m-%dT%H:%M:%SZ")}"}}'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_asked = self.path == "/latest/api/token" and self.headers.get(
            "X-aws-ec2-metadata-token-ttl-seconds", "").isdecimal()
        self.reply(200, TOKEN) if self.owner.cloud == "aws" and is_asked else self.reply(405)

    def do_GET(self):
        owner = self.owner
        name, value = ABOVE[owner.cloud]
        with owner.changed:
            owner.asked += 1
            owner.changed.notify_all()
        if self.headers.get(name) != value:
            return self.reply(401 if owner.cloud == "aws" else 403)
        answer = owner.answers.get(self.path.partition("?")[0])
        return self.reply(404) if answer is None else self.reply(200, answer)


class MetadataServer:
    """`answers`: text by path; other paths are 404. `asked`: how many questions came."""

    def __init__(self, cloud):
        self.cloud, self.answers, self.asked = cloud, {}, 0
        self.changed = threading.Condition()

    def wait_until_asked(self, more=1, seconds=60):
        with self.changed:
            wanted = self.asked + more
            if not self.changed.wait_for(lambda: self.asked >= wanted, seconds):
                raise AssertionError(f"nobody asked the metadata service in {seconds} s")

    def __enter__(self):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                    type("Bound", (Handler,), {"owner": self}))
        self.http.daemon_threads = True
        self.setting = f"{self.cloud}=http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
