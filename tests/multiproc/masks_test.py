"""Images with masks, with real processes and a small U-Net with a loss of its own: worlds, a death,
a resume, replay and audit; WebDataset; bad data and bad jobs."""
import random
import shutil
import struct
import tarfile
import unittest
import zlib

from fails_with import lacking
from harness import ROOT, LockstepTest
from image_files import jpeg, png
from trained_runs import read_npy

PROGRAM = ROOT / "tests/golden/masks/unet.pt2"
PREDICT = ROOT / "tests/golden/masks/unet.predict.pt2"
SIDE = 24
TRAIN, EVALUATION = 90, 20
EPOCHS, BATCH = 12, 16
STEPS = EPOCHS * -(-TRAIN // BATCH)


def mask_png(width, height, values, palette=False):
    """Values below 16, four bits each."""
    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))
    rows = b""
    for y in range(height):
        row = values[y * width:(y + 1) * width] + bytes(width % 2)
        rows += b"\0" + bytes(row[x] << 4 | row[x + 1] for x in range(0, len(row), 2))
    head = struct.pack(">IIBBBBB", width, height, 4, 3 if palette else 0, 0, 0, 0)
    colours = chunk(b"PLTE", bytes(range(48))) if palette else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + colours
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def pair(i):
    """A bright square on dark ground as a JPEG, and its mask; of several sizes."""
    rng = random.Random(i)
    width, height = rng.randrange(26, 44), rng.randrange(26, 44)
    left, top, side = rng.randrange(4, 12), rng.randrange(4, 12), rng.randrange(8, 16)
    inside = [left <= x < left + side and top <= y < top + side
              for y in range(height) for x in range(width)]
    colours = bytes(170 * here + rng.randrange(70) for here in inside for _ in range(3))
    return jpeg(width, height, colours), mask_png(width, height, bytes(inside), palette=i % 2 == 0)


class Masks(LockstepTest):
    def pictures(self):
        directory = self.scratch / "squares"
        if directory.exists():
            return directory
        for split, first, count in (("train", 0, TRAIN), ("val", TRAIN, EVALUATION)):
            for kind in ("images", "masks"):
                (directory / split / kind).mkdir(parents=True)
            for i in range(first, first + count):
                image, mask = pair(i)
                (directory / split / "images" / f"{i}.jpg").write_bytes(image)
                (directory / split / "masks" / f"{i}.png").write_bytes(mask)
        return directory

    def job_of(self, directory, targets=("masks",), transforms=(), **train):
        path = self.scratch / "unet.pt2"
        shutil.copy(PROGRAM, path)
        words = transforms or ["random_resized_crop=24", "flip", "flip_vertical", "pad_crop=3",
                               "rotate=20", "brightness=0.2", "normalize"]
        return self.job(str(directory), model={"name": "exported", "path": str(path),
                                               "predict_path": str(PREDICT)},
                        data={"train": {"path": str(directory)}, "targets": list(targets),
                              "transforms": list(words)},
                        train={"global_batch": BATCH, "slots": 4, "epochs": EPOCHS,
                               "eval_batch": 10, **train},
                        optimizer={"name": "adamw", "lr": 0.01},
                        checkpoint={"every_steps": 10, "keep": 2})

    def test_worlds_a_death_and_a_resume_give_the_same_and_replay_agrees(self):
        job = self.job_of(self.pictures())
        one = self.finish(job, "--workers", 1, name="one")
        history = one.history()
        self.assertEqual(len(history), STEPS)
        dice = one.summary()["eval_metrics"]["dice"]
        self.assertGreater(dice, 0.6, "it finds the squares")
        rest = self.goes_on_in_another_world(job, one, death=10, stop=25)
        self.succeed("replay", rest.run_dir, "--step", 31)

    def test_members_of_webdataset(self):
        path = self.scratch / "shards"
        path.mkdir()
        for split, first, count in (("train", 0, TRAIN), ("val", TRAIN, EVALUATION)):
            with tarfile.open(path / f"{split}-0.tar", "w") as archive:
                for i in range(first, first + count):
                    for ending, content in zip((".jpg", ".mask.png"), pair(i)):
                        (self.scratch / "member").write_bytes(content)
                        archive.add(self.scratch / "member", f"{i}{ending}")
        job = self.job_of(path, targets=("mask.png",), epochs=2)
        self.assert_same_result(self.finish(job, "--workers", 2, name="two"),
                                self.finish(job, "--workers", 1, name="one"))

    def maps(self, place, data, code=0):
        """The maps that predict writes, one for each picture, and what it says."""
        out = self.scratch / "maps.npy"
        out.unlink(missing_ok=True)
        got, said = self.outcome("predict", place, data, "--out", out)
        self.assertEqual(got, code, said)
        kind, _, values = read_npy(out)
        self.assertEqual(kind, "|u1")
        return [bytes(values[i:i + SIDE * SIDE]) for i in range(0, len(values), SIDE * SIDE)], said

    def test_pictures_without_masks_are_predicted(self):
        data = self.pictures()
        run = self.finish(self.job_of(data, epochs=6), "--workers", 1)
        wanted, _ = self.maps(run.run_dir, data)
        self.assertEqual(len(wanted), EVALUATION)
        self.assertEqual(set(b"".join(wanted)), {0, 1})
        exported = self.scratch / "exported"
        self.succeed("export", "model", run.run_dir, exported)
        bare = self.scratch / "bare"
        shutil.copytree(data / "val/images", bare / "images")
        pictures = bare / "images"
        for place in (run.run_dir, exported):
            for path in (bare, pictures):
                self.assertEqual(self.maps(place, path)[0], wanted, path)
            self.assertEqual(self.maps(place, pictures / f"{TRAIN + 3}.jpg")[0], [wanted[
                sorted(p.name for p in pictures.iterdir()).index(f"{TRAIN + 3}.jpg")]])
        self.assert_broken_pictures_are_named(run.run_dir, pictures, wanted)
        self.assert_fails(("predict", run.run_dir, self.scratch / "none.jpg"), 66, "none.jpg")

    def assert_broken_pictures_are_named(self, place, pictures, wanted):
        """One that is cut, one that is no picture, and one that is gone."""
        names = sorted(path.name for path in pictures.iterdir())
        cut = pictures / names[4]
        cut.write_bytes(cut.read_bytes()[:400])
        maps, said = self.maps(place, pictures, code=65)
        self.assertEqual(maps, [one for i, one in enumerate(wanted) if i != 4])
        self.assertEqual(lacking(said, names=[cut]), [], said)
        (pictures / names[7]).write_bytes(b"no picture at all")
        (pictures / names[9]).unlink()
        (pictures / names[9]).symlink_to(self.scratch / "gone.jpg")
        maps, said = self.maps(place, pictures, code=65)
        self.assertEqual(maps, [one for i, one in enumerate(wanted) if i not in (4, 7, 9)])
        self.assertEqual(lacking(said, names=[cut, pictures / names[7], pictures / names[9]]), [],
                         said)
        self.assertNotIn("unlabelled", said)

    def test_inspect_shows_the_masks(self):
        said = self.succeed("data", "inspect", self.pictures(), "--targets", "masks")
        self.assertEqual(lacking(said, names=["image_mask", "masks (uint8 224x224)"]), [], said)
        said = self.succeed("data", "verify", self.pictures(), "--targets", "masks")
        (self.pictures() / "train/masks/3.png").write_bytes(b"\x89PNG")
        self.assert_fails(("data", "verify", self.pictures(), "--targets", "masks"), 65, "3.png")

    def assert_fails(self, words, code, *names):
        got, text = self.outcome(*words)
        self.assertEqual(got, code, text)
        self.assertEqual(lacking(text, names=names), [], text)

    def test_bad_data_and_bad_jobs_are_refused_by_name(self):
        good = self.pictures()
        run = ("--run-dir", self.scratch / "refused", "--workers", 1)
        for name, content, says in (
                ("5.png", None, ["5.jpg", "an image without a mask"]),
                ("5.png", pair(5)[0], ["5.png", "JPEG"]),
                ("5.png", png(30, 30, bytes(2700)), ["5.png", "colours"]),
                ("5.png", mask_png(7, 7, bytes(49)), ["5.png", "7 x 7", "5.jpg"]),
                ("no.png", mask_png(7, 7, bytes(49)), ["no.png", "a mask without an image"])):
            bad = self.scratch / "bad"
            shutil.rmtree(bad, ignore_errors=True)
            shutil.copytree(good, bad)
            path = bad / "train/masks" / name
            path.unlink() if content is None else path.write_bytes(content)
            with self.subTest(says=says):
                self.assert_fails(("run", self.job_of(bad), *run), 65, *says)
        for changed, says in (({"transforms": ["random_resized_crop=24", "mixup"]}, ["mixup"]),
                              ({"targets": ["labels"]}, ["labels", "masks"])):
            with self.subTest(says=says):
                code, text = self.outcome("run", self.job_of(good, **changed), *run)
                self.assertIn(code, (64, 66), text)
                self.assertEqual(lacking(text, names=says), [], text)
        self.assert_fails(("data", "pack", good, self.scratch / "packed", "--targets", "masks"), 64,
                          "packed")


if __name__ == "__main__":
    unittest.main()
