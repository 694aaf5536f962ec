"""Data of every format at a URL are the data that they are here, and the manifest is none of them."""
import unittest

import arrow_files
import shard_files
import small_data
from harness import synthetic_dataset
from images_test import images
from range_server import RangeServer
from sources_test import SourcesTest


class EveryFormat(SourcesTest):
    def test_every_kind_of_format_has_the_fingerprint_of_its_local_copy(self):
        folder = self.far / "folder"
        for split, each, seed in (("train", 4, 1), ("val", 2, 2)):
            for name, _, content in images(each, seed):
                path = folder / split / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        shard_files.mds(self.far / "mds", list(images(8, 1)))
        (self.far / "tfrecord").mkdir()
        shard_files.tfrecord(self.far / "tfrecord/train.tfrecord", list(images(4, 1)))
        synthetic_dataset(self.far / "idx", train=200, evaluation=50)
        (self.far / "arrow").mkdir()
        for split, each in (("train", 8), ("val", 2)):
            arrow_files.encoded(self.far / f"arrow/{split}-00000-of-00001.arrow",
                                list(images(each, 1)))
        for name in ("folder", "mds", "tfrecord", "idx", "arrow"):
            local = self.prints(self.far / name, cache=self.scratch / "local")
            with RangeServer(self.far / name) as server:
                if name != "mds":  # which has a list of its own
                    server.write_manifest()
                self.assertEqual(self.prints(server.url), local, name)
                (self.far / name / "manifest.txt").unlink(missing_ok=True)

    def test_a_small_one_of_every_other_format_too_and_its_manifest_changes_nothing(self):
        for name, (write, args) in small_data.ALL.items():
            with self.subTest(format=name):
                directory = self.far / name.replace(", ", "_")
                directory.mkdir(parents=True)
                write(directory)
                near = self.scratch / "local" / name
                local = self.prints(directory, *args, cache=near)
                self.assertEqual([(split, format) for split, format, _ in local],
                                 [(split, name.split(",")[0]) for split in ("train", "eval")])
                with RangeServer(directory) as server:
                    server.write_manifest()
                    self.assertEqual(self.prints(server.url, *args), local)
                self.assertEqual(self.prints(directory, *args, cache=near), local)


if __name__ == "__main__":
    unittest.main()
