"""Directories of JPEG and PNG files and shards of every format in real runs: found by themselves,
trained on with any number of workers and threads, evaluated, resumed, replayed; and what is said of
files that are damaged or change."""
import json
import os
import shutil
import signal
import unittest

import arrow_files
import shard_files
from fails_with import events, is_named, lacking, told
from harness import LockstepTest, lockstep
from image_files import CLASSES, EACH, EVALUATION, images, write_images

TRAIN = {"global_batch": 24, "slots": 4, "epochs": 3}
# With slow slots a disturbance comes in its middle.
LONG = "train.epochs=60"
TRANSFORMS = ["random_resized_crop=16", "flip", "normalize"]


@unittest.skipUnless(shutil.which("cjpeg"), "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
class Images(LockstepTest):
    def folder(self):
        data = self.scratch / "data"
        for split, each, seed in (("train", EACH, 1), ("val", EVALUATION, 2)):
            write_images(data / split, each, seed)
        return data

    def shards(self, write, ending):
        """`write`: of shard_files, with the ending of its files."""
        data = self.scratch / "shards"
        data.mkdir()
        for split, each, seed, shards in (("train", EACH, 1, 4), ("val", EVALUATION, 2, 1)):
            samples = list(images(each, seed))
            for i in range(shards):
                write(data / f"{split}-{i:03d}.{ending}", samples[i::shards])
        return data

    def inspect(self, path):
        seen = json.loads(self.succeed("data", "inspect", path, "--json"))["splits"]
        return [(split["split"], split["format"], split["samples"], split["classes"])
                for split in seen]

    def image_job(self, data, name="job.yaml", **sections):
        job = self.job(data, model={"name": "cnn"}, train=TRAIN, name=name, **sections)
        text = json.loads(job.read_text())
        text["data"]["transforms"] = TRANSFORMS
        job.write_text(json.dumps(text))
        return job

    def train_and_compare(self, data):
        job = self.image_job(data)
        one = self.finish(job, "--workers", 1, "data.threads=1", name="one")
        self.finish(job, "--workers", 2, "data.threads=2", "train.max_steps=7", name="many")
        many = self.finish(job, "--workers", 3, "data.threads=3", "--resume", "train.max_steps=0",
                           name="many")
        self.assert_same_result(many, one)
        self.assertLess(one.history()[-1]["loss"], 0.7 * one.history()[0]["loss"])
        self.assertGreater(one.summary()["eval_accuracy"], 0.6)
        return many

    def test_a_folder_of_images_gives_the_same_bits_for_workers_and_threads(self):
        data = self.folder()
        self.assertEqual(self.inspect(data),
                         [("train", "image_folder", len(CLASSES) * EACH, len(CLASSES)),
                          ("eval", "image_folder", len(CLASSES) * EVALUATION, len(CLASSES))])
        run = self.train_and_compare(data)
        self.assertRegex(self.succeed("replay", run.run_dir, "--step", 2),
                         rf"label \d  {data}/train/(apple|pear|plum)/\d+\.(jpg|png)\n")

    def test_directories_that_may_be_no_classes_are_refused_unless_they_are_named(self):
        data = self.folder() / "train"
        data.rename(self.scratch / "data" / "photos")
        shutil.rmtree(self.scratch / "data" / "val")
        above = self.scratch / "data"
        (above / "notes.tif").write_bytes(b"II*")
        seen = json.loads(self.succeed("data", "inspect", above, "--json"))
        self.assertIn(str(above / "photos"), " ".join(seen["warnings"]))
        self.assertEqual(seen["left_out"]["files"], 1)
        job = self.image_job(above)
        run = self.start(job, "--workers", 1)
        self.assert_fails(run, 64, names=above / "photos", advises="data.train.format")
        self.finish(job, "--workers", 1, "data.train.format=image_folder", "train.max_steps=1",
                    name="named")
        verified = self.succeed("data", "verify", above)
        self.assertIn("1 *.tif (notes.tif)", verified)

    def test_a_crop_behind_what_works_on_pixels_changes_no_bit(self):
        data = self.folder()
        jitter = ["brightness=0.3", "saturation=0.3", "hue=0.1"]
        for name, words in (("first", ["random_crop=16", *jitter]),
                            ("last", [*jitter, "random_crop=16"])):
            job = self.image_job(data, name=f"{name}.yaml")
            text = json.loads(job.read_text())
            text["data"]["transforms"] = ["resize=20", *words, "normalize"]
            job.write_text(json.dumps(text))
            run = self.finish(job, "--workers", 2, "train.epochs=1", name=name)
            if name == "first":
                first = run
        self.assert_same_result(run, first)

    def test_tuning_says_once_what_it_came_to_and_changes_no_bit(self):
        # With so many batches ahead Lockstep can try only more threads, and soon none are left.
        job = self.image_job(self.folder())
        keys = ("--workers", 1, "train.epochs=60", "data.prefetch_batches=64")
        fixed = self.finish(job, *keys, "data.tune=off", name="fixed")
        tuned = self.finish(job, *keys, name="tuned")
        self.assert_same_result(tuned, fixed)
        self.assertEqual(self.said_of_tuning(fixed), [])
        said, = self.said_of_tuning(tuned)
        self.assertRegex(said, r"\d+ threads?\b.*\b\d+ batches\b")

    def said_of_tuning(self, run):
        return [told(line) for line in events(run, "engine", "worker-*")
                if is_named("data.tune", told(line))]

    def assert_shards_train(self, data, kind, place):
        self.assertEqual(self.inspect(data),
                         [("train", kind, len(CLASSES) * EACH, len(CLASSES)),
                          ("eval", kind, len(CLASSES) * EVALUATION, len(CLASSES))])
        run = self.train_and_compare(data)
        self.assertRegex(self.succeed("replay", run.run_dir, "--step", 2),
                         rf"label \d  {data}/{place}\b.* \d+\n")

    def test_tar_shards_give_the_same_bits_for_workers_and_threads(self):
        self.assert_shards_train(self.shards(shard_files.tar, "tar"), "webdataset",
                                 r"train-\d+\.tar")

    def test_tfrecords_give_the_same_bits_for_workers_and_threads(self):
        self.assert_shards_train(self.shards(shard_files.tfrecord, "tfrecord"), "tfrecord",
                                 r"train-\d+\.tfrecord")

    def test_mds_shards_give_the_same_bits_for_workers_and_threads(self):
        data = self.scratch / "mds"
        shard_files.mds(data / "train", list(images(EACH, 1)))
        shard_files.mds(data / "val", list(images(EVALUATION, 2)))
        self.assert_shards_train(data, "mds", r"train/shard\.\d+\.mds")

    def test_gzipped_shards_give_the_same_bits_for_workers_and_threads(self):
        self.assert_shards_train(self.shards(shard_files.gzipped(shard_files.tar), "tar.gz"),
                                 "webdataset", r"train-\d+\.tar\.gz")

    def test_compressed_mds_shards_give_the_bits_of_the_plain_ones(self):
        plain, packed = self.scratch / "plain", self.scratch / "packed"
        for data in (plain, packed):
            shard_files.mds(data / "train", list(images(EACH, 1)))
            shard_files.mds(data / "val", list(images(EVALUATION, 2)))
        for split in ("train", "val"):
            shard_files.compress_mds(packed / split)
        of_plain = self.finish(self.image_job(plain, "plain.yaml"), "--workers", 1, name="of-plain")
        of_packed = self.finish(self.image_job(packed, "packed.yaml"), "--workers", 3, name="of-packed")
        self.assert_same_result(of_packed, of_plain)
        # The run goes on with what it was not begun with, since that is the same data.
        more = self.finish(self.image_job(plain, "packed.yaml"), "--workers", 2, "--resume",
                           "train.epochs=4", name="of-packed")
        self.assertGreater(len(more.history()), len(of_plain.history()))

    def test_arrow_files_give_the_same_bits_for_workers_and_threads(self):
        self.assert_shards_train(self.shards(arrow_files.encoded, "arrow"), "arrow_images",
                                 r"train-\d+\.arrow")

    def test_a_worker_killed_and_a_resume_in_mid_epoch_change_nothing(self):
        job = self.image_job(self.folder())
        undisturbed = self.finish(job, "--workers", 2, LONG, name="undisturbed")
        run = self.start(job, "--workers", 2, LONG, name="disturbed", slot_ms=20)
        run.wait_for_step(3)
        os.kill(run.worker(0), signal.SIGKILL)
        run.wait_for_more_steps(2)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75)
        resumed = self.start(job, "--workers", 3, LONG, "--resume", name="disturbed")
        self.assertEqual(resumed.wait(), 0, resumed.text())
        self.assert_same_result(resumed, undisturbed)

    def test_an_image_that_changes_ends_the_run_and_put_back_goes_on(self):
        data = self.folder()
        job = self.image_job(data)
        undisturbed = self.finish(job, "--workers", 2, LONG, name="undisturbed")
        victim = data / "train" / "pear" / "001.jpg"
        run = self.start(job, "--workers", 2, LONG, name="changed", slot_ms=20)
        run.wait_for_step(3)
        workers = run.workers()
        for pid in workers:  # so that it does not end meanwhile
            os.kill(pid, signal.SIGSTOP)
        good, times = victim.read_bytes(), victim.stat()
        victim.write_bytes(good[:len(good) // 2])
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        self.assert_fails(run, 65, names=victim, advises="resume")
        victim.write_bytes(good)
        os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
        resumed = self.start(job, "--workers", 2, LONG, "--resume", name="changed")
        self.assertEqual(resumed.wait(), 0, resumed.text())
        self.assert_same_result(resumed, undisturbed)

    def test_verify_names_every_damaged_file(self):
        data = self.folder()
        whole = json.loads(self.succeed("data", "verify", data, "--json"))["splits"][0]
        self.assertEqual((whole["split"], whole["samples"], whole["damaged"]), ("train", 120, 0))
        bad = [data / "train" / name for name in ("apple/001.jpg", "plum/004.png")]
        for path in bad:
            path.write_bytes(path.read_bytes()[:-30])
        done = lockstep("data", "verify", data, "--json")
        self.assertEqual(done.returncode, 65, done.stdout)
        split = json.loads(done.stdout)["splits"][0]
        self.assertEqual((split["split"], split["samples"], split["damaged"]), ("train", 120, 2))
        for path, kind, fault in zip(bad, ("JPEG", "PNG"), split["faults"], strict=True):
            self.assertEqual(lacking(fault, names=[path, kind]), [], fault)

    def test_what_is_wrong_is_said_before_a_worker_starts(self):
        data = self.folder()
        job = self.job(data, model={"name": "cnn"}, train=TRAIN)
        run = self.start(job, "--workers", 1, name="no-frame")
        self.assert_fails(run, 64, advises="random_resized_crop=224")
        (data / "train" / "plum" / "broken.jpg").write_bytes(b"\xff\xd8 no image")
        run = self.start(self.image_job(data, name="broken.yaml"), "--workers", 1, name="broken")
        self.assert_fails(run, 65, names="plum/broken.jpg")
        shutil.rmtree(data / "val" / "pear")
        (data / "train" / "plum" / "broken.jpg").unlink()
        run = self.start(self.image_job(data, name="classes.yaml"), "--workers", 1, name="classes")
        self.assert_fails(run, 65, names=[data / "train", data / "val"], says="class names")


if __name__ == "__main__":
    unittest.main()
