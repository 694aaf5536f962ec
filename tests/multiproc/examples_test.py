"""The examples of worker/MODELS.md and worker/USE.md at a small size: photos from torchvision's
resnet18 with a new last layer, GPT-2 in Hugging Face's format fine-tuned on text, and a GPT-2 of
characters that goes on with a text."""
import json
import os
import re
import subprocess
import unittest

from harness import BIN, DEADLINE_S, ROOT, LockstepTest, installed
from image_files import write_images
from preloaded import run_code
from tokenizer_test import MERGES, vocabulary
from weight_files import newest_weights, tensors_in

EXAMPLES = ROOT / "deploy/examples"
FROZEN = ("conv1.", "bn1.", "layer1.")
PYTHON = installed("models-python")


class ExamplesTest(LockstepTest):
    def photos(self):
        directory = self.scratch / "photos"
        for split, each, seed in (("train", 8, 1), ("val", 4, 2)):
            write_images(directory / split, each, seed)
        return directory

    def text(self):
        directory = self.scratch / "text"
        directory.mkdir()
        for name, times in (("train.txt", 400), ("val.txt", 40)):
            (directory / name).write_text("every slot of every rank sums the same. " * times)
        return directory

    def write_tokenizer(self, path):
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
        path.write_text(json.dumps({
            "added_tokens": [{"id": 256 + len(MERGES), "content": "<|endoftext|>", "special": True,
                              "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False}],
            "pre_tokenizer": byte_level, "decoder": byte_level,
            "model": {"type": "BPE", "vocab": vocabulary(MERGES), "merges": MERGES}}))
        return path


class Examples(ExamplesTest):
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
        text = self.text()
        tokenizer = self.write_tokenizer(self.scratch / "tokenizer.json")
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
        said = self.printed("generate", run.run_dir, *likeliest)
        self.assertIn(f"```\n{said}```", page)
        self.succeed("export", "model", run.run_dir, self.scratch / "chars-model")
        self.assertEqual(self.printed("generate", self.scratch / "chars-model", *likeliest), said)


# PyTorch's side of the photos: README.md's net, and images as torchvision prepares them.
PHOTO_LOSS = """
import json
from torchvision import transforms as t
from torchvision.datasets import ImageFolder
facts = json.load(open("lockstep.json"))
ready = t.Compose([t.Resize(32), t.CenterCrop(32), t.ToTensor(),
                   t.Normalize(facts["normalize"]["mean"], facts["normalize"]["std"])])
photos = ImageFolder("../photos/val", ready)
assert photos.classes == facts["class_names"], (photos.classes, facts["class_names"])
x, y = zip(*photos)
with torch.no_grad():
    print("loss", torch.nn.functional.cross_entropy(net(torch.stack(x)), torch.tensor(y)).item())
"""
TEXT_LOSS = """
import torch
from transformers import AutoTokenizer, GPT2LMHeadModel
net = GPT2LMHeadModel.from_pretrained("my-gpt2").eval()
ids = torch.tensor(AutoTokenizer.from_pretrained("my-gpt2").encode(open("text/val.txt").read()))
n = (len(ids) - 1) // 32
x, y = (ids[i:i + n * 32].view(n, 32) for i in (0, 1))
with torch.no_grad():
    logits = net(x).logits
    print("loss", torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()).item())
"""


@unittest.skipUnless(PYTHON, "torchvision and transformers are not installed "
                             "(deploy/install_deps.sh --for tests)")
class Page(ExamplesTest):
    """The lines of the page as they stand there. Variables make the jobs small."""

    def lines(self, title):
        page = (ROOT / "worker/MODELS.md").read_text()
        block = re.search(rf"(?ms)\*\*{re.escape(title)}\*\*.*?^```\n(.*?)^```$", page).group(1)
        self.assertLessEqual(len(block.splitlines()), 10)
        return block

    def type(self, lines, **variables):
        """The output of a shell that runs the lines in a directory with deploy/, as in the
        clone."""
        programs = self.scratch / "bin"
        programs.mkdir()
        (programs / "python3").symlink_to(PYTHON)
        (self.scratch / "deploy").symlink_to(ROOT / "deploy")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines], cwd=self.scratch, text=True,
            capture_output=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": f"{programs}:{BIN}:{os.environ['PATH']}", **variables})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def loss(self, code, directory):
        return float(self.run_code(code, directory).split()[-1])

    def run_code(self, code, directory):
        done = run_code(PYTHON, code, directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def eval_loss(self, run):
        return json.loads((self.scratch / "runs" / run / "summary.json").read_text())["eval_loss"]

    def test_photos_from_torchvision_and_back(self):
        self.photos()
        # torchvision looks here for weights that it has downloaded.
        cache = self.scratch / "torch/hub/checkpoints"
        cache.mkdir(parents=True)
        self.run_code(f"""
import torch, torchvision as t
torch.manual_seed(1)
name = t.models.ResNet18_Weights.DEFAULT.url.rsplit("/")[-1]
torch.save(t.models.resnet18().state_dict(), {str(cache)!r} + "/" + name)""", cache)
        self.type(self.lines("Photos from torchvision's resnet18."),
                  TORCH_HOME=str(self.scratch / "torch"), LOCKSTEP_TRAIN__GLOBAL_BATCH="8",
                  LOCKSTEP_TRAIN__MAX_STEPS="4",
                  LOCKSTEP_DATA__TRANSFORMS="[resize=32,center_crop=32,flip,normalize]")
        table = (self.scratch / "runs/photos/logs/model-init.txt").read_text()
        self.assertRegex(table, r"\Aread +conv1\.weight +\[64, 3, 7, 7\] +F32 \[64, 3, 7, 7\]\n")
        loss = self.loss((self.scratch / "load.py").read_text() + PHOTO_LOSS,
                         self.scratch / "photos-model")
        self.assertAlmostEqual(loss, self.eval_loss("photos"), delta=1e-5)

    def test_gpt2_from_hugging_face_and_back(self):
        self.text()
        download, _, lines = self.lines("GPT-2 fine-tuned on text.").partition("\n")
        self.assertIn("local_dir='gpt2', allow_patterns=['model.safetensors', 'tokenizer.json']",
                      download)
        self.run_code(f"""
import torch
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(1)
GPT2LMHeadModel(GPT2Config(vocab_size={257 + len(MERGES)}, n_positions=64, n_embd=32, n_layer=2,
                           n_head=2)).save_pretrained({str(self.scratch / 'gpt2')!r})""", self.scratch)
        self.write_tokenizer(self.scratch / "gpt2/tokenizer.json")
        said = self.type(lines, LOCKSTEP_MODEL__N_LAYER="2", LOCKSTEP_MODEL__N_HEAD="2",
                         LOCKSTEP_MODEL__N_EMBD="32", LOCKSTEP_MODEL__BLOCK="32")
        self.assertRegex(said, r"(?m)^step-\d+-g1-m\d+ of runs/mine is in my-gpt2; my-gpt2/README")
        self.assertRegex(said, r"\[\{'generated_text': ['\"]The")
        loss = self.loss(TEXT_LOSS, self.scratch)
        self.assertAlmostEqual(loss, self.eval_loss("mine"), delta=1e-5)


if __name__ == "__main__":
    unittest.main()
