"""The connections of a bucket (bucket.py): HTTP/1.1 with keep-alive, and HTTPS."""
import contextlib
import http.server
import urllib.parse

from bucket_protocol import Lost, Refusal, Request, operation_of
from range_server import Handler

MOST_BODY_BYTES = 1 << 30


class BucketHandler(Handler):
    disable_nagle_algorithm = True

    def date_time_string(self, timestamp=None):
        return super().date_time_string(self.owner.now() if timestamp is None else timestamp)

    def serve(self):
        bucket, request = self.owner, self.request_head()
        entry, answer = bucket.note(request), None
        with contextlib.suppress(Lost):
            try:
                if bucket.closing.is_set() or request.faults.of("away", request):
                    raise Lost
                self.read_body(request)
                answer = bucket.answer_to(request, entry)
            except Refusal as refusal:
                answer = refusal.answer
        bucket.note_end(entry, answer)
        if answer is None:
            self.close_connection = True
        else:
            self.reply(answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def request_head(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        bucket, _, key = urllib.parse.unquote(url.path).removeprefix("/").partition("/")
        headers = {name.lower(): value.strip() for name, value in self.headers.items()}
        return Request(self.command, self.path, bucket, key, query, headers,
                       operation_of(self.command, key, query), self.owner.faults)

    def read_body(self, request):
        """The connection ends with a refusal, since the body is still on its way."""
        said = request.headers.get("content-length", "" if request.method == "PUT" else "0")
        refused = None
        if "transfer-encoding" in request.headers or not said:
            refused = Refusal(411, "MissingContentLength")
        elif not said.isdecimal():
            refused = Refusal(400, "InvalidRequest", "Content-Length is no number")
        elif int(said) > MOST_BODY_BYTES:
            refused = Refusal(400, "EntityTooLarge")
        if refused:
            self.close_connection = True
            raise refused
        try:
            request.body = self.rfile.read(int(said))
        except OSError:
            raise Lost from None
        if len(request.body) < int(said):
            raise Lost

    def reply(self, answer):
        has_body = self.command != "HEAD" and answer.status != 204
        self.send_response(answer.status)
        self.send_header("x-amz-request-id", "LOCKSTEP")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        if answer.sent is not None or self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if has_body and answer.is_chunked:
            half = len(answer.body) // 2
            for piece in (answer.body[:half], answer.body[half:]):
                self.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.send(b"0\r\n\r\n")
        elif has_body:
            self.send(answer.body[:answer.sent])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, owner):
        self.owner = owner
        super().__init__(("127.0.0.1", owner.port), BucketHandler)

    def get_request(self):
        connection, address = super().get_request()
        if self.owner.tls:  # its own thread shakes hands, so that a slow client stops no other
            connection = self.owner.tls.wrap_socket(connection, server_side=True,
                                                    do_handshake_on_connect=False)
        return connection, address

    def verify_request(self, *_):
        faults = self.owner.faults
        return not faults.away or "away" in faults.only
