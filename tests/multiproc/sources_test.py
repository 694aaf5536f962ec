"""Data at a URL: over HTTP and from a bucket, runs have the bits of a run on a local copy, and fill
the cache once. Also servers that fail, stall, lie or refuse."""
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import unittest

import arrow_files
import doctor_world
import shard_files
from fails_with import events, lacking, told
from harness import LockstepTest, get, lockstep
from image_files import images, png
from range_server import RangeServer, Throttle
from s3_server import S3Server, signature

TRAIN = {"global_batch": 24, "slots": 4, "epochs": 2}
TRANSFORMS = ["random_resized_crop=16", "flip", "normalize"]
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def quiet_env(**more):
    """Without the proxies and credentials of the user who runs the tests."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("AWS_") and not name.lower().endswith("_proxy")}
    return {**env, **more}


class SourcesTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.env = quiet_env(HOME=str(self.scratch))
        self.cache = self.scratch / "cache"
        self.far = self.scratch / "far"

    def shards(self, directory, pictures=12):
        directory.mkdir(parents=True)
        for split, each, seed, shards in (("train", pictures, 1, 3), ("val", 4, 2, 1)):
            samples = list(images(each, seed))
            for i in range(shards):
                shard_files.tar(directory / f"{split}-{i:03d}.tar", samples[i::shards])
        return directory

    def inspection(self, path, *args, cache=None, env=None):
        return lockstep("data", "inspect", path, "--json", "--cache-dir", cache or self.cache,
                        *args, env=env or self.env)

    def inspect(self, path, *args, **more):
        seen = self.inspection(path, *args, **more)
        self.assertEqual(seen.returncode, 0, seen.stdout + seen.stderr)
        return json.loads(seen.stdout)["splits"]

    def assert_refused(self, path, code, names=(), says=(), advises=(), **more):
        """Returns the complaint."""
        seen = self.inspection(path, **more)
        self.assert_fails(seen, code, names, says, advises)
        return seen.stderr

    def prints(self, path, *args, **more):
        """Split, format and fingerprint."""
        return [(s["split"], s["format"], s["fingerprint"])
                for s in self.inspect(path, *args, **more)]

    def bucket(self):
        """Makes class directories with keys that are hard to write down."""
        root = self.far / "bucket" / "a set"
        odd = ("a b", "a+b", "50%25", "é & <ü>", "it's", "x;y=z", "~.-_", "日本")
        for n, (name, _, content) in enumerate(images(6, 1)):
            path = root / name
            path = path.with_name(f"{odd[n % len(odd)]} {path.name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return root

    def far_job(self, url, name="job.yaml", **cache):
        return self.job(url, name=name, model={"name": "cnn"}, train=TRAIN, data={
            "train": {"path": str(url)}, "transforms": TRANSFORMS, "threads": 2,
            "cache_dir": str(self.cache),
            # With a limit, a disk that is nearly full keeps chunks, too.
            "cache": {"chunk_kb": 64, "limit_gb": 1, **cache}})


@unittest.skipUnless(shutil.which("cjpeg"), "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
class Http(SourcesTest):
    def test_shards_train_as_a_local_copy_does_and_are_fetched_once(self):
        self.shards(self.far)
        with RangeServer(self.far) as server:
            server.write_manifest()
            local = self.far_job(self.far, name="local.yaml")
            far = self.far_job(server.url)
            there = self.finish(local, "--workers", 1, name="there")
            here = self.start(far, "--workers", 2, name="here", env=self.env)
            self.assertEqual(here.wait(), 0, here.text()[-3000:])
            self.assert_same_result(here, there)
            self.assertEqual(here.summary()["eval_accuracy"], there.summary()["eval_accuracy"])
            fetched = server.bytes
            again = self.start(far, "--workers", 1, name="again", env=self.env)
            self.assertEqual(again.wait(), 0, again.text()[-3000:])
            self.assert_same_result(again, there)
            content = {path for method, path in server.requests if method == "GET"}
            self.assertIn("train-000.tar", content)
            # The run listed the data again, but fetched nothing of the shards a second time.
            lists = sum(path.stat().st_size for path in self.far.glob("manifest.txt"))
            self.assertLessEqual(server.bytes - fetched, 20 * lists)
            replay = lockstep("replay", here.run_dir, "--step", 2, env=self.env)
            self.assertEqual(replay.returncode, 0, replay.stdout + replay.stderr)

    def test_arrow_files_train_as_a_local_copy_does(self):
        self.far.mkdir()
        for split, each in (("train", 12), ("val", 4)):
            arrow_files.encoded(self.far / f"{split}.arrow", list(images(each, 1)))
        there = self.finish(self.far_job(self.far, name="local.yaml"), "--workers", 1, name="there")
        with RangeServer(self.far) as server:
            server.write_manifest()
            here = self.start(self.far_job(server.url), "--workers", 2, name="here", env=self.env)
            self.assertEqual(here.wait(), 0, here.text()[-3000:])
            self.assert_same_result(here, there)

    def test_data_at_a_url_are_packed_as_a_local_copy_is(self):
        self.shards(self.far)
        packed = {}
        with RangeServer(self.far) as server:
            server.write_manifest()
            for name, source in (("here", self.far), ("there", server.url)):
                to = self.scratch / name
                done = lockstep("data", "pack", source, to, "--cache-dir", self.cache, env=self.env)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                packed[name] = {path.relative_to(to): path.read_bytes()
                                for path in to.rglob("*") if path.is_file()}
        self.assertEqual(len(packed["here"]), 3)  # a file of each split, and what says how
        self.assertEqual(packed["there"], packed["here"])

    def test_a_single_file_needs_no_manifest_and_a_directory_does(self):
        self.shards(self.far)
        with RangeServer(self.far) as server:
            self.assertEqual([s["samples"] for s in self.inspect(server.url + "/train-000.tar")], [12])
            self.assert_refused(server.url, 66, names=server.url, advises="manifest.txt")

    def test_failures_that_pass_are_survived(self):
        self.shards(self.far)
        local = self.prints(self.far, cache=self.scratch / "local")
        faults = ["500", "cut", "wrong range", "more", "another etag"]
        with RangeServer(self.far) as server:
            server.write_manifest()
            server.fault = lambda path, part: faults.pop() if faults else None
            self.assertEqual(self.prints(server.url), local)
            self.assertEqual(len(server.faults), 5)

    def test_failures_that_stay_are_told_with_the_object(self):
        self.shards(self.far, pictures=40)  # shards of several chunks
        said = {"500": (66, "500"),
                "cut": (66, "attempts"),
                "no ranges": (66, "byte ranges"),
                "wrong range": (66, "another byte range"),
                "stall": (66, "stalled"),
                "another etag": (65, "changed")}
        for fault, (code, words) in said.items():
            with RangeServer(self.far) as server:
                server.write_manifest()
                server.fault = lambda path, part, kind=fault: kind
                job = self.far_job(server.url, stall_s=1, attempts=2)
                run = self.start(job, name=fault.replace(" ", "-"), env=self.env)
                self.assert_fails(run, code, names=server.url, says=[words, ".tar"])

    def test_a_damaged_cache_is_read_past(self):
        self.shards(self.far)
        with RangeServer(self.far) as server:
            server.write_manifest()
            job = self.far_job(server.url)
            first = self.finish(job, "--workers", 1, name="first", env=self.env)
            chunks = [p for p in (self.cache / "objects").rglob("*")
                      if p.is_file() and p.stat().st_size > 1000]
            self.assertTrue(chunks)
            for chunk in chunks:
                chunk.write_bytes(bytes(chunk.stat().st_size))
            for index in self.cache.glob("*.index"):
                index.unlink()
            again = self.finish(job, "--workers", 1, name="again", env=self.env)
            self.assert_same_result(again, first)

    def test_names_that_lead_elsewhere_are_refused(self):
        self.far.mkdir()
        (self.far / "manifest.txt").write_text("../../escaped.bin\n")
        with RangeServer(self.far) as server:
            self.assert_refused(server.url, 66, names="404")
            (self.far / "x").mkdir()
            (self.far / "escaped.bin").write_bytes(b"12345678")
            (self.far / "manifest.txt").write_text("x/../escaped.bin\n")
            self.assert_refused(server.url, 65, names="x/../escaped.bin")
            self.assertFalse(list(self.cache.rglob("escaped*")))

    def test_certificates_are_verified_and_https_never_leads_to_http(self):
        self.shards(self.far)
        with RangeServer(self.far) as plain, RangeServer(self.far) as server:
            server.write_manifest()
            trusted = {**self.env, "SSL_CERT_FILE": str(server.encrypt(self.scratch))}
            url = server.url
            self.assert_refused(url, 66, names=url, says="certificate")
            self.assertEqual(len(self.inspect(url, env=trusted)), 2)
            server.elsewhere = plain.url
            server.fault = lambda path, part: "redirect"
            self.assert_refused(url, 66, names=url, says="redirect", env=trusted,
                                cache=self.scratch / "other")
            self.assertEqual(plain.requests, [])

    def test_no_redirect_leads_inside_of_another_network(self):
        self.shards(self.far)
        with RangeServer(self.far) as server:
            server.write_manifest()
            server.elsewhere = "http://169.254.169.254"  # where clouds keep credentials
            server.fault = lambda path, part: "redirect"
            self.assert_refused(server.url, 66, names=[server.url, "169.254.169.254"],
                                says="link-local", advises="name that address")


class Disturbed(SourcesTest):
    """Runs that find their data's index in the cache, but nothing of the content."""

    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        shard_files.mds(self.far, [
            (f"{n}.png", n % 3, png(150, 150, rng.randbytes(3 * 150 * 150))) for n in range(192)])
        self.content_bytes = sum(path.stat().st_size for path in self.far.glob("*.mds"))
        self.there = self.finish(self.far_job(self.far, "local.yaml"), "--workers", 1, name="there")

    def index(self, server):
        self.inspect(server.url)
        shutil.rmtree(self.cache / "objects")
        server.bytes = 0

    def metrics(self, run):
        """Name and value of every series without labels of its own, summed over all targets."""
        found = collections.Counter()
        for group in json.loads(get(f"http://{run.coordinator()['http']}/sd")):
            for target in group["targets"]:
                for name, value in re.findall(r"^(\w+)\{[^}]*\} (\S+)$",
                                              get(f"http://{target}/metrics").decode(), re.M):
                    found[name] += float(value)
        return found

    def test_a_worker_that_is_killed_while_it_fetches_costs_nothing(self):
        with RangeServer(self.far) as server:
            self.index(server)
            server.throttle = Throttle(self.content_bytes / 20)
            job = self.far_job(server.url, memory_mb=0)
            run = self.start(job, "--workers", 2, name="here", env=self.env)
            run.wait_for_step(1)
            said = self.metrics(run)
            self.assertGreater(said["lockstep_far_data_fetched_bytes_total"], 64 * 1024)
            self.assertGreater(said["lockstep_far_data_cache_bytes"], 64 * 1024)
            os.kill(run.worker(0), signal.SIGKILL)
            self.assertLess(server.bytes, self.content_bytes, "it was at it still")
            server.throttle = None
            self.assertEqual(run.wait(), 0, run.text()[-3000:])
            self.assert_same_result(run, self.there)
            fetched = server.bytes
            again = self.start(job, "--workers", 2, name="again", env=self.env)
            self.assertEqual(again.wait(), 0, again.text()[-3000:])
            self.assert_same_result(again, self.there)
            self.assertLess(server.bytes - fetched, 64 * 1024, "what was kept is whole")

    def cache_notes(self, run):
        return [told(line) for event in ("cache_far_away", "cache_keeps_nothing")
                for line in events(run, event, "worker-*")]

    def test_a_cache_that_is_far_away_itself_is_noted_once_and_works(self):
        if why := doctor_world.why_no_fuse():
            self.skipTest("A CACHE ON A NETWORK IS NOT TESTED: " + why)
        (self.scratch / "server").mkdir()
        self.cache = self.scratch / "mount"
        try:
            mount = doctor_world.Mount(self.scratch / "server", self.cache)
        except doctor_world.CannotMount as error:
            self.skipTest(f"A CACHE ON A NETWORK IS NOT TESTED: {error}")
        self.addCleanup(mount.close)
        with RangeServer(self.far) as server:
            far = self.start(self.far_job(server.url), "--workers", 2, name="mounted", env=self.env)
            self.assertEqual(far.wait(), 0, far.text()[-3000:])
            self.assert_same_result(far, self.there)
            said, = self.cache_notes(far)
            self.assertEqual(lacking(said, names=["data.cache_dir", self.cache]), [], said)
            # A cache on a disk gets no note, nor do local data.
            self.cache = self.scratch / "disk"
            near = self.start(self.far_job(server.url, "near.yaml"), name="near", env=self.env)
            self.assertEqual(near.wait(), 0, near.text()[-3000:])
        self.assertEqual(self.cache_notes(near) + self.cache_notes(self.there), [])

    def test_a_cache_on_a_disk_without_room_keeps_nothing_and_training_goes_on(self):
        self.cache.mkdir(exist_ok=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "lockstep-test", self.cache],
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("THE FULL CACHE IS NOT TESTED: nothing can be mounted here: "
                          + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", self.cache], check=True)
        with RangeServer(self.far) as server:
            self.index(server)
            free = os.statvfs(self.cache).f_bavail * os.statvfs(self.cache).f_frsize
            (self.cache / "somebody-elses").write_bytes(bytes(free - 128 * 1024))
            run = self.start(self.far_job(server.url), "--workers", 2, name="here", env=self.env)
            self.assertEqual(run.wait(), 0, run.text()[-3000:])
            self.assert_same_result(run, self.there)
            self.assertGreater(server.bytes, self.content_bytes)
            kept = sum(path.stat().st_size for path in (self.cache / "objects").rglob("*")
                       if path.is_file())
            self.assertLess(kept, 128 * 1024)
            said, = self.cache_notes(run)
            self.assertEqual(lacking(said, names=[self.cache], says=["anew"],
                                     advises=["data.cache_dir"]), [], said)


@unittest.skipUnless(shutil.which("cjpeg"), "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
class S3(SourcesTest):
    def secrets_env(self, server, secret=SECRET, key="AKIAIOSFODNN7EXAMPLE", **more):
        return {**self.env, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
                "AWS_ENDPOINT_URL": server.url, "AWS_REGION": "eu-test-1", **more}

    def test_signatures_are_those_that_amazon_has_published(self):
        def published(query, host="examplebucket.s3.amazonaws.com", path="/", **more):
            headers = {"host": host, "x-amz-content-sha256": EMPTY,
                       "x-amz-date": "20130524T000000Z", **more}
            return signature(SECRET, "GET", path, query, headers, sorted(headers), "us-east-1")
        self.assertEqual(published([], path="/test.txt", range="bytes=0-9"),
                         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
        self.assertEqual(published([("lifecycle", "")]),
                         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
        self.assertEqual(published([("prefix", "J"), ("max-keys", "2")]),
                         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")

    def test_odd_keys_and_many_pages_give_the_local_fingerprint(self):
        local = self.prints(self.bucket(), cache=self.scratch / "local")
        with S3Server(self.far, {"AKIAIOSFODNN7EXAMPLE": (SECRET, None)}, page=5) as server:
            far = self.prints("s3://bucket/a set", env=self.secrets_env(server))
            self.assertEqual(far, local)
            self.assertGreaterEqual(server.pages, 4)
            self.assertEqual(server.refusals, [])

    def test_a_list_that_goes_round_in_a_circle_is_refused(self):
        self.bucket()
        with S3Server(self.far, {"AKIAIOSFODNN7EXAMPLE": (SECRET, None)}, page=5) as server:
            server.same_token = "again"
            self.assert_refused("s3://bucket/a set", 65, names="s3://bucket/a set", says="page",
                                env=self.secrets_env(server))
            self.assertLess(server.pages, 4)

    def test_a_wrong_secret_is_told_and_stands_nowhere(self):
        self.bucket()
        with S3Server(self.far, {"AKIAIOSFODNN7EXAMPLE": (SECRET, None)}) as server:
            wrong = "wrongwrongwrong"
            text = self.assert_refused("s3://bucket/a set", 66,
                                       names=["403", "SignatureDoesNotMatch"],
                                       env=self.secrets_env(server, secret=wrong))
            self.assert_refused("s3://bucket/a set", 66, names="403", advises="AWS_ACCESS_KEY_ID",
                                env={**self.env, "AWS_ENDPOINT_URL": server.url})
            job = self.far_job("s3://bucket/a set")
            run = self.start(job, env=self.secrets_env(server))
            self.assertEqual(run.wait(), 0, run.text()[-3000:])
            said = text.encode() + run.text().encode() + b"".join(
                path.read_bytes() for root in (run.run_dir, self.cache)
                for path in pathlib.Path(root).rglob("*") if path.is_file())
            for secret in (wrong, SECRET, "AKIAIOSFODNN7EXAMPLE"):
                self.assertNotIn(secret.encode(), said)

    def test_a_token_that_expires_is_read_again_from_the_file(self):
        local = self.prints(self.bucket(), cache=self.scratch / "local")
        file = self.scratch / "credentials"

        def hand_out(server, token):
            file.write_text(f"[lab]\naws_access_key_id = TEMP{token}\naws_secret_access_key = "
                            f"{SECRET}\naws_session_token = {token}\n")
            server.keys = {"TEMP1": (SECRET, "no longer"), f"TEMP{token}": (SECRET, token)}

        with S3Server(self.far, {}, page=5) as server:
            hand_out(server, "1")
            etag = server.etag

            def etag_and_turn(path, content):  # in the middle of the first page
                if server.pages == 1 and "TEMP2" not in server.keys:
                    hand_out(server, "2")
                return etag(path, content)

            server.etag = etag_and_turn
            far = self.prints("s3://bucket/a set", env={
                **self.env, "AWS_ENDPOINT_URL_S3": server.url, "AWS_PROFILE": "lab",
                "AWS_SHARED_CREDENTIALS_FILE": str(file)})
            self.assertEqual(far, local)
            self.assertIn("ExpiredToken", server.refusals)
            self.assertIn("TEMP2", server.keys)


if __name__ == "__main__":
    unittest.main()
