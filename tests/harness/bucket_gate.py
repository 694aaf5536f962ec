"""A bucket (bucket.py) takes a request only if it is signed with a key that the bucket knows, is
fresh, asks for nothing that the server would have to ignore, and has right checksums.

Source: "Authenticating Requests: Using the Authorization Header" and "Error responses", Amazon S3
API Reference.
"""
import base64
import binascii
import calendar
import hashlib
import re
import time

from bucket_protocol import CRC, Refusal, utc
from checksums import crc32c
from s3_server import claim_in, is_signed_with, unsigned

SKEW_S = 15 * 60
HASH, DATE, TOKEN = "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"
MODE, ALGORITHM = "x-amz-checksum-mode", "x-amz-checksum-algorithm"
CONDITIONS = {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since"}


def admit(request, bucket):
    """Raises a Refusal. The order is Amazon's, as far as it is known."""
    headers = request.headers
    claim = claim_in(headers)
    if claim is None:
        raise Refusal(403, "AccessDenied", "Access Denied")
    if claim.region != bucket.region:
        raise Refusal(400, "AuthorizationHeaderMalformed",
                      f"the region '{claim.region}' is wrong; expecting '{bucket.region}'",
                      {"x-amz-bucket-region": bucket.region}, Region=bucket.region)
    if claim.key_id not in bucket.keys:
        raise Refusal(403, "InvalidAccessKeyId", AWSAccessKeyId=claim.key_id)
    if HASH not in headers:
        raise Refusal(400, "InvalidRequest", f"Missing required header for this request: {HASH}")
    check_time(headers.get(DATE, ""), claim, bucket.now())
    if missing := unsigned(claim, headers):
        raise Refusal(403, "AccessDenied",
                      "There were headers present in the request which were not signed",
                      HeadersNotSigned=", ".join(sorted(missing)))
    secret, token = bucket.keys[claim.key_id]
    if claim.signed != sorted(claim.signed) or not is_signed_with(
            secret, claim, request.method, request.target, headers):
        raise Refusal(403, "SignatureDoesNotMatch", AWSAccessKeyId=claim.key_id)
    check_token(headers.get(TOKEN), token, claim, bucket)
    refuse_unknown(request)
    check_body(request)


def check_time(text, claim, now):
    if not re.fullmatch(r"\d{8}T\d{6}Z", text):
        raise Refusal(403, "AccessDenied", f"AWS authentication requires a valid {DATE} header")
    if text[:8] != claim.date:
        raise Refusal(400, "AuthorizationHeaderMalformed",
                      f"the date of the credential is not the date of {DATE}")
    if abs(calendar.timegm(time.strptime(text, "%Y%m%dT%H%M%SZ")) - now) > SKEW_S:
        raise Refusal(403, "RequestTimeTooSkewed", RequestTime=text, ServerTime=utc(now),
                      MaxAllowedSkewMilliseconds=SKEW_S * 1000)


def check_token(said, token, claim, bucket):
    if said == token:
        return
    if said is None:
        raise Refusal(403, "InvalidAccessKeyId", AWSAccessKeyId=claim.key_id)
    raise Refusal(bucket.expired_status, "InvalidToken" if token is None else "ExpiredToken")


def refuse_unknown(request):
    headers = request.headers
    known = {HASH, DATE, TOKEN}
    if not request.faults.of("refuse_checksums", request):
        known |= {MODE, ALGORITHM, CRC}
    unknown = {name for name in headers if name.startswith("x-amz-")} - known
    creates = request.operation in ("PutObject", "CompleteMultipartUpload")
    may = {"if-none-match"} if creates and headers.get("if-none-match") == "*" else set()
    unknown |= CONDITIONS & set(headers) - may
    if unknown or not request.operation or request.query.get("list-type", "2") != "2":
        raise Refusal(501, "NotImplemented", "A header or query implies functionality that is not "
                      "implemented", Header=", ".join(sorted(unknown)))


def check_body(request):
    hashed = request.headers[HASH]
    is_hash = re.fullmatch(r"[0-9a-f]{64}", hashed)
    if not is_hash and hashed != "UNSIGNED-PAYLOAD":
        raise Refusal(400, "InvalidArgument", f"{HASH} must be UNSIGNED-PAYLOAD, or a valid sha256 "
                      "value", ArgumentValue=hashed)
    md5 = digest_in(request.headers, "content-md5", 16, "InvalidDigest")
    crc = digest_in(request.headers, CRC, 4, "InvalidRequest")
    if request.faults.of("ignore_checksums", request):
        return
    if is_hash and hashlib.sha256(request.body).hexdigest() != hashed:
        raise Refusal(400, "XAmzContentSHA256Mismatch")
    if md5 is not None and hashlib.md5(request.body).digest() != md5:
        raise Refusal(400, "BadDigest", "The Content-MD5 did not match what was received")
    if crc is not None and crc32c(request.body).to_bytes(4, "big") != crc:
        raise Refusal(400, "BadDigest", "The CRC32C did not match the calculated checksum")


def digest_in(headers, name, size, code):
    if name not in headers:
        return None
    try:
        digest = base64.b64decode(headers[name], validate=True)
    except binascii.Error:
        digest = b""
    if len(digest) != size:
        raise Refusal(400, code, f"Value for {name} header is invalid")
    return digest
