"""Every run keeps the meaning of labels and values with its weights: class names and the constants
of normalize stand in job.yaml, summary.json, the manifest and the safetensors file."""
import json
import struct
import unittest

from harness import LockstepTest, lockstep
from shard_files import crc32c

SIDE = 8
NAMES = ["apple\njob: worse", "pear", "žába"]  # sorted, as folders are


def bmp(red, green, blue):
    """An image of one colour, 24 bits, without compression."""
    pixels = bytes([blue, green, red]) * SIDE * SIDE
    info = struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + info + pixels


def fields_without(message, dropped):
    """A protobuf message without one of its fields, as from a program that does not know the
    field."""
    def varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at
    out, at = b"", 0
    while at < len(message):
        begin = at
        key, at = varint(at)
        value, at = varint(at)
        if key & 7 == 2:
            at += value
        if key >> 3 != dropped:
            out += message[begin:at]
    return out


def sealed(message):
    """Appends the CRC-32C that ends messages in a run directory, as field 1000."""
    return message + b"\xc5\x3e" + struct.pack("<I", crc32c(message))


class Legend(LockstepTest):
    def folders(self):
        root = self.scratch / "data"
        for label, name in enumerate(NAMES):
            (root / name).mkdir(parents=True)
            for i in range(4):
                (root / name / f"{i}.bmp").write_bytes(bmp(60 * label, 10 * i, 200))
        return root

    def job(self, data, more=""):
        file = self.scratch / "job.yaml"
        file.write_text(f"job: names\nmodel: {{name: mlp}}\ndata: {{train: {{path: {data}}}{more}}}\n"
                        "train: {global_batch: 4, slots: 1, epochs: 2}\n"
                        "optimizer: {name: sgd, lr: 0.01}\n")
        return file

    def ended(self, *args, code=0):
        run = self.start(*args, "--workers", 1)
        self.assertEqual(run.wait(), code, run.text())
        return run

    def manifest(self, run):
        newest = sorted((run.run_dir / "checkpoints").iterdir())[-1]
        return newest, json.loads((newest / "manifest.json").read_text())

    def metadata(self, checkpoint):
        with open(checkpoint / "model.safetensors", "rb") as f:
            size, = struct.unpack("<Q", f.read(8))
            return json.loads(f.read(size))["__metadata__"]

    def test_names_and_constants_are_in_every_place(self):
        data = self.folders()
        run = self.ended(self.job(data))
        seen = json.loads(lockstep("data", "inspect", data, "--json").stdout)["splits"][0]
        self.assertEqual(seen["class_names"], NAMES)
        constants = seen["normalize"]
        self.assertAlmostEqual(constants["mean"][2], 200 / 255, places=6)
        self.assertEqual(constants["std"][2], 1, "blue never changes")
        summary = run.summary()
        checkpoint, manifest = self.manifest(run)
        metadata = self.metadata(checkpoint)
        self.assertEqual(metadata["format"], "pt")
        for place in (summary, manifest["legend"],
                      {key: json.loads(value) for key, value in metadata.items() if key != "format"}):
            self.assertEqual(place["class_names"], NAMES)
            self.assertEqual(place["normalize"], constants)
        text = (run.run_dir / "job.yaml").read_text()
        for name in NAMES[1:]:
            self.assertIn(f'"{name}"', text)
        self.assertIn(str(constants["mean"][0]), text)
        again = lockstep("run", run.run_dir / "job.yaml", "--print-config")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("\njob: names\n", "\n" + again.stdout, "a name is no key")

    def test_a_table_keeps_the_words_of_its_labels(self):
        table = self.scratch / "t.csv"
        table.write_text("a,b,label\n" + "".join(
            f"{i},{i * i},{'ham' if i % 2 else 'spam'}\n" for i in range(8)))
        run = self.ended(self.job(table, ", transforms: []"))
        self.assertEqual(run.summary()["class_names"], ["ham", "spam"])
        self.assertNotIn("normalize", run.summary(), "it did not normalize")

    def test_a_run_whose_facts_lack_the_names_goes_on_and_gets_them(self):
        data = self.folders()
        job = self.job(data)
        first = self.ended(job)
        facts = first.run_dir / "facts.pb"
        whole = facts.read_bytes()
        content = whole[:-6]
        self.assertEqual(sealed(content), whole)
        facts.write_bytes(sealed(fields_without(content, 6)))
        self.assertLess(facts.stat().st_size, len(whole))
        run = self.ended("--resume", "train.epochs=3")
        self.assertEqual(run.summary()["class_names"], NAMES)
        self.assertEqual(facts.read_bytes(), whole)


if __name__ == "__main__":
    unittest.main()
