"""The words between a client and a bucket (bucket.py): operations, requests, answers, errors.

Source: Amazon S3 API Reference, "Error responses" and the pages of the operations.
"""
import base64
import dataclasses
import re
import time
from typing import NamedTuple
from xml.sax.saxutils import escape

from checksums import crc32c

CRC = "x-amz-checksum-crc32c"


class Operation(NamedTuple):
    action: str  # that a policy allows or denies
    method: str
    has_key: bool
    needs: frozenset = frozenset()  # names in its query
    may: frozenset = frozenset()


OPERATIONS = {
    "PutObject": Operation("s3:PutObject", "PUT", True),
    "GetObject": Operation("s3:GetObject", "GET", True),
    "HeadObject": Operation("s3:GetObject", "HEAD", True),
    "DeleteObject": Operation("s3:DeleteObject", "DELETE", True),
    "ListObjectsV2": Operation("s3:ListBucket", "GET", False, frozenset({"list-type"}),
                               frozenset({"prefix", "continuation-token", "max-keys",
                                          "encoding-type"})),
    "CreateMultipartUpload": Operation("s3:PutObject", "POST", True, frozenset({"uploads"})),
    "UploadPart": Operation("s3:PutObject", "PUT", True, frozenset({"partNumber", "uploadId"})),
    "CompleteMultipartUpload": Operation("s3:PutObject", "POST", True, frozenset({"uploadId"})),
    "AbortMultipartUpload": Operation("s3:AbortMultipartUpload", "DELETE", True,
                                      frozenset({"uploadId"})),
    "ListParts": Operation("s3:ListMultipartUploadParts", "GET", True, frozenset({"uploadId"}),
                           frozenset({"part-number-marker", "max-parts"})),
    "ListMultipartUploads": Operation(
        "s3:ListBucketMultipartUploads", "GET", False, frozenset({"uploads"}),
        frozenset({"prefix", "key-marker", "upload-id-marker", "max-uploads"})),
}


def operation_of(method, key, query):
    """Its name, or "" if there is none of this form."""
    names = set(query)
    for name, known in OPERATIONS.items():
        if (known.method == method and known.has_key == bool(key)
                and known.needs <= names <= known.needs | known.may):
            return name
    return ""


@dataclasses.dataclass
class Request:
    method: str
    target: str  # of the request line
    bucket: str
    key: str
    query: dict
    headers: dict  # by their names in lower case
    operation: str
    faults: object  # bucket_faults.Faults, as they were when it came
    body: bytes = b""


class Answer(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: dict = {}  # never changed
    code: str = ""  # of an error
    sent: int | None = None  # bytes of the body, before the connection is closed; None: all
    is_chunked: bool = False


class Refusal(Exception):
    def __init__(self, status, code, message="", headers=None, **elements):
        super().__init__(code)
        self.answer = Answer(status, error_xml(code, message, **elements),
                             {"Content-Type": "application/xml", **(headers or {})}, code)


class Lost(Exception):
    """There is no answer: the connection is closed."""


def element(name, value):
    return f"<{name}>{escape(str(value), {chr(34): '&quot;'})}</{name}>"


def xml_answer(root, *inside):
    """Chunked, as Amazon sends it, with white space before the root."""
    text = ('<?xml version="1.0" encoding="UTF-8"?>\n\n'
            f'<{root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{"".join(inside)}</{root}>')
    return Answer(200, text.encode(), {"Content-Type": "application/xml"}, is_chunked=True)


def error_xml(code, message="", **elements):
    inside = "".join(element(name, value) for name, value in elements.items())
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<Error><Code>{code}</Code>{element('Message', message or code)}{inside}"
            "<HostId>bucket.py</HostId></Error>").encode()


def utc(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def number_in(query, name, least, otherwise):
    """What the query says of `name`, or, if nothing, `otherwise`."""
    text = query.get(name, str(otherwise))
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
        raise Refusal(400, "InvalidArgument", ArgumentName=name, ArgumentValue=text)
    return int(text)


def crc_text(data):
    return base64.b64encode(crc32c(data).to_bytes(4, "big")).decode()
