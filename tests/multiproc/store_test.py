"""`lockstep store check`: a good bucket, and each kind of bad one, as a user meets them."""
import json
import os
import ssl
import unittest

from bucket import SECRET, Bucket
from bucket_faults import Faults
from harness import LockstepTest, lockstep

SUBJECTS = ["create", "condition", "race", "read", "list", "upload", "abandon", "remove"]


class Store(LockstepTest):
    def check(self, bucket, *words, url="s3://runs/a b", **changes):
        return lockstep("store", "check", url, *words, env={**os.environ, **bucket.environment,
                                                            **changes})

    def test_a_good_bucket_is_told_line_by_line_and_nothing_is_left_in_it(self):
        with Bucket() as bucket:
            done = self.check(bucket)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            lines = [line.split()[:2] for line in done.stdout.splitlines()]
            self.assertEqual(lines[:-1], [["good", subject] for subject in SUBJECTS])
            self.assertIn("s3://runs/a b can hold a run", done.stdout)
            self.assertIn("lifecycle rule", done.stdout)
            self.assertEqual((bucket.objects, bucket.uploads), ({}, {}))
            self.assertTrue(all(asked.key.startswith("a b/lockstep-check/")
                                for asked in list(bucket.log) if asked.key), bucket.log[:5])
            self.assertNotIn(SECRET, done.stdout + done.stderr)

    def test_one_that_ignores_conditions_ends_with_78(self):
        with Bucket(Faults(ignore_conditions=True)) as bucket:
            done = self.check(bucket, "--json")
            self.assertEqual(done.returncode, 78, done.stdout + done.stderr)
            said = json.loads(done.stdout)
            self.assertFalse(said["is_good"])
            bad, = (one for one in said["findings"] if one["grade"] == "bad")
            self.assertEqual(bad["subject"], "condition")
            self.assertIn("If-None-Match", bad["text"])
            self.assertEqual(bucket.objects, {})

    def test_what_a_user_has_wrong_is_told_in_a_line(self):
        with Bucket(Faults(deny={"s3:GetObject"})) as bucket:
            self.assertIn("needs s3:GetObject", self.check(bucket).stdout)
        with Bucket() as bucket:
            for changes, words in [({"AWS_SECRET_ACCESS_KEY": "other"}, "SignatureDoesNotMatch"),
                                   ({"AWS_REGION": "eu-west-1"}, "set AWS_REGION=us-east-1"),
                                   ({"AWS_ACCESS_KEY_ID": "half", "AWS_SECRET_ACCESS_KEY": ""},
                                    "one of an access key's two halves")]:
                done = self.check(bucket, **changes)
                self.assertEqual(done.returncode, 78, done.stdout + done.stderr)
                self.assertIn(words, done.stdout)
                self.assertNotIn(SECRET, done.stdout + done.stderr)
            self.assertIn("NoSuchBucket", self.check(bucket, url="s3://other").stdout)
            gone = bucket.environment
        done = lockstep("store", "check", "s3://runs", env={**os.environ, **gone})
        self.assertEqual(done.returncode, 78, done.stdout + done.stderr)
        self.assertIn("6 attempts", done.stdout)

    def test_a_server_whose_certificate_nobody_trusts_gets_no_request(self):
        certificates = self.scratch / "tls"
        self.succeed("certs", certificates, "--hosts", "127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
        with Bucket(tls=context) as bucket:
            done = self.check(bucket)
            self.assertEqual(done.returncode, 78, done.stdout + done.stderr)
            self.assertIn("certificate is not trusted", done.stdout)
            self.assertEqual(bucket.log, [])
            done = self.check(bucket, SSL_CERT_FILE=str(certificates / "ca.crt"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_other_clouds_and_paths_are_refused_by_name(self):
        for url, words in [("gs://b/x", "gs:// is not supported yet"),
                           ("az://b/x", "Azure"), ("https://a.blob.core.windows.net/b", "Azure"),
                           ("/tmp/x", "s3://BUCKET"), ("s3://", "has no host"),
                           ("s3://key:secret@b", "user or a password")]:
            done = lockstep("store", "check", url)
            self.assertEqual(done.returncode, 64, done.stdout + done.stderr)
            self.assertIn(words, done.stderr)
        self.assertEqual(lockstep("store").returncode, 64)


if __name__ == "__main__":
    unittest.main()
