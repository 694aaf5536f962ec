"""A client for the tests of a bucket (bucket.py): http.client, and signature() of s3_server.py."""
import base64
import hashlib
import http.client
import re
import time
import unittest
import urllib.parse
from xml.sax.saxutils import unescape

from bucket import KEY_ID, SECRET, Bucket
from checksums import crc32c
from s3_server import quoted, signature


def crc_text(body):
    return base64.b64encode(crc32c(body).to_bytes(4, "big")).decode()


def crc_of(body):
    return {"x-amz-checksum-crc32c": crc_text(body)}


class Said:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        self.code = (self.all("Code") or [""])[0]

    def all(self, name):
        found = re.findall(f"<{name}>(.*?)</{name}>", self.body.decode(errors="replace"))
        return [unescape(text, {"&quot;": '"'}) for text in found]


class Client:
    """One connection, whose requests are signed. `ask` returns None if there is no answer."""

    def __init__(self, url, secret=SECRET, key_id=KEY_ID, region="us-east-1", token=None, tls=None,
                 off_s=0):
        self.secret, self.key_id, self.region, self.token = secret, key_id, region, token
        self.off_s = off_s
        host = urllib.parse.urlsplit(url).netloc
        self.connection = (http.client.HTTPSConnection(host, context=tls, timeout=60) if tls else
                           http.client.HTTPConnection(host, timeout=60))
        self.host = host

    def send(self, method, key=None, query=(), body=b"", bucket="runs", unsigned=None, **headers):
        path = f"/{bucket}" + ("" if key is None else f"/{key}")
        query = list(dict(query).items())
        named = {name.lower().replace("_", "-"): value for name, value in headers.items()}
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + self.off_s))
        named = {"host": self.host, "x-amz-date": when,
                 "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), **named}
        if self.token:
            named["x-amz-security-token"] = self.token
        names = sorted(name for name in named if name == "host" or name.startswith("x-amz-"))
        right = signature(self.secret, method, path, query, named, names, self.region)
        named["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.key_id}/{when[:8]}/{self.region}/s3/aws4_request, "
            f"SignedHeaders={';'.join(names)}, Signature={right}")
        target = quoted(path, "/") + ("?" if query else "") + "&".join(
            f"{quoted(name)}={quoted(value)}" for name, value in query)
        self.connection.request(method, target, body, {**named, **(unsigned or {})})

    def ask(self, *words, **more):
        try:
            self.send(*words, **more)
            return Said(self.connection.getresponse())
        except (ConnectionError, http.client.IncompleteRead):
            self.connection.close()
            return None


class BucketTest(unittest.TestCase):
    def start(self, faults=None, **options):
        self.bucket = self.enterContext(Bucket(faults, **{"smallest_part": 4, **options}))
        self.client = Client(self.bucket.url)
        self.addCleanup(self.client.connection.close)
        return self.client

    def another(self, **options):
        client = Client(self.bucket.url, **options)
        self.addCleanup(client.connection.close)
        return client

    def assert_refused(self, said, status, code):
        self.assertEqual((said.status, said.code), (status, code), said.body)

    def begin(self, key="k", crc=True):
        headers = {"x-amz-checksum-algorithm": "CRC32C"} if crc else {}
        return self.client.ask("POST", key, {"uploads": ""}, **headers).all("UploadId")[0]

    def part(self, upload_id, number, body, key="k", crc=crc_of):
        return self.client.ask("PUT", key, {"partNumber": str(number), "uploadId": upload_id}, body,
                               **(crc(body) if crc else {}))

    def complete(self, upload_id, parts, key="k", crc=crc_text, **headers):
        rows = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{hashlib.md5(body).hexdigest()}"
            "&quot;</ETag>" + (f"<ChecksumCRC32C>{crc(body)}</ChecksumCRC32C>" if crc else "")
            + "</Part>" for number, body in parts)
        xml = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>"
        return self.client.ask("POST", key, {"uploadId": upload_id}, xml.encode(), **headers)
