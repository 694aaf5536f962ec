"""Data of every format at a URL are the data that they are here, and the manifest is none of them;
and they may be mixed with others that are far or near."""
import json
import unittest

import arrow_files
import shard_files
import small_data
from harness import synthetic_dataset
from image_files import images, write_images
from range_server import RangeServer
from sources_test import SourcesTest


class EveryFormat(SourcesTest):
    def test_every_kind_of_format_has_the_fingerprint_of_its_local_copy(self):
        folder = self.far / "folder"
        for split, each, seed in (("train", 4, 1), ("val", 2, 2)):
            write_images(folder / split, each, seed)
        shard_files.mds(self.far / "mds", list(images(8, 1)))
        (self.far / "tfrecord").mkdir()
        shard_files.tfrecord(self.far / "tfrecord/train.tfrecord", list(images(4, 1)))
        for name, write, ending in (("tar_gz", shard_files.tar, "tar.gz"),
                                    ("tfrecord_gz", shard_files.tfrecord, "tfrecord.gz")):
            (self.far / name).mkdir()
            for split, each in (("train", 4), ("val", 2)):
                shard_files.gzipped(write)(self.far / name / f"{split}-0.{ending}",
                                           list(images(each, 1)))
        shard_files.mds(self.far / "mds_gz", list(images(8, 1)))
        shard_files.compress_mds(self.far / "mds_gz")
        synthetic_dataset(self.far / "idx", train=200, evaluation=50)
        (self.far / "arrow").mkdir()
        for split, each in (("train", 8), ("val", 2)):
            arrow_files.encoded(self.far / f"arrow/{split}-00000-of-00001.arrow",
                                list(images(each, 1)))
        for name in ("folder", "mds", "tfrecord", "tar_gz", "tfrecord_gz", "mds_gz", "idx", "arrow"):
            local = self.prints(self.far / name, cache=self.scratch / "local")
            with RangeServer(self.far / name) as server:
                if name != "mds":  # which has a list of its own
                    server.write_manifest()
                self.assertEqual(self.prints(server.url), local, name)
                (self.far / name / "manifest.txt").unlink(missing_ok=True)

    def test_shards_that_are_compressed_under_other_names_are_refused_with_what_to_do(self):
        samples = list(images(4, 1))
        self.far.mkdir()
        shard_files.gzipped(shard_files.tfrecord)(self.far / "train.tfrecord", samples)
        self.assertEqual(len(self.prints(self.far / "train.tfrecord")), 1)
        with RangeServer(self.far) as server:
            server.write_manifest()
            self.assert_refused(server.url, 65, names="train.tfrecord", says="compressed",
                                advises=["copy", "unpack"])

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

    def test_a_mixture_of_far_and_near_ones_trains_as_one_of_local_copies_does(self):
        far = [self.shards(self.scratch / name, pictures) for name, pictures in (("a", 12), ("b", 8))]
        near = self.shards(self.scratch / "near", 4)

        def job(name, paths):
            made = json.loads(self.far_job(paths[0], name=name).read_text())
            made["data"] |= {"mix_weight": 3, "mix": [{"path": str(paths[1]), "weight": 2},
                                                      {"path": str(near)}]}
            return self.job(paths[0], name=name, model=made["model"], data=made["data"],
                            train={"global_batch": 24, "slots": 4, "epochs": 3})

        there = self.finish(job("local.yaml", far), "--workers", 1, name="there")
        with RangeServer(far[0]) as one, RangeServer(far[1]) as other:
            for server in (one, other):
                server.write_manifest()
            of_urls = job("far.yaml", (one.url, other.url))
            here = self.start(of_urls, "--workers", 2, "train.max_steps=3", name="here", env=self.env)
            self.assertEqual(here.wait(), 0, here.text()[-3000:])
            rest = self.start(of_urls, "--resume", "--workers", 3, "train.max_steps=0", name="here",
                              env=self.env)
            self.assertEqual(rest.wait(), 0, rest.text()[-3000:])
            for server in (one, other):
                self.assertIn("train-000.tar", {path for _, path in server.requests})
        self.assert_same_result(rest, there)


if __name__ == "__main__":
    unittest.main()
