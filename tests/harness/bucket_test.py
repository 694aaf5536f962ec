"""The test server of a bucket has the rules of Amazon S3."""
import base64
import calendar
import concurrent.futures
import hashlib
import time
import unittest
from email.utils import parsedate_to_datetime

from bucket import KEY_ID, SECRET
from bucket_client import BucketTest, Said, crc_of, crc_text
from bucket_faults import Faults


class Gate(BucketTest):
    def test_a_request_needs_a_signature_with_the_right_secret(self):
        self.start()
        self.assertEqual(self.client.ask("PUT", "k", body=b"v").status, 200)
        self.assert_refused(self.another(secret="x").ask("GET", "k"), 403, "SignatureDoesNotMatch")
        self.assert_refused(self.another(key_id="x").ask("GET", "k"), 403, "InvalidAccessKeyId")
        self.client.connection.request("GET", "/runs/k")
        self.assert_refused(Said(self.client.connection.getresponse()), 403, "AccessDenied")

    def test_a_header_of_amazon_must_be_signed(self):
        said = self.start().ask("PUT", "k", body=b"v", unsigned=crc_of(b"v"))
        self.assert_refused(said, 403, "AccessDenied")
        self.assertEqual(said.all("HeadersNotSigned"), ["x-amz-checksum-crc32c"])
        self.assertEqual(self.bucket.objects, {})

    def test_another_region_is_told_the_right_one(self):
        said = self.start(region="eu-west-3").ask("GET", "k")
        self.assert_refused(said, 400, "AuthorizationHeaderMalformed")
        self.assertEqual(said.all("Region"), ["eu-west-3"])
        self.assertEqual(said.headers["x-amz-bucket-region"], "eu-west-3")

    def test_a_clock_may_be_off_by_fifteen_minutes(self):
        self.start(Faults(clock_offset_s=1000))
        said = self.client.ask("GET", "k")
        self.assert_refused(said, 403, "RequestTimeTooSkewed")
        there = calendar.timegm(time.strptime(said.all("ServerTime")[0], "%Y-%m-%dT%H:%M:%SZ"))
        self.assertAlmostEqual(there - time.time(), 1000, delta=60)
        date = parsedate_to_datetime(said.headers["Date"]).timestamp()
        self.assertAlmostEqual(date - time.time(), 1000, delta=60)
        self.assert_refused(self.another(off_s=1000).ask("GET", "k"), 404, "NoSuchKey")

    def test_a_session_token_must_be_the_right_one(self):
        self.start(keys={KEY_ID: (SECRET, "token")})
        self.assertEqual(self.bucket.environment["AWS_SESSION_TOKEN"], "token")
        self.assert_refused(self.client.ask("GET", "k"), 403, "InvalidAccessKeyId")
        self.assert_refused(self.another(token="old").ask("GET", "k"), 403, "ExpiredToken")
        self.bucket.expired_status = 400
        self.assert_refused(self.another(token="old").ask("GET", "k"), 400, "ExpiredToken")
        self.assert_refused(self.another(token="token").ask("GET", "k"), 404, "NoSuchKey")

    def test_a_body_must_have_the_checksums_it_comes_with(self):
        self.start()
        md5 = base64.b64encode(hashlib.md5(b"v").digest()).decode()
        for headers, status, code in (
                ({"x-amz-content-sha256": "0" * 64}, 400, "XAmzContentSHA256Mismatch"),
                ({"x-amz-content-sha256": "STREAMING"}, 400, "InvalidArgument"),
                (crc_of(b"w"), 400, "BadDigest"),
                ({"x-amz-checksum-crc32c": "AAAA"}, 400, "InvalidRequest"),
                ({"content-md5": md5[::-1]}, 400, "InvalidDigest"),
                ({"content-md5": base64.b64encode(b"0" * 16).decode()}, 400, "BadDigest"),
                ({"x-amz-content-sha256": "UNSIGNED-PAYLOAD", "content-md5": md5, **crc_of(b"v")},
                 200, "")):
            with self.subTest(headers):
                self.assertEqual(self.bucket.objects, {})
                self.assert_refused(self.client.ask("PUT", "k", body=b"v", **headers), status, code)

    def test_the_server_refuses_what_it_does_not_implement(self):
        self.start()
        for method, query, headers in (("GET", {"acl": ""}, {}), ("PUT", {}, {"If-Match": '"e"'}),
                                       ("PUT", {}, {"x-amz-copy-source": "a/b"}),
                                       ("PUT", {}, {"If-None-Match": '"e"'}),
                                       ("GET", {}, {"If-None-Match": "*"})):
            said = self.client.ask(method, "k", query, **headers)
            self.assert_refused(said, 501, "NotImplemented")
        self.client.connection.putrequest("PUT", "/runs/k")
        self.client.connection.endheaders()
        self.assert_refused(Said(self.client.connection.getresponse()), 411, "MissingContentLength")


class SlowLook(dict):
    """Says whether a key was there some time ago, so that lookups without a lock overlap."""

    def __contains__(self, key):
        found = super().__contains__(key)
        time.sleep(0.002)
        return found


class ObjectsOfABucket(BucketTest):
    def test_an_object_is_read_whole_or_in_part_and_removed(self):
        self.start()
        etag = f'"{hashlib.md5(b"0123456789").hexdigest()}"'
        said = self.client.ask("PUT", "a/b c&+é", body=b"0123456789", **crc_of(b"0123456789"))
        self.assertEqual((said.status, said.headers["ETag"]), (200, etag))
        socket = self.client.connection.sock
        self.assertEqual(self.bucket.objects, {"a/b c&+é": b"0123456789"})
        for span, status, body, where in (
                ("", 200, b"0123456789", None), ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
                ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
                ("bytes=8-", 206, b"89", "bytes 8-9/10"),
                ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=x", 200, b"0123456789", None)):
            with self.subTest(span):
                said = self.client.ask("GET", "a/b c&+é", range=span)
                self.assertEqual((said.status, said.body, said.headers["Content-Range"]),
                                 (status, body, where))
                self.assertEqual(said.headers["ETag"], etag)
        self.assert_refused(self.client.ask("GET", "a/b c&+é", range="bytes=10-"), 416,
                            "InvalidRange")
        said = self.client.ask("HEAD", "a/b c&+é")
        self.assertEqual((said.status, said.headers["Content-Length"], said.body), (200, "10", b""))
        self.assertEqual(self.client.ask("DELETE", "a/b c&+é").status, 204)
        self.assertEqual(self.client.ask("DELETE", "a/b c&+é").status, 204)
        self.assert_refused(self.client.ask("GET", "a/b c&+é"), 404, "NoSuchKey")
        self.assertEqual(self.client.ask("HEAD", "a/b c&+é").status, 404)
        self.assertIs(self.client.connection.sock, socket, "one connection is enough")

    def test_one_of_many_creators_of_a_key_wins(self):
        self.start()
        self.bucket.shelves["runs"][0].contents = SlowLook()

        def create(name):
            return self.another().ask("PUT", "k", body=name, If_None_Match="*")

        names = [b"%d" % number for number in range(16)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = dict(zip(names, pool.map(create, names)))
        won = [name for name, said in answers.items() if said.status == 200]
        self.assertEqual(won, [self.bucket.objects["k"]])
        for name in set(names) - set(won):
            self.assert_refused(answers[name], 412, "PreconditionFailed")
        self.assertEqual(self.client.ask("PUT", "k", body=b"over").status, 200)
        self.assertEqual(self.bucket.objects["k"], b"over")

    def test_a_bucket_that_was_not_given_does_not_exist(self):
        self.start(buckets=("runs", "other"))
        self.client.ask("PUT", "k", body=b"v", bucket="other")
        self.assertEqual((self.bucket.objects, self.bucket.objects_of("other")), ({}, {"k": b"v"}))
        self.assert_refused(self.client.ask("PUT", "k", bucket="none"), 404, "NoSuchBucket")

    def listed(self, **query):
        keys, token = [], {}
        while True:
            said = self.client.ask("GET", query={"list-type": "2", **query, **token})
            keys.append(said.all("Key"))
            if said.all("IsTruncated") != ["true"]:
                return keys
            token = {"continuation-token": said.all("NextContinuationToken")[0]}

    def test_a_list_comes_in_pages_in_the_order_of_bytes(self):
        self.start(page=2)
        keys = ["a/\U0001F600", "a/&<b>", "a/z", "a/\uFFFD", "b"]
        self.bucket.objects.update({key: b"v" for key in keys})
        self.assertEqual(self.listed(prefix="a/"),
                         [["a/&<b>", "a/z"], ["a/\uFFFD", "a/\U0001F600"]])
        self.assertEqual(self.listed(prefix="a/", **{"max-keys": "1"})[3], ["a/\U0001F600"])
        self.assertEqual(self.listed(prefix="c"), [[]])
        self.assertEqual(self.listed(prefix="a/&", **{"encoding-type": "url"}), [["a/%26%3Cb%3E"]])
        said = self.client.ask("GET", query={"list-type": "2", "prefix": "b"})
        self.assertEqual((said.all("Size"), said.all("ETag")),
                         (["1"], [f'"{hashlib.md5(b"v").hexdigest()}"']))
        said = self.client.ask("GET", query={"list-type": "2", "continuation-token": "x"})
        self.assert_refused(said, 400, "InvalidArgument")


class UploadsInParts(BucketTest):
    def test_parts_become_an_object_when_they_are_completed(self):
        self.start()
        upload_id, parts = self.begin(), [(1, b"half"), (7, b"rest"), (10_000, b".")]
        for number, body in reversed(parts):
            self.assertEqual(self.part(upload_id, number, body).status, 200)
        self.assertEqual((self.bucket.objects, list(self.bucket.uploads)), ({}, [upload_id]))
        said = self.complete(upload_id, parts)
        whole = hashlib.md5(b"".join(hashlib.md5(body).digest() for _, body in parts)).hexdigest()
        self.assertEqual((said.status, said.all("ETag")), (200, [f'"{whole}-3"']))
        self.assertEqual((self.bucket.objects, self.bucket.uploads), ({"k": b"halfrest."}, {}))
        self.assertEqual(self.client.ask("GET", "k").headers["ETag"], f'"{whole}-3"')

        again = self.complete(upload_id, parts)
        self.assertEqual((again.status, again.body), (200, said.body))
        self.bucket.faults.forget_completions = True
        self.assert_refused(self.complete(upload_id, parts), 404, "NoSuchUpload")
        self.bucket.faults.forget_completions = False
        self.client.ask("PUT", "k", body=b"halfrest.")
        self.assert_refused(self.complete(upload_id, parts), 404, "NoSuchUpload")

    def test_a_completion_names_the_parts_that_are_there(self):
        self.start()
        upload_id = self.begin()
        for number, body in ((1, b"half"), (2, b"no"), (3, b"rest")):
            self.part(upload_id, number, body)
        for parts, crc, code in (
                ([(3, b"rest"), (1, b"half")], crc_text, "InvalidPartOrder"),
                ([(1, b"half"), (1, b"half")], crc_text, "InvalidPartOrder"),
                ([(1, b"half"), (4, b"rest")], crc_text, "InvalidPart"),
                ([(1, b"rest")], crc_text, "InvalidPart"),
                ([(1, b"half")], lambda _: "AAAAAA==", "InvalidPart"),
                ([(1, b"half")], None, "InvalidRequest"),
                ([(1, b"half"), (2, b"no"), (3, b"rest")], crc_text, "EntityTooSmall"),
                ([], crc_text, "MalformedXML")):
            with self.subTest(code):
                self.assert_refused(self.complete(upload_id, parts, crc=crc), 400, code)
        self.assert_refused(self.client.ask("POST", "k", {"uploadId": upload_id}, b"<a>"), 400,
                            "MalformedXML")
        self.assertEqual(self.bucket.objects, {})
        self.assertEqual(self.complete(upload_id, [(1, b"half"), (2, b"no")]).status, 200)

    def test_parts_have_checksums_if_their_upload_has(self):
        self.start()
        self.assert_refused(self.part(self.begin(), 1, b"half", crc=None), 400, "InvalidRequest")
        wrong = self.part(self.begin(), 1, b"half", crc=lambda _: crc_of(b"x"))
        self.assert_refused(wrong, 400, "BadDigest")
        plain = self.begin(crc=False)
        self.assert_refused(self.part(plain, 1, b"half"), 400, "InvalidRequest")
        self.assertEqual(self.part(plain, 1, b"half", crc=None).status, 200)
        self.assertEqual(self.complete(plain, [(1, b"half")], crc=None).status, 200)

    def test_an_upload_that_is_not_there_has_no_parts(self):
        self.start()
        upload_id = self.begin()
        self.assert_refused(self.part(upload_id, 1, b"half", key="other"), 404, "NoSuchUpload")
        for number in (0, 10_001):
            self.assert_refused(self.part(upload_id, number, b"half"), 400, "InvalidArgument")
        self.assertEqual(self.client.ask("DELETE", "k", {"uploadId": upload_id}).status, 204)
        for said in (self.client.ask("DELETE", "k", {"uploadId": upload_id}),
                     self.client.ask("GET", "k", {"uploadId": upload_id}),
                     self.part(upload_id, 1, b"half"), self.complete(upload_id, [(1, b"half")])):
            self.assert_refused(said, 404, "NoSuchUpload")

    def test_parts_and_uploads_are_listed_in_pages(self):
        self.start(page=2)
        ids = [self.begin(key) for key in ("b&", "a", "b&", "c")]
        for number in (5, 1, 12):
            self.part(ids[1], number, b"half", key="a")
        said = self.client.ask("GET", "a", {"uploadId": ids[1]})
        self.assertEqual((said.all("PartNumber"), said.all("IsTruncated")), (["1", "5"], ["true"]))
        self.assertEqual((said.all("Size"), said.all("ChecksumCRC32C")),
                         (["4"] * 2, [crc_text(b"half")] * 2))
        after = {"part-number-marker": said.all("NextPartNumberMarker")[0]}
        said = self.client.ask("GET", "a", {"uploadId": ids[1], **after})
        self.assertEqual((said.all("PartNumber"), said.all("IsTruncated")), (["12"], ["false"]))

        said = self.client.ask("GET", query={"uploads": ""})
        self.assertEqual(list(zip(said.all("Key"), said.all("UploadId"))),
                         [("a", ids[1]), ("b&", ids[0])])
        after = {"key-marker": said.all("NextKeyMarker")[0],
                 "upload-id-marker": said.all("NextUploadIdMarker")[0]}
        said = self.client.ask("GET", query={"uploads": "", **after})
        self.assertEqual((said.all("UploadId"), said.all("IsTruncated")), (ids[2:], ["false"]))
        said = self.client.ask("GET", query={"uploads": "", "prefix": "b"})
        self.assertEqual(said.all("UploadId"), [ids[0], ids[2]])


if __name__ == "__main__":
    unittest.main()
