"""A small server that speaks S3, as far as reading goes: ListObjectsV2 in pages, GET with ranges,
and AWS Signature Version 4, including session tokens, which it verifies by itself.

Source: "Authenticating Requests: Using the Authorization Header", Amazon S3 API Reference.
"""
import hashlib
import hmac
import re
import urllib.parse
from typing import NamedTuple
from xml.sax.saxutils import escape

from range_server import Handler, RangeServer


def signing_key(secret, date, region, service="s3"):
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def quoted(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-._~")


def signature(secret, method, path, query, headers, signed, region):
    """`path` and the pairs of `query` are decoded. Names of `headers` are in lower case."""
    pairs = sorted((quoted(name), quoted(value)) for name, value in query)
    request = "\n".join([
        method, quoted(path, "/"), "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{' '.join(headers[name].split())}" for name in signed), "", ";".join(signed),
        headers["x-amz-content-sha256"]])
    time = headers["x-amz-date"]
    scope = f"{time[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, hashlib.sha256(request.encode()).hexdigest()])
    return hmac.digest(signing_key(secret, time[:8], region), text.encode(), "sha256").hex()


class Claim(NamedTuple):
    """What an Authorization header says of its request."""
    key_id: str
    date: str
    region: str
    signed: list  # names of headers
    signature: str


def claim_in(headers):
    """None if the header is missing, or of another form."""
    said = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
        r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})",
        headers.get("authorization", ""))
    if not said:
        return None
    key_id, date, region, signed, claimed = said.groups()
    return Claim(key_id, date, region, signed.split(";"), claimed)


def unsigned(claim, headers):
    """The headers that must be signed, and are not."""
    return {"host", *(name for name in headers if name.startswith("x-amz-"))} - set(claim.signed)


def is_signed_with(secret, claim, method, target, headers):
    """`target` is what the request line has."""
    if not {"x-amz-content-sha256", "x-amz-date", *claim.signed} <= set(headers):
        return False
    url = urllib.parse.urlsplit(target)
    right = signature(secret, method, urllib.parse.unquote(url.path),
                      urllib.parse.parse_qsl(url.query, keep_blank_values=True), headers,
                      claim.signed, claim.region)
    return hmac.compare_digest(right, claim.signature)


class S3Handler(Handler):
    def refuse(self, status, code):
        with self.owner.lock:
            self.owner.refusals.append(code)
        self.answer(status, f"<Error><Code>{code}</Code><Key>secret-things</Key></Error>".encode())

    def is_let_in(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        claim = claim_in(headers)
        if not claim:
            self.refuse(403, "AccessDenied")
            return False
        key = self.owner.keys.get(claim.key_id)
        if key is None:
            self.refuse(403, "InvalidAccessKeyId")
            return False
        secret, token = key
        if unsigned(claim, headers) or not is_signed_with(secret, claim, self.command, self.path,
                                                          headers):
            self.refuse(403, "SignatureDoesNotMatch")
            return False
        if headers.get("x-amz-security-token") != token:
            self.refuse(400, "ExpiredToken")
            return False
        return True

    def do_HEAD(self):
        if self.is_let_in():
            super().do_HEAD()

    def do_GET(self):
        if not self.is_let_in():
            return
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        if query.get("list-type") == "2":
            self.list_page(query)
        else:
            super().do_GET()

    def list_page(self, query):
        bucket = urllib.parse.urlsplit(self.path).path.strip("/")
        root = self.owner.directory / bucket
        keys = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        keys = [key for key in keys if key.startswith(query.get("prefix", ""))]
        # A token with characters that must be encoded, and may be used once only.
        first = self.owner.tokens.pop(query["continuation-token"]) if "continuation-token" in query else 0
        page, rest = keys[first:first + self.owner.page], len(keys) - first - self.owner.page
        rows = []
        for key in page:
            content = (root / key).read_bytes()
            etag = self.owner.etag(f"{bucket}/{key}", content).replace('"', "&quot;")
            rows.append(f"<Contents><Key>{escape(key)}</Key><ETag>{etag}</ETag>"
                        f"<Size>{len(content)}</Size></Contents>")
        more = ""
        if rest > 0:
            token = self.owner.same_token or f"t/{len(self.owner.tokens)}+={first + len(page)} x"
            self.owner.tokens[token] = first + len(page)
            more = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>"
        with self.owner.lock:
            self.owner.pages += 1
        self.answer(200, (f"<?xml version=\"1.0\"?><ListBucketResult>{''.join(rows)}<IsTruncated>"
                          f"{'true' if rest > 0 else 'false'}</IsTruncated>{more}"
                          "</ListBucketResult>").encode())


class S3Server(RangeServer):
    """The directories of `directory` are buckets. `keys`: id -> (secret, session token or None)."""
    handler = S3Handler

    def __init__(self, directory, keys, page=1000):
        super().__init__(directory)
        self.keys, self.page = keys, page
        self.tokens, self.refusals, self.pages = {}, [], 0
        self.same_token = None  # of every page
