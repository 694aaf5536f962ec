"""The examples of worker/MODELS.md and worker/USE.md at a small size: photos from torchvision's
resnet18 with a new last layer, GPT-2 in Hugging Face's format fine-tuned on text, and a GPT-2 of
characters that goes on with a text."""
import json
import unittest

from harness import ROOT, LockstepTest
from image_files import images
from tokenizer_test import MERGES, vocabulary
from weight_files import newest_weights, tensors_in

EXAMPLES = ROOT / "deploy/examples"
FROZEN = ("conv1.", "bn1.", "layer1.")


class Examples(LockstepTest):
    def photos(self):
        directory = self.scratch / "photos"
        for split, each, seed in (("train", 8, 1), ("val", 4, 2)):
            for name, _, content in images(each, seed):
                path = directory / split / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return directory

    def test_photos_from_a_resnet18_with_a_new_head(self):
        photos = self.photos()
        # In place of torchvision's: the same names and shapes, and more classes.
        other = self.scratch / "other"
        for i in range(5):
            for path in photos.glob("*/*/*"):
                target = other / path.parts[-3] / f"class{i}" / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
        small = ["data.transforms=[random_resized_crop=32,flip,normalize]", "train.global_batch=8"]
        first = self.finish(EXAMPLES / "photos_resnet18.yaml", f"data.train.path={other}",
                            "model.init=", "model.init_skip=[]",
                            "train.max_steps=2", *small, "--workers", 1, name="first")
        given = newest_weights(first)
        run = self.finish(EXAMPLES / "photos_resnet18.yaml", f"data.train.path={photos}",
                          f"model.init={given}", "train.max_steps=4", *small, "--workers", 2,
                          name="run")
        table = (run.run_dir / "logs/model-init.txt").read_text()
        self.assertRegex(table, r"(?m)^read +conv1\.weight +\[64, 3, 7, 7\] +F32 \[64, 3, 7, 7\]$")
        self.assertRegex(table, r"(?m)^skipped +fc\.weight ")
        before, after = tensors_in(given)[0], tensors_in(newest_weights(run))[0]
        for name, (_, content) in after.items():
            if name.startswith(FROZEN) and not name.rsplit(".", 1)[1].startswith(("running", "num")):
                self.assertEqual(content, before[name][1], name)
        self.assertNotEqual(after["layer4.0.conv1.weight"], before["layer4.0.conv1.weight"])
        self.succeed("export", "model", run.run_dir, self.scratch / "photos-model")
        facts = json.loads((self.scratch / "photos-model/lockstep.json").read_text())
        self.assertEqual(len(facts["class_names"]), facts["outputs"])

    def test_a_gpt2_in_hugging_faces_format_is_fine_tuned_on_text(self):
        text = self.scratch / "text"
        text.mkdir()
        for name, times in (("train.txt", 400), ("val.txt", 40)):
            (text / name).write_text("every slot of every rank sums the same. " * times)
        tokenizer = self.scratch / "tokenizer.json"
        tokenizer.write_text(json.dumps({
            "added_tokens": [{"id": 256 + len(MERGES), "content": "<|endoftext|>"}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
            "model": {"type": "BPE", "vocab": vocabulary(MERGES), "merges": MERGES}}))
        small = ["model.n_layer=2", "model.n_head=2", "model.n_embd=32", f"data.train.path={text}"]
        first = self.finish(EXAMPLES / "gpt2_finetune.yaml", *small, "model.block=32", "model.init=",
                            f"data.tokenizer={tokenizer}", "train.epochs=2", "optimizer.lr=0.01",
                            "--workers", 1, name="first")
        theirs = self.scratch / "gpt2"
        self.succeed("export", "model", first.run_dir, theirs)
        run = self.finish(EXAMPLES / "gpt2_finetune.yaml", *small, f"model.init={theirs}",
                          "model.block=16",  # fewer positions than the weights have
                          f"data.tokenizer={theirs / 'tokenizer.json'}", "--workers", 2, name="run")
        self.assertIn("read in part  wpe.weight",
                      (run.run_dir / "logs/model-init.txt").read_text())
        self.assertLess(run.history()[0]["loss"], first.history()[0]["loss"] - 1)
        said = self.succeed("export", "model", run.run_dir, self.scratch / "my-gpt2")
        self.assertRegex(said, r"^step-\d+-g1-m\d+ of \S+ is in \S+my-gpt2; ")
        self.assertEqual((self.scratch / "my-gpt2/tokenizer.json").read_bytes(),
                         tokenizer.read_bytes())

    def test_a_gpt2_of_characters_goes_on_with_a_text(self):
        text = self.scratch / "text"
        text.mkdir()
        for name, times in (("train.txt", 400), ("val.txt", 20)):
            (text / name).write_text("every slot of every rank sums the same. " * times)
        run = self.finish(EXAMPLES / "char_gpt.yaml", f"data.train.path={text}", "model.n_layer=2",
                          "model.n_embd=64", "train.epochs=40", "optimizer.lr=0.005",
                          "--workers", 2, name="chars")
        page = (ROOT / "worker/USE.md").read_text()
        likeliest = ["--prompt", "every ", "--temperature", 0, "--tokens", 39]
        said = self.succeed("generate", run.run_dir, *likeliest)
        self.assertIn(f"```\n{said}```", page)
        self.succeed("export", "model", run.run_dir, self.scratch / "chars-model")
        self.assertEqual(self.succeed("generate", self.scratch / "chars-model", *likeliest), said)


if __name__ == "__main__":
    unittest.main()
