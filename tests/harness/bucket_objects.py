"""The objects of one bucket (bucket.py), and what is asked of them. The caller holds the lock.

Source: Amazon S3 API Reference, PutObject, GetObject, DeleteObject, ListObjectsV2.
"""
import base64
import binascii
import email.utils
import hashlib
import re
from typing import NamedTuple

from bucket_protocol import CRC, Answer, Refusal, element, number_in, utc, xml_answer
from s3_server import quoted

# A token that does not work unless it is decoded as XML and encoded as a query.
TOKEN = "1/+= & "


class Made(NamedTuple):
    """How an object came to be."""
    content: bytes
    etag: str
    modified_s: float
    crc: str | None = None  # as its header says it
    upload_id: str | None = None


class Objects:
    def __init__(self, bucket):
        self.bucket = bucket
        self.contents = {}  # key -> bytes, in the order of their creation. Tests may change it.
        self.records = {}  # key -> Made, true while it is of these very bytes

    def keep(self, key, content, etag=None, **more):
        made = Made(content, etag or f'"{hashlib.md5(content).hexdigest()}"', self.bucket.now(),
                    **more)
        self.contents[key], self.records[key] = content, made
        return made

    def made(self, key):
        """None if there is no such object."""
        if (content := self.contents.get(key)) is None:
            return None
        made = self.records.get(key)
        return made if made and made.content is content else self.keep(key, content)

    def check_condition(self, request):
        if "if-none-match" not in request.headers:
            return
        if request.faults.of("ignore_conditions", request):
            return
        if request.faults.strikes("conflict_every", request):
            raise Refusal(409, "ConditionalRequestConflict", Key=request.key)
        if request.key in self.contents:
            raise Refusal(412, "PreconditionFailed", Condition="If-None-Match")

    def put(self, request):
        self.check_condition(request)
        crc = request.headers.get(CRC)
        made = self.keep(request.key, request.body, crc=crc)
        return Answer(headers={"ETag": made.etag, **({CRC: crc} if crc else {})})

    def get(self, request):
        """Answers GET and HEAD."""
        made = self.made(request.key)
        if made is None:
            # Amazon hides which keys there are from a client that may not list.
            if "s3:ListBucket" in (request.faults.of("deny", request) or ()):
                raise Refusal(403, "AccessDenied")
            raise Refusal(404, "NoSuchKey", Key=request.key)
        headers = {"ETag": made.etag, "Accept-Ranges": "bytes",
                   "Content-Type": "binary/octet-stream",
                   "Last-Modified": email.utils.formatdate(made.modified_s, usegmt=True)}
        span = range_of(request.headers.get("range", ""), len(made.content))
        body = made.content if span is None else made.content[span.start:span.stop]
        sent = None
        if request.method == "GET" and body and request.faults.strikes("truncate_gets", request):
            sent = len(body) // 2
        if span is None:
            if made.crc and request.headers.get("x-amz-checksum-mode") == "ENABLED":
                headers[CRC] = made.crc
            return Answer(200, body, headers, sent=sent)
        whole = f"bytes {span.start}-{span.stop - 1}/{len(made.content)}"
        return Answer(206, body, {**headers, "Content-Range": whole}, sent=sent)

    def delete(self, request):
        self.contents.pop(request.key, None)
        return Answer(204)

    def list(self, request):
        query = request.query
        prefix = query.get("prefix", "")
        most = min(number_in(query, "max-keys", 0, 1000), self.bucket.page)
        found = [key for key in list(self.contents) if key.startswith(prefix)]
        found = found[:max(0, len(found) - (request.faults.of("stale_list", request) or 0))]
        after = key_after(query["continuation-token"]) if "continuation-token" in query else ""
        keys = sorted((key for key in found if key.encode() > after.encode()), key=str.encode)
        page, is_truncated = keys[:most], 0 < most < len(keys)
        rows, written = [], str
        if query.get("encoding-type") == "url":
            rows, written = [element("EncodingType", "url")], quoted_key
        rows += [self.row(key, written(key)) for key in page]
        if is_truncated:
            token = TOKEN + base64.b64encode(page[-1].encode()).decode()
            rows.append(element("NextContinuationToken", token))
        return xml_answer(
            "ListBucketResult", element("Name", request.bucket),
            element("Prefix", written(prefix)), element("KeyCount", len(page)),
            element("MaxKeys", most), element("IsTruncated", str(is_truncated).lower()), *rows)

    def row(self, key, written):
        made = self.made(key)
        return ("<Contents>" + element("Key", written)
                + element("LastModified", utc(made.modified_s)) + element("ETag", made.etag)
                + element("Size", len(made.content)) + element("StorageClass", "STANDARD")
                + "</Contents>")


def quoted_key(key):
    return quoted(key, "/")


def key_after(token):
    try:
        if not token.startswith(TOKEN):
            raise ValueError
        return base64.b64decode(token[len(TOKEN):], validate=True).decode()
    except (ValueError, binascii.Error):
        raise Refusal(400, "InvalidArgument", "The continuation token provided is incorrect",
                      ArgumentName="continuation-token") from None


def range_of(text, size):
    """None for the whole object: Amazon ignores other forms, and several ranges at once."""
    said = re.fullmatch(r"bytes=(\d*)-(\d*)", text)
    if not said or said[1] == said[2] == "":
        return None
    if said[1] == "":
        first, last = max(0, size - int(said[2])), size - 1
    else:
        first, last = int(said[1]), min(int(said[2] or size - 1), size - 1)
        if said[2] and int(said[2]) < first:
            return None
    if first >= size:
        raise Refusal(416, "InvalidRange", headers={"Content-Range": f"bytes */{size}"},
                      RangeRequested=text, ActualObjectSize=size)
    return range(first, last + 1)
