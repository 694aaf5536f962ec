"""`lockstep data verify` on many samples names each damaged one, and counts them all."""
import json
import random
import re
import shutil
import unittest
import zipfile

import array_files
import shard_files
from harness import LockstepTest, lockstep
from image_files import CLASSES, EACH, images, write_images

SAMPLES = len(CLASSES) * EACH


def flip(path, at):
    """Flips one bit of the byte there."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


class Verify(LockstepTest):
    def verify(self, path, *args, expect, damaged=()):
        """Checks that the output names the damaged places and their number, the latter as an
        error."""
        done = lockstep("data", "verify", path, *args)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\d+(\.\d)? [kMG]?B in \d+\.\d s\n")
        named = re.findall(rf"(?m)^ +({path}\S*)", done.stdout)
        self.assertEqual(sorted(named), sorted(map(str, damaged)), done.stdout)
        if damaged:
            self.assert_fails(done, 65, names=len(damaged))

    @unittest.skipUnless(shutil.which("cjpeg"),
                         "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
    def test_damaged_images_among_many_are_named(self):
        data = self.scratch / "data"
        write_images(data, EACH, 1)
        self.verify(data, "--full", expect=0)
        bad = random.Random(5).sample(sorted(data.glob("*/*")), 7)
        for path in bad:
            path.write_bytes(path.read_bytes()[:-30])
        for args in ((), ("--full",), ("--full", "--threads", "1")):
            self.verify(data, *args, expect=65, damaged=bad)
        done = lockstep("data", "verify", data, "--json")
        self.assertEqual(done.returncode, 65, done.stderr)
        [split] = json.loads(done.stdout)["splits"]
        self.assertEqual((split["samples"], split["damaged"], split["damaged_files"]),
                         (SAMPLES, 7, []))
        self.assertEqual(sorted(fault.split()[0] for fault in split["faults"]),
                         sorted(map(str, bad)))

    @unittest.skipUnless(shutil.which("cjpeg"),
                         "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
    def test_a_label_that_changed_in_a_record_is_found_by_its_checksum(self):
        data = self.scratch / "shards"
        data.mkdir()
        samples = list(images(EACH, 1))
        for i in range(4):
            shard_files.tfrecord(data / f"train-{i}.tfrecord", samples[i::4])
        self.verify(data, "--full", expect=0)
        path = data / "train-2.tfrecord"
        flip(path, path.stat().st_size - 5)  # the last byte before the checksum
        self.verify(data, expect=0)
        self.verify(data, "--full", expect=65, damaged=[path])

    def test_a_pixel_that_changed_in_an_archive_is_found_by_its_checksum(self):
        data = self.scratch / "shapes.npz"
        with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
            for split, count in (("train", 200), ("test", 60)):
                for what, array in zip("xy", array_files.channels_last(count)):
                    archive.writestr(f"{what}_{split}.npy", array)
        self.verify(data, "--full", expect=0)
        flip(data, 1_000)
        self.verify(data, expect=0)
        self.verify(data, "--full", expect=65, damaged=[data])


if __name__ == "__main__":
    unittest.main()
