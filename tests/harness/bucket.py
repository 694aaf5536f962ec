"""A server that is compatible with Amazon S3 as far as Lockstep writes and reads a bucket, that
verifies everything, and fails on demand.

    with Bucket(Faults(fail_every=3), page=2) as bucket:
        run(env=bucket.environment)      # AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL_S3 ...
        bucket.objects["a/key"]          # its bytes
        bucket.faults.lose_answer_every = 2
        bucket.log[-1].status            # of the newest request; 0: it got no answer

    python3 bucket.py [--port N] [--faults JSON] ...     prints "ready PORT"; keys: KEY_ID, SECRET

bucket_faults.py has the faults, bucket_gate.py says who is let in, and bucket_objects.py and
bucket_multipart.py have the operations. The server refuses with 501 what it would have to ignore.

Like Amazon's, and unlike many servers:
  - A client that may not list (s3:ListBucket) gets 403 for a missing key, not 404.
  - Parts have a checksum if, and only if, their upload was created with x-amz-checksum-algorithm.
    Then the completion names each checksum, too.
  - XML comes chunked. A completion may answer 200 with an error inside.

Thread-safety: all attributes from any thread. Copy `objects` before you iterate.
"""
import argparse
import contextlib
import dataclasses
import signal
import ssl
import sys
import threading
import time

from bucket_faults import Faults, faults_of
from bucket_gate import admit
from bucket_http import Server
from bucket_multipart import Uploads
from bucket_objects import Objects
from bucket_protocol import OPERATIONS, Lost, Refusal

KEY_ID, SECRET = "AKIDLOCKSTEPTEST0001", "a/secret+of/the+tests"
MOST_KEY_BYTES = 1024
SMALLEST_PART_BYTES = 5 << 20
DEADLINE_S = 60
END_POLL_S = 0.02


@dataclasses.dataclass
class Entry:
    """A request of the log, which has it from the moment that its headers have come."""
    method: str
    bucket: str
    key: str
    query: dict
    operation: str  # "PutObject"; "" if the server does not know it
    at_s: float  # of time.monotonic()
    releases: int  # of the bucket, until then
    status: int | None = None  # None: it has not ended yet; 0: it got no answer
    code: str = ""  # of the error


class Bucket:
    """`buckets` are their names. The first is the one that `objects` and `uploads` show. `keys`: id
    -> (secret, session token or None). `page`: the most rows of any list. `smallest_part`: the
    bytes that each part but the last must have. `tls`: an ssl.SSLContext, for HTTPS.
    """

    def __init__(self, faults=None, *, buckets=("runs",), keys=None, region="us-east-1", page=1000,
                 smallest_part=SMALLEST_PART_BYTES, port=0, tls=None):
        self.faults = faults or Faults()
        self.keys = keys or {KEY_ID: (SECRET, None)}
        self.region, self.page, self.smallest_part = region, page, smallest_part
        self.port, self.tls = port, tls
        self.expired_status = 403  # of ExpiredToken. Amazon's own is 400.
        self.throttle = None  # a range_server.Throttle of what it sends
        self.log = []  # of Entry
        self.changed = threading.Condition()  # holds the lock of all state
        self.closing = threading.Event()
        self.releases = 0
        self.shelves = {}
        for name in buckets:
            objects = Objects(self)
            self.shelves[name] = objects, Uploads(self, objects)

    @property
    def objects(self):
        """Key -> bytes. What a test puts there is an object."""
        return self.objects_of(next(iter(self.shelves)))

    def objects_of(self, bucket):
        return self.shelves[bucket][0].contents

    @property
    def uploads(self):
        """Id -> bucket_multipart.Upload, while it is neither completed nor aborted."""
        return next(iter(self.shelves.values()))[1].open

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def environment(self):
        key_id, (secret, token) = next(iter(self.keys.items()))
        return {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret,
                "AWS_ENDPOINT_URL_S3": self.url, "AWS_REGION": self.region,
                **({"AWS_SESSION_TOKEN": token} if token else {})}

    def now(self):
        return time.time() + self.faults.clock_offset_s

    def release(self):
        """Lets the stalled requests go on, all that have come until now."""
        with self.changed:
            self.releases += 1
            self.changed.notify_all()

    def wait_for(self, holds, seconds=DEADLINE_S):
        """Asks `holds()` at each change of the log until it is true. Returns its value."""
        with self.changed:
            value = self.changed.wait_for(holds, seconds)
            if not value:
                raise AssertionError(f"not within {seconds} s; the log ends with {self.log[-20:]}")
            return value

    def note(self, request):
        with self.changed:
            entry = Entry(request.method, request.bucket, request.key, request.query,
                          request.operation, time.monotonic(), self.releases)
            self.log.append(entry)
            self.changed.notify_all()
            return entry

    def note_end(self, entry, answer):
        with self.changed:
            entry.status, entry.code = (answer.status, answer.code) if answer else (0, "")
            self.changed.notify_all()

    def answer_to(self, request, entry):
        """Raises Refusal or Lost. The order is that of the fields of Faults."""
        admit(request, self)
        faults = request.faults
        if request.bucket not in self.shelves:
            raise Refusal(404, "NoSuchBucket", BucketName=request.bucket)
        if len(request.key.encode()) > MOST_KEY_BYTES:
            raise Refusal(400, "KeyTooLongError")
        self.closing.wait(faults.of("slow_s", request) or 0)
        if faults.strikes("stall", request):
            self.stall(entry)
        if self.closing.is_set() or faults.strikes("lose_request_every", request):
            raise Lost
        if faults.strikes("fail_every", request):
            raise Refusal(503, "SlowDown", "Please reduce your request rate.")
        if OPERATIONS[request.operation].action in (faults.of("deny", request) or ()):
            raise Refusal(403, "AccessDenied", "Access Denied")
        with self.changed:
            answer = self.method_of(request)(request)
        if faults.strikes("fail_after_every", request):
            raise Refusal(500, "InternalError", "We encountered an internal error.")
        is_completed = request.operation == "CompleteMultipartUpload" and not answer.code
        if is_completed and faults.strikes("complete_answer_lost", request):
            raise Lost
        if faults.strikes("lose_answer_every", request):
            raise Lost
        return answer

    def method_of(self, request):
        objects, uploads = self.shelves[request.bucket]
        return {"PutObject": objects.put, "GetObject": objects.get, "HeadObject": objects.get,
                "DeleteObject": objects.delete, "ListObjectsV2": objects.list,
                "CreateMultipartUpload": uploads.create, "UploadPart": uploads.put_part,
                "CompleteMultipartUpload": uploads.complete, "ListParts": uploads.list_parts,
                "AbortMultipartUpload": uploads.abort,
                "ListMultipartUploads": uploads.list}[request.operation]

    def stall(self, entry):
        with self.changed:
            self.changed.wait_for(
                lambda: self.releases > entry.releases or self.closing.is_set())

    def __enter__(self):
        self.http = Server(self)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(END_POLL_S,), daemon=True).start()
        return self

    def __exit__(self, *_):
        with self.changed:
            self.closing.set()
            self.changed.notify_all()
        self.http.shutdown()
        self.http.server_close()


def main(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--faults", type=faults_of, help=faults_of.__doc__)
    parser.add_argument("--bucket", action="append", help="may be given several times")
    parser.add_argument("--token", help="the session token that requests must have")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--page", type=int, default=1000)
    parser.add_argument("--smallest-part", type=int, default=SMALLEST_PART_BYTES, metavar="BYTES")
    parser.add_argument("--until-eof", action="store_true", help="ends with its standard input")
    parser.add_argument("--certificate", nargs=2, metavar=("CHAIN", "KEY"), help="serves HTTPS")
    options = parser.parse_args(words)
    tls = None
    if options.certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*options.certificate)
    with Bucket(options.faults, buckets=options.bucket or ("runs",), region=options.region,
                keys={KEY_ID: (SECRET, options.token)}, page=options.page, port=options.port,
                smallest_part=options.smallest_part, tls=tls) as bucket:
        print("ready", bucket.port, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read() if options.until_eof else signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
