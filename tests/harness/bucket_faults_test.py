"""The test server of a bucket fails as it is told, and not otherwise."""
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

import shard_files
from bucket import DEADLINE_S
from bucket_client import BucketTest, Client, crc_of
from bucket_faults import Faults, Only
from checksums import crc32c
from range_server import RangeServer

HERE = pathlib.Path(__file__).resolve().parent


class FaultsOfABucket(BucketTest):
    def put(self, key="k", body=b"v", **headers):
        """The status, and whether the body is there."""
        said = self.client.ask("PUT", key, body=body, **headers)
        return said and said.status, self.bucket.objects.get(key) == body

    def puts(self, faults):
        """Puts twice. The fault strikes the second put."""
        self.start(faults)
        return [self.put("1"), self.put("2")], self.bucket.log[-1]

    def test_each_fault_says_whether_it_has_an_effect_and_an_answer(self):
        for name, struck, code in (("fail_every", (503, False), "SlowDown"),
                                   ("fail_after_every", (500, True), "InternalError"),
                                   ("lose_request_every", (None, False), ""),
                                   ("lose_answer_every", (None, True), "")):
            with self.subTest(name):
                puts, last = self.puts(Faults(**{name: 2}))
                self.assertEqual(puts, [(200, True), struck])
                self.assertEqual((last.key, last.status, last.code), ("2", struck[0] or 0, code))

    def test_a_fault_strikes_only_what_it_may(self):
        puts = Only(methods=["PUT"], key="^run")
        self.start(Faults(fail_every=1, lose_answer_every=1, only={
            "fail_every": puts,
            "lose_answer_every": lambda request: request.operation == "GetObject"}))
        self.assertEqual(self.put("k"), (200, True))
        self.assertEqual(self.put("run"), (503, False))
        self.assertEqual(self.client.ask("HEAD", "k").status, 200)
        self.assertIsNone(self.client.ask("GET", "k"))
        for wrong in ({"deny": ["s3:Put"]}, {"only": {"fail": puts}}, {"fail": 1}):
            with self.assertRaises((ValueError, TypeError)):
                Faults(**wrong)
        with self.assertRaises(AttributeError):
            self.bucket.faults.fail = 1

    def test_a_conditional_put_may_conflict_or_overwrite(self):
        self.start(Faults(conflict_every=2))
        self.assertEqual(self.put(If_None_Match="*"), (200, True))
        self.assertEqual(self.put(body=b"plain"), (200, True))
        self.assertEqual(self.put(body=b"w", If_None_Match="*"), (409, False))
        self.assertEqual(self.bucket.log[-1].code, "ConditionalRequestConflict")
        self.assertEqual(self.put(body=b"w", If_None_Match="*"), (412, False))
        self.bucket.faults = Faults(ignore_conditions=True)
        self.assertEqual(self.put(body=b"w", If_None_Match="*"), (200, True))

    def test_checksums_may_be_ignored_or_refused(self):
        self.start(Faults(ignore_checksums=True))
        self.assertEqual(self.put(**crc_of(b"other")), (200, True))
        self.assertEqual(self.put(**{"x-amz-content-sha256": "0" * 64}), (200, True))
        self.bucket.faults = Faults(refuse_checksums=True)
        self.assertEqual(self.put(**crc_of(b"v"))[0], 501)
        self.assertEqual(self.put()[0], 200)
        self.assertEqual(self.client.ask("POST", "k", {"uploads": ""},
                                         **{"x-amz-checksum-algorithm": "CRC32C"}).status, 501)

    def test_what_a_policy_denies_is_not_done(self):
        self.start()
        upload_id = self.begin()
        self.part(upload_id, 1, b"half")
        self.put()
        upload = {"uploadId": upload_id}
        for action, words in (
                ("s3:PutObject", ("PUT", "k", {}, b"w")),
                ("s3:PutObject", ("PUT", "k", {"partNumber": "1", **upload})),
                ("s3:GetObject", ("GET", "k")), ("s3:DeleteObject", ("DELETE", "k")),
                ("s3:ListBucket", ("GET", None, {"list-type": "2"})),
                ("s3:ListBucket", ("GET", "not there")),
                ("s3:ListBucketMultipartUploads", ("GET", None, {"uploads": ""})),
                ("s3:ListMultipartUploadParts", ("GET", "k", upload)),
                ("s3:AbortMultipartUpload", ("DELETE", "k", upload))):
            with self.subTest(action):
                self.bucket.faults = Faults(deny={action})
                self.assert_refused(self.client.ask(*words), 403, "AccessDenied")
        self.bucket.faults = Faults(deny={"s3:ListBucket"})
        self.assertEqual(self.client.ask("GET", "k").body, b"v")
        self.assertEqual(list(self.bucket.uploads), [upload_id])

    def test_a_stalled_put_takes_effect_after_its_sender_has_gone(self):
        self.start(Faults(stall=True, only={"stall": Only(methods=["PUT"])}))
        self.client.send("PUT", "k", body=b"v")
        self.bucket.wait_for(lambda: self.bucket.log)
        self.assert_refused(self.another().ask("GET", "k"), 404, "NoSuchKey")
        self.client.connection.close()
        self.assertIsNone(self.bucket.log[0].status)
        self.bucket.release()
        self.bucket.wait_for(lambda: self.bucket.log[0].status == 200)
        self.assertEqual(self.bucket.objects, {"k": b"v"})

    def test_a_bucket_that_is_away_gives_no_answer(self):
        self.start()
        self.assertEqual(self.put(), (200, True))
        self.bucket.faults.away = True
        for _ in range(2):  # on the connection there was, and on a new one
            self.assertEqual(self.put(body=b"w"), (None, False))
        self.bucket.faults.away = False
        self.assertEqual(self.put(body=b"w"), (200, True))
        self.bucket.faults = Faults(away=True, only={"away": Only(methods=["GET"])})
        self.assertEqual(self.put(body=b"x"), (200, True))
        self.assertIsNone(self.client.ask("GET", "k"))

    def test_a_list_may_miss_what_is_new_and_a_get_the_end(self):
        self.start(Faults(stale_list=2, truncate_gets=2))
        for key in ("c", "b", "a", "other"):
            self.put(key, body=b"0123456789")
        said = self.client.ask("GET", query={"list-type": "2", "prefix": "o"})
        self.assertEqual(said.all("Key"), [])
        said = self.client.ask("GET", query={"list-type": "2"})
        self.assertEqual(said.all("Key"), ["b", "c"])
        self.assertEqual(self.client.ask("GET", "c").body, b"0123456789")
        self.client.send("GET", "c")
        answer = self.client.connection.getresponse()
        self.assertEqual((answer.headers["Content-Length"], answer.read(5)), ("10", b"01234"))
        self.assertEqual(answer.read(5), b"")

    def test_a_slow_answer_takes_its_time(self):
        self.start(Faults(slow_s=0.1))
        self.put("1")
        self.put("2")
        first, second = self.bucket.log
        self.assertGreaterEqual(second.at_s - first.at_s, 0.1)

    def test_completions_fail_with_200_or_without_a_word(self):
        self.start(Faults(complete_error_in_body=2, complete_answer_lost=2))
        ids = [self.begin(key) for key in "ab"]
        for key, upload_id in zip("ab", ids):
            self.part(upload_id, 1, b"half", key=key)
        said = self.complete(ids[0], [(1, b"half")], key="a")
        self.assertEqual((said.status, said.code, list(self.bucket.objects)), (200, "", ["a"]))
        self.assert_refused(self.complete(ids[1], [(1, b"half")], key="b"), 200, "InternalError")
        self.assertEqual(list(self.bucket.uploads), [ids[1]])
        self.assertIsNone(self.complete(ids[1], [(1, b"half")], key="b"))
        self.assertEqual(list(self.bucket.objects), ["a", "b"])


class Servers(BucketTest):
    def certificate(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        with RangeServer(directory) as other:
            return other.encrypt(directory), directory / "key.pem"

    def test_a_client_that_shakes_no_hands_stops_no_other(self):
        chain, key = self.certificate()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(chain, key)
        self.start(tls=tls)
        self.enterContext(socket.create_connection(("127.0.0.1", self.bucket.port)))
        client = self.another(tls=ssl.create_default_context(cafile=chain))
        said = client.ask("PUT", "k", body=b"v", **{"x-amz-content-sha256": "UNSIGNED-PAYLOAD"})
        self.assertEqual((said.status, self.bucket.objects), (200, {"k": b"v"}))
        self.assertTrue(self.bucket.environment["AWS_ENDPOINT_URL_S3"].startswith("https://"))

    def test_the_program_says_where_it_is(self):
        faults = {"fail_every": 1, "only": {"fail_every": {"operations": ["PutObject"]}}}
        words = [sys.executable, HERE / "bucket.py", "--bucket", "b", "--token", "t", "--faults",
                 json.dumps(faults)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
            try:
                port = int(program.stdout.readline().removeprefix("ready "))
                client = Client(f"http://127.0.0.1:{port}", token="t")
                self.assertEqual(client.ask("GET", "k", bucket="b").code, "NoSuchKey")
                self.assertEqual(client.ask("PUT", "k", bucket="b").code, "SlowDown")
                client.connection.close()
            finally:
                program.terminate()
                self.assertIsNotNone(program.wait(DEADLINE_S))


class Checksums(unittest.TestCase):
    def test_a_fold_has_the_remainder_of_a_division(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        data = bytes(number * number >> 3 & 0xFF for number in range(4099))
        for size in (0, 1, 3, 4, 5, 59, 60, 61, 64, 127, 128, 129, 1000, 1024, 4095, 4099):
            self.assertEqual(crc32c(data[:size]), shard_files.crc32c(data[:size]), size)


if __name__ == "__main__":
    unittest.main()
