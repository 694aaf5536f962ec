"""Bad input gives one clear line and the right exit code, and leaves no process."""
import gzip
import json
import os
import re
import struct
import subprocess
import unittest

import image_files
from fails_with import outcome_of
from harness import BIN, DEADLINE_S, FASHION, LockstepTest, lockstep, synthetic_dataset
from shard_files import crc32c

HAS_GPU = os.path.exists("/dev/nvidiactl")


class BadData(LockstepTest):
    def broken(self, change):
        data = synthetic_dataset(self.scratch / "broken", train=60, evaluation=20)
        change(data)
        return self.job(data)

    def expect(self, job, code, *names, says=()):
        run = self.start(job, "--workers", 2)
        self.assert_fails(run, code, names, says)
        self.assert_nothing_left(run)
        self.assertFalse(run.run_dir.exists(), "a failed start leaves no run directory behind")

    def test_a_missing_directory(self):
        self.expect(self.job(self.scratch / "nowhere"), 66, "nowhere")

    def test_images_without_classes_are_spoken_of_as_images(self):
        folder = self.scratch / "flat"
        folder.mkdir()
        for i in range(3):
            (folder / f"{i}.jpg").write_bytes(image_files.jpeg(16, 16, bytes([80 * i]) * (16 * 16 * 3)))
        inspected = lockstep("data", "inspect", folder)
        run = self.start(self.job(folder), "--workers", 1)
        code, text = outcome_of(run)
        self.assertEqual(code, inspected.returncode, text)
        self.assertIn(str(folder), text)
        self.assertNotIn("ubyte", text, "these are no IDX files")

    def test_a_missing_file(self):
        self.expect(self.broken(lambda d: (d / "train-labels-idx1-ubyte").unlink()), 66,
                    "train-labels-idx1-ubyte")

    def test_a_truncated_file(self):
        def cut(d):
            path = d / "train-images-idx3-ubyte"
            path.write_bytes(path.read_bytes()[:2000])
        self.expect(self.broken(cut), 65, "train-images-idx3-ubyte")

    def test_a_wrong_magic(self):
        def scribble(d):
            path = d / "train-images-idx3-ubyte"
            path.write_bytes(b"\x12\x34\x56\x78" + path.read_bytes()[4:])
        self.expect(self.broken(scribble), 65, "train-images-idx3-ubyte", says="magic")

    def test_label_count_unlike_image_count(self):
        def shorten(d):
            import struct
            path = d / "train-labels-idx1-ubyte"
            path.write_bytes(struct.pack(">II", 0x801, 59) + path.read_bytes()[8:67])
        self.expect(self.broken(shorten), 65, "59", "60")

    def test_a_corrupt_gzip(self):
        def corrupt(d):
            path = d / "train-images-idx3-ubyte"
            packed = bytearray(gzip.compress(path.read_bytes()))
            packed[len(packed) // 2] ^= 0xFF
            (d / "train-images-idx3-ubyte.gz").write_bytes(packed)
            path.unlink()
        self.expect(self.broken(corrupt), 65, "train-images-idx3-ubyte.gz")


class BadJob(LockstepTest):
    def refuse(self, *names, args=(), job=None, code=64, says=(), advises=()):
        run = self.start(job or self.job(self.small_data()), *args)
        self.assert_fails(run, code, names, says, advises)
        self.assertFalse(run.run_dir.exists(), "a failed start leaves no run directory behind")

    def test_an_unknown_key_names_the_nearest(self):
        job = self.job(self.small_data(), train={"globl_batch": 64, "epochs": 1})
        self.refuse("train.globl_batch", "train.global_batch", job=job)

    def test_a_wrong_type(self):
        self.refuse("optimizer.lr", "fast", args=["optimizer.lr=fast"])

    def test_zero_workers(self):
        self.refuse("--workers", args=["--workers", "0"])

    def test_more_slots_than_samples_in_a_batch(self):
        self.refuse("train.slots", "400", args=["train.slots=400"])

    def test_an_unknown_model_names_the_nearest(self):
        self.refuse("model.name", "cnnn", "cnn", args=["model.name=cnnn"])

    def test_not_a_number(self):
        self.refuse("optimizer.lr", "nan", args=["optimizer.lr=nan"])

    def test_a_negative_batch(self):
        self.refuse("train.global_batch", "-5", args=["train.global_batch=-5"])

    def test_broken_yaml_names_the_line(self):
        path = self.scratch / "broken.yaml"
        path.write_text("job: x\nmodel: [\n")
        self.refuse("broken.yaml:3", job=path)

    def test_a_job_file_that_is_not_there(self):
        self.refuse("nothing.yaml", job=self.scratch / "nothing.yaml", code=66)

    def test_batch_norm_over_a_single_value_is_refused_at_start(self):
        job = self.job(self.small_data(), model={"name": "mlp", "batch_norm": True},
                       train={"global_batch": 4, "slots": 4, "epochs": 1})
        self.refuse("model.batch_norm", job=job, code=78, says="one value")

    def test_a_directory_that_was_there_stays(self):
        (self.scratch / "run").mkdir()
        run = self.finish(self.job(self.scratch / "nowhere"), expect=66)
        self.assertTrue(run.run_dir.exists())

    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_a_gpu_that_is_not_there(self):
        self.refuse("cluster.device", args=["cluster.device=cuda"], code=78,
                    advises=["cpu", "auto"])


@unittest.skipIf(HAS_GPU, "there is a GPU")
class AWorkerWithoutItsGpu(LockstepTest):
    def test_ends_with_78_and_says_what_to_do(self):
        run = self.finish(self.job(self.small_data()), "--workers", 1, "train.max_steps=1")
        path = run.run_dir / "job.pb"
        path.write_bytes(on_cuda(path.read_bytes()))
        worker = subprocess.run(
            [BIN / "lockstep-worker", "--run-dir", run.run_dir, "--local-rank", "0"],
            capture_output=True, text=True, timeout=DEADLINE_S)
        self.assert_fails(worker, 78, says="GPU", advises="cluster.device: cpu")


def on_cuda(job):
    """The bytes of job.pb with cluster.device (fields 10 and 2) cuda instead of cpu. The last six
    are its seal: a tag and the CRC-32C of the bytes before it."""
    job, tag_of_seal = job[:-6], job[-6:-4]
    out, at = b"", 0
    while at < len(job):
        begin = at
        tag, at = varint(job, at)
        size = 8 if tag & 7 == 1 else 0
        if tag & 7 in (0, 2):
            size, at = varint(job, at)
            size = size if tag & 7 == 2 else 0
        body = job[at:at + size]
        at += size
        if tag == 10 << 3 | 2:
            body = body.replace(b"\x12\x03cpu", b"\x12\x04cuda")
            out += bytes([tag, len(body)]) + body
        else:
            out += job[begin:at]
    return out + tag_of_seal + struct.pack("<I", crc32c(out))


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


class CommandLine(LockstepTest):
    def test_the_version_is_told_in_both_ways(self):
        number = json.loads(self.succeed("version", "--json"))["version"]
        self.assertRegex(self.succeed("--version"), rf"^lockstep {re.escape(number)} \(")

    def test_every_path_in_the_help_of_data_inspect_is_where_the_package_puts_it(self):
        self.assertIn(f"inspect {FASHION}", self.succeed("data", "inspect", "--help"))

    def test_a_command_to_no_run_names_the_directory(self):
        self.assert_fails(lockstep("scale", "/nowhere", 2), 66, names="/nowhere")

    def test_drain_needs_a_node_or_a_member(self):
        self.assert_fails(lockstep("drain", "/nowhere"), 64, advises=["--node", "--member"])


if __name__ == "__main__":
    unittest.main()
