"""data.mix of what is not stored as it is used, in real runs: tokens as one stream, packed documents,
and images that are decoded and varied."""
import random
import struct
import unittest

from documents_test import MODEL, WORDS
from harness import LockstepTest
from image_files import write_images
from images_test import TRANSFORMS

TEXT = {"global_batch": 16, "slots": 4, "epochs": 2}


class MixedKinds(LockstepTest):
    def texts(self, name, files, seed):
        """A file is a document."""
        directory = self.scratch / name
        directory.mkdir()
        chance = random.Random(seed)
        for i in range(files):
            words = chance.choices(WORDS, k=chance.choice([1, 2, 3, 5, 8, 60]))
            (directory / f"{i:04}.txt").write_text("".join(words))
        return str(directory)

    def stream(self, name, tokens, seed):
        path = self.scratch / f"{name}.bin"
        chance = random.Random(seed)
        path.write_bytes(struct.pack(f"<{tokens}H", *(chance.randrange(200) for _ in range(tokens))))
        return str(path)

    def folder(self, name, each, seed):
        return str(write_images(self.scratch / name, each, seed))

    def mixed_job(self, first, second, train, model, **keys):
        return self.job("unused", model=model, train=train,
                        data={"train": first, "mix_weight": 3,
                              "mix": [{"path": second, "weight": 2}], **keys})

    def text_job(self, train, **keys):
        return self.mixed_job(self.texts("web", 200, 1), self.texts("books", 60, 2), train, MODEL,
                              documents="pack", **keys)

    def check(self, job):
        """The same weights for any number of workers and after a resume, every sample once, and
        a step made again."""
        one = self.finish(job, "--workers", 1, name="one")
        three = self.finish(job, "--workers", 3, "train.max_steps=5", name="three")
        self.succeed("run", job, "--resume", "--run-dir", three.run_dir, "--workers", 2,
                     "train.max_steps=0")
        self.assert_same_result(three, one)
        self.assertEqual([part["weight"] for part in self.audit(three)["mixture"]], [3, 2])
        self.succeed("replay", three.run_dir, "--step", 7)

    def test_tokens_as_one_stream(self):
        self.check(self.mixed_job(self.stream("web", 40_000, 1), self.stream("books", 9_000, 2),
                                  TEXT, MODEL))

    def test_packed_documents(self):
        self.check(self.text_job({**TEXT, "epochs": 6}))

    def test_images_that_are_decoded_and_varied(self):
        self.check(self.mixed_job(self.folder("photos", 40, 1), self.folder("scans", 15, 2),
                                  {"global_batch": 24, "slots": 4, "epochs": 3}, "mlp",
                                  transforms=TRANSFORMS))

    def test_a_killed_worker_changes_nothing_in_packed_ones(self):
        job = self.text_job({"global_batch": 16, "slots": 4, "max_steps": 200})
        run = self.assert_a_kill_changes_nothing(job)
        self.assertGreater(run.summary()["generations"], 1)


if __name__ == "__main__":
    unittest.main()
