"""The uploads in parts of one bucket (bucket.py). The caller holds the lock.

Source: Amazon S3 API Reference, CreateMultipartUpload, UploadPart, CompleteMultipartUpload,
AbortMultipartUpload, ListParts, ListMultipartUploads. What they do not say has been seen at Amazon:
which checksums parts and completions must have (apache/opendal#4533, #4580), and that a completion
can be repeated (adobe/S3Mock#2586, minio/minio#13318).
"""
import base64
import dataclasses
import hashlib
import re
import xml.etree.ElementTree
from typing import NamedTuple

from bucket_objects import Made
from bucket_protocol import (CRC, Answer, Refusal, crc_text, element, error_xml, number_in, utc,
                             xml_answer)

MOST_PARTS = 10_000


class NamedPart(NamedTuple):
    """A part, as a completion names it."""
    number: int
    etag: str  # without quotes
    crc: str | None


@dataclasses.dataclass
class Upload:
    key: str
    id: str
    begun_s: float
    has_crc: bool
    parts: dict[int, Made] = dataclasses.field(default_factory=dict)


class Completed(NamedTuple):
    asked: list[NamedPart]
    answer: Answer


class Uploads:
    def __init__(self, bucket, objects):
        self.bucket, self.objects = bucket, objects
        self.begun = 0
        self.open = {}  # id -> Upload
        self.completed = {}  # id -> Completed

    def upload(self, request):
        upload = self.open.get(request.query["uploadId"])
        if upload is None or upload.key != request.key:
            raise Refusal(404, "NoSuchUpload", UploadId=request.query["uploadId"])
        return upload

    def create(self, request):
        algorithm = request.headers.get("x-amz-checksum-algorithm")
        if algorithm not in (None, "CRC32C"):
            raise Refusal(400, "InvalidRequest", "Checksum algorithm provided is unsupported")
        self.begun += 1
        # Ids grow, since pages are in their order, and do not work unless they are encoded.
        upload_id = f"{self.begun:06}/+={hashlib.md5(request.key.encode()).hexdigest()}"
        self.open[upload_id] = Upload(request.key, upload_id, self.bucket.now(),
                                      algorithm is not None)
        answer = xml_answer("InitiateMultipartUploadResult", element("Bucket", request.bucket),
                            element("Key", request.key), element("UploadId", upload_id))
        if algorithm:
            answer.headers["x-amz-checksum-algorithm"] = algorithm
        return answer

    def put_part(self, request):
        number = number_in(request.query, "partNumber", 1, MOST_PARTS)
        if number > MOST_PARTS:
            raise Refusal(400, "InvalidArgument", ArgumentName="partNumber", ArgumentValue=number)
        upload, crc = self.upload(request), request.headers.get(CRC)
        if upload.has_crc != (crc is not None):
            kinds = ("crc32c", "null") if upload.has_crc else ("null", "crc32c")
            raise Refusal(400, "InvalidRequest", "Checksum Type mismatch occurred, expected "
                          f"checksum Type: {kinds[0]}, actual checksum Type: {kinds[1]}")
        etag = f'"{hashlib.md5(request.body).hexdigest()}"'
        upload.parts[number] = Made(request.body, etag, self.bucket.now(), crc)
        return Answer(headers={"ETag": etag, **({CRC: crc} if crc else {})})

    def list_parts(self, request):
        upload = self.upload(request)
        most = min(number_in(request.query, "max-parts", 0, 1000), self.bucket.page)
        after = number_in(request.query, "part-number-marker", 0, 0)
        numbers = sorted(number for number in upload.parts if number > after)
        page, is_truncated = numbers[:most], 0 < most < len(numbers)
        rows = []
        for number in page:
            part = upload.parts[number]
            crc = element("ChecksumCRC32C", part.crc) if part.crc else ""
            rows.append("<Part>" + element("PartNumber", number)
                        + element("LastModified", utc(part.modified_s))
                        + element("ETag", part.etag) + element("Size", len(part.content)) + crc
                        + "</Part>")
        return xml_answer(
            "ListPartsResult", element("Bucket", request.bucket), element("Key", upload.key),
            element("UploadId", upload.id), element("PartNumberMarker", after),
            element("NextPartNumberMarker", page[-1] if page else 0), element("MaxParts", most),
            element("IsTruncated", str(is_truncated).lower()), *rows)

    def complete(self, request):
        """A repeated completion has the same answer, as long as the object is of this upload."""
        asked, upload_id = parts_asked(request.body), request.query["uploadId"]
        there, done = self.objects.made(request.key), self.completed.get(upload_id)
        if (done and done.asked == asked and there and there.upload_id == upload_id
                and not request.faults.of("forget_completions", request)):
            return done.answer
        upload = self.upload(request)
        self.objects.check_condition(request)
        parts = self.check(asked, upload)
        if request.faults.strikes("complete_error_in_body", request):
            return Answer(200, error_xml("InternalError"), {"Content-Type": "application/xml"},
                          "InternalError", is_chunked=True)
        etag = hashlib.md5(b"".join(bytes.fromhex(part.etag.strip('"')) for part in parts))
        crc = None
        if upload.has_crc:
            crc = crc_text(b"".join(map(base64.b64decode, (part.crc for part in parts))))
            crc += f"-{len(parts)}"
        made = self.objects.keep(request.key, b"".join(part.content for part in parts),
                                 f'"{etag.hexdigest()}-{len(parts)}"', crc=crc,
                                 upload_id=upload_id)
        answer = xml_answer(
            "CompleteMultipartUploadResult", element("Location", self.bucket.url + request.target),
            element("Bucket", request.bucket), element("Key", request.key),
            element("ETag", made.etag), element("ChecksumCRC32C", crc) if crc else "")
        del self.open[upload_id]
        self.completed[upload_id] = Completed(asked, answer)
        return answer

    def check(self, asked, upload):
        """The parts that are asked for."""
        numbers = [part.number for part in asked]
        if numbers != sorted(set(numbers)):
            raise Refusal(400, "InvalidPartOrder", UploadId=upload.id)
        for part in asked:
            if upload.has_crc != (part.crc is not None):
                raise Refusal(400, "InvalidRequest", "The complete request must include the "
                              "checksum for each part if, and only if, the upload was created "
                              f"with checksums. See part {part.number}")
            there = upload.parts.get(part.number)
            if there is None or (there.etag.strip('"'), there.crc) != (part.etag, part.crc):
                raise Refusal(400, "InvalidPart", UploadId=upload.id, PartNumber=part.number,
                              ETag=part.etag)
        parts = [upload.parts[number] for number in numbers]
        for number, part in list(zip(numbers, parts))[:-1]:
            if len(part.content) < self.bucket.smallest_part:
                raise Refusal(400, "EntityTooSmall", ProposedSize=len(part.content),
                              MinSizeAllowed=self.bucket.smallest_part, PartNumber=number)
        return parts

    def abort(self, request):
        del self.open[self.upload(request).id]
        return Answer(204)

    def list(self, request):
        query = request.query
        prefix, key_marker = query.get("prefix", ""), query.get("key-marker", "")
        id_marker = query.get("upload-id-marker", "") if key_marker else ""
        most = min(number_in(query, "max-uploads", 0, 1000), self.bucket.page)

        def is_after(upload):
            if not key_marker or upload.key == key_marker and id_marker:
                return upload.id > id_marker
            return upload.key.encode() > key_marker.encode()

        found = sorted((upload for upload in self.open.values()
                        if upload.key.startswith(prefix) and is_after(upload)),
                       key=lambda upload: (upload.key.encode(), upload.id))
        page, is_truncated = found[:most], 0 < most < len(found)
        rows = ["<Upload>" + element("Key", upload.key) + element("UploadId", upload.id)
                + element("Initiated", utc(upload.begun_s)) + element("StorageClass", "STANDARD")
                + "</Upload>" for upload in page]
        last = page[-1] if is_truncated else None
        return xml_answer(
            "ListMultipartUploadsResult", element("Bucket", request.bucket),
            element("KeyMarker", key_marker), element("UploadIdMarker", id_marker),
            element("NextKeyMarker", last.key if last else ""),
            element("NextUploadIdMarker", last.id if last else ""), element("Prefix", prefix),
            element("MaxUploads", most), element("IsTruncated", str(is_truncated).lower()), *rows)


def parts_asked(body):
    """The parts in the XML of a completion, in its order."""
    asked = []
    try:
        root = xml.etree.ElementTree.fromstring(body)
        for part in root:
            said = {local(child): (child.text or "").strip() for child in part}
            if local(part) != "Part" or not re.fullmatch(r"\d{1,5}", said.get("PartNumber", "")):
                raise Refusal(400, "MalformedXML")
            asked.append(NamedPart(int(said["PartNumber"]), said["ETag"].strip('"'),
                                   said.get("ChecksumCRC32C")))
    except (xml.etree.ElementTree.ParseError, KeyError):
        raise Refusal(400, "MalformedXML") from None
    if local(root) != "CompleteMultipartUpload" or not 1 <= len(asked) <= MOST_PARTS:
        raise Refusal(400, "MalformedXML")
    return asked


def local(node):
    return node.tag.rpartition("}")[2]
