"""`lockstep export model --int8` with real processes: programs that torch.export.load opens, weights
of built-in models that their libraries load by load.py, the figures beside them, and refusals."""
import hashlib
import json
import shutil
import struct
import subprocess
import unittest

from export_test import BLOCK, GPT2, IMAGES, LIBRARIES, TOKENS, ExportTest
from harness import BIN, ROOT, lockstep, synthetic_dataset
from preloaded import run_code
from reference_runs import ReferenceTest
from weight_files import newest_weights, tensors_in

FORMS = ("dynamic", "weights")

# Prints for each pair of directories how far the logits of the 8-bit program are from the logits of
# the float program, on random samples, for several batch sizes.
COMPARE = """
import sys, torch
def compare(floats, bits):
    torch.manual_seed(3)
    names = [name for name, tensor in bits.state_dict.items() if tensor.dtype == torch.int8]
    assert names and not any(name in floats.state_dict for name in names), names
    (wanted_input,) = [spec for spec in floats.graph.nodes
                       if spec.name in floats.graph_signature.user_inputs]
    value = wanted_input.meta["val"]
    for batch in (1, 2, 7):
        shape = (batch, *map(int, value.shape[1:]))
        x = torch.randint(0, 20, shape) if value.dtype == torch.int64 else torch.randn(shape)
        with torch.no_grad():
            wanted, found = floats.module()(x), bits.module()(x)
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        yield (found - wanted).abs().max().item() / wanted.abs().max().item()
programs = [torch.export.load(f"{path}/model.pt2") for path in sys.argv[1:]]
for pair in zip(programs[::2], programs[1::2]):
    print(max(compare(*pair)))
"""
# The numbers of 8-bit parts of the models.
PARTS = {"mlp": {"linear": 3, "embeddings": 0, "made_floats": 0},
         "tied_lm": {"linear": 3, "embeddings": 2, "made_floats": 0},
         "gpt2": {"linear": 9, "embeddings": 2, "made_floats": 0}}


class Int8Test(ExportTest):
    def scores(self, place, *args):
        return json.loads(self.printed("eval", place, *args, "--json"))

    def assert_measured(self, facts, run, rows=2):
        """Checks that the figures are of the whole evaluation data, and that the checkpoint has the
        run's."""
        measured = facts["measured"]
        self.assertNotIn("why_not", measured)
        self.assertEqual(measured["samples"], measured["of"])
        before, *_, after = measured["models"]
        self.assertEqual(len(measured["models"]), rows)
        self.assertEqual(before["loss"], run.summary()["eval_loss"])
        self.assertEqual(before["accuracy"], run.summary()["eval_accuracy"])
        self.assertGreater(min(row["samples_per_second"] for row in measured["models"]), 0)
        return before, after

    def assert_figures_on_page(self, target, *models):
        page = (target / "README.md").read_text()
        for model in models:
            self.assertIn(f"| {model['file_bytes']} | {model['loss']:.4f} |", page)
        return page


class Programs(ReferenceTest, Int8Test):
    """Programs of PyTorch and transformers: linear, addmm, embeddings, tied weights, convolutions."""
    MODELS = ("mlp", "tied_lm", "vit", "unet", "gpt2")

    def test_torch_runs_them_and_finds_nearly_the_same_logits(self):
        pairs = {}
        for name in self.MODELS:
            run = self.finish(self.job_of(name), "--workers", 1, name=name)
            floats, _ = self.export(run, name=f"{name}-floats")
            for form in FORMS:
                with self.subTest(model=name, form=form):
                    bits, facts = self.export(run, f"--int8={form}", name=f"{name}-{form}")
                    pairs[name, form] = floats, bits
                    self.assert_told(name, form, facts)
                    before, after = facts["measured"]["models"]
                    self.assertEqual(before["file_bytes"], (floats / "model.pt2").stat().st_size)
                    self.assertEqual(after["file_bytes"], (bits / "model.pt2").stat().st_size)
                    if name == "mlp":
                        self.assertLess(after["file_bytes"], 0.32 * before["file_bytes"])
                    if name not in ("tied_lm", "gpt2"):
                        continue  # their few evaluation images do not show all classes
                    before, after = self.assert_measured(facts, run)
                    self.assert_figures_on_page(bits, before, after)
                    self.assertAlmostEqual(after["loss"], before["loss"],
                                           delta=0.02 * before["loss"])
        self.compare(pairs)

    def assert_told(self, name, form, facts):
        self.assertEqual(set(facts["files"]), {"model.pt2"})
        self.assertEqual(facts["int8"]["form"], form)
        for part, count in PARTS.get(name, {}).items():
            self.assertEqual(facts["int8"][part], count, part)

    def compare(self, pairs):
        paths = [path for pair in pairs.values() for path in pair]
        words = ["-c", *map(str, paths)]
        done = run_code(LIBRARIES, f"import sys\nsys.argv = {words}\n{COMPARE}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for which, far in zip(pairs, map(float, done.stdout.split()), strict=True):
            with self.subTest(which):
                self.assertLess(far, 0.06)


class GoldenPrograms(Int8Test):
    """Programs in Lockstep's own interpreter, without torch."""

    def trained(self, name="convnet"):
        data = synthetic_dataset(self.scratch / "data", size=8, classes=10, evaluation=50)
        path = str(ROOT / f"tests/golden/exported/{name}.pt2")
        job = self.job(data, model={"name": "exported", "path": path},
                       data={"train": {"path": str(data)}, "eval": {"path": str(data)}},
                       train={"global_batch": 64, "slots": 4, "epochs": 3, "eval_batch": 20,
                              "ema": 0.9})
        return data, self.finish(job, "--workers", 2, name="first")

    def test_accuracy_stays_and_the_directory_predicts(self):
        data, run = self.trained()
        for form in FORMS:
            bits, facts = self.export(run, f"--int8={form}", name=form)
            before, after = self.assert_measured(facts, run)
            self.assertGreaterEqual(after["accuracy"], before["accuracy"] - 0.04)
            self.assertEqual(self.scores(bits, data)["accuracy"], after["accuracy"])
            rows = self.printed("predict", bits, data).splitlines()
            self.assertEqual(len(rows), 51)

    def test_average_and_zeros_go_into_8_bits_too(self):
        _, run = self.trained("mlp")
        target, facts = self.export(run, "--ema", "--prune", "0.5", "--int8")
        self.assert_measured(facts, run, rows=3)
        self.assertEqual([row["weights"] for row in facts["measured"]["models"]],
                         ["the checkpoint's", "averaged and pruned", "these in 8 bits"])
        page = self.assert_readme(target, run)
        self.assertIn("--ema --prune 0.5 --int8", page)
        self.assertNotIn("loss of the evaluation data", page)

    def test_pruning_alone_is_measured_too(self):
        _, run = self.trained("mlp")
        target, facts = self.export(run, "--prune", "0.9")
        before, after = self.assert_measured(facts, run)
        self.assertEqual(before["file_bytes"], after["file_bytes"])
        self.assertNotEqual(before["loss"], after["loss"])
        self.assert_figures_on_page(target, before, after)

    def test_without_the_data_the_page_says_why_there_are_no_figures(self):
        data, run = self.trained("mlp")
        shutil.rmtree(data)
        target, facts = self.export(run, "--int8")
        self.assertIn(str(data), facts["measured"]["why_not"])
        self.assertIn("were not measured", (target / "README.md").read_text())


class Builtins(Int8Test):
    def assert_8_bits_of(self, found, wanted, channel_dims):
        """Checks that each weight is its number times its channel's scale, to half a scale."""
        for name, (shape, content) in wanted.items():
            dim = channel_dims.get(name, 0)
            if len(shape) < 2:
                self.assertEqual(found[name], (shape, content), name)
                continue
            numbers_shape, numbers = found[name]
            scale_shape, scales = found[f"{name}_scale"]
            self.assertEqual(numbers_shape, shape)
            self.assertEqual(scale_shape, [n if d == dim else 1 for d, n in enumerate(shape)])
            numbers = struct.unpack(f"<{len(numbers)}b", numbers)
            scales = struct.unpack(f"<{len(scales) // 4}f", scales)
            floats = struct.unpack(f"<{len(content) // 4}f", content)
            inner = len(floats) // shape[0] if dim == 0 else 1
            for i, (number, value) in enumerate(zip(numbers, floats)):
                scale = scales[i // inner % len(scales)]
                self.assertLessEqual(abs(number * scale - value), 0.5001 * scale, name)
            self.assertIn(127, map(abs, numbers))

    def images(self, model, side=12):
        data = synthetic_dataset(self.scratch / f"data-{side}", train=60, evaluation=24, size=side)
        job = self.job(data, model=model, train={"global_batch": 20, "slots": 2, "epochs": 2})
        return data, self.finish(job, "--workers", 2, name="-".join(map(str, model.values())))

    def text(self):
        directory = self.scratch / "text"
        directory.mkdir()
        (directory / "train.txt").write_text("every slot of every rank, " * 200)
        (directory / "val.txt").write_text("every rank of every slot, " * 20)
        job = self.job(directory, model=GPT2, train={"global_batch": 20, "slots": 4, "epochs": 2})
        return directory, self.finish(job, "--workers", 2, name="gpt2")

    def test_numbers_and_scales_lie_in_the_file_and_lockstep_uses_them(self):
        data, run = self.images({"name": "cnn"})
        target, facts = self.export(run, "--int8")
        self.assertEqual(set(facts["files"]), {"model.int8.safetensors", "load.py"})
        found, metadata = tensors_in(target / "model.int8.safetensors")
        self.assertEqual(metadata, {"format": "pt"})
        self.assert_8_bits_of(found, tensors_in(newest_weights(run))[0], {})
        before, after = self.assert_measured(facts, run)
        self.assertLess(after["file_bytes"], 0.32 * before["file_bytes"])
        scores = self.scores(target, data)
        self.assertEqual(scores["loss"], after["loss"])
        self.assert_fails(lockstep("run", self.job(
            data, "again.json", model={"name": "cnn", "init": str(target)},
            train={"global_batch": 20, "slots": 2, "max_steps": 1})), 78, names="I8")

    def test_transformers_loads_gpt2_by_load_py(self):
        directory, run = self.text()
        target, facts = self.export(run, "--int8")
        floats, _ = self.export(run, name="floats")
        turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
        wanted, _ = tensors_in(floats / "model.safetensors")
        self.assert_8_bits_of(tensors_in(target / "model.int8.safetensors")[0], wanted,
                              {name: 1 for name in wanted if name.endswith(turned)})
        before, after = self.assert_measured(facts, run)
        self.assertAlmostEqual(after["loss"], before["loss"], delta=0.02 * before["loss"])
        words = ["generate", target, "--prompt", "every ", "--tokens", "5"]
        subprocess.run([BIN / "lockstep", *words], check=True, capture_output=True)  # any bytes
        loss = self.loss_in_library(target, TOKENS, DATA=str(directory / "val.txt"), BLOCK=BLOCK)
        self.assertAlmostEqual(loss, after["loss"], delta=1e-5 * loss)

    def test_torchvision_loads_resnets_by_load_py(self):
        for side, stem in ((12, "cifar"), (40, "imagenet")):
            data, run = self.images({"name": "resnet18", "stem": stem}, side)
            target, facts = self.export(run, "--int8", name=f"{stem}-bits")
            _, after = self.assert_measured(facts, run)
            with self.subTest(stem=stem):
                loss = self.loss_in_library(target, IMAGES, DATA=str(data))
                self.assertAlmostEqual(loss, after["loss"], delta=1e-5 * loss)


class Int8Refused(Int8Test):
    def test_scripts_and_wrong_words(self):
        data = synthetic_dataset(self.scratch / "data", classes=10)
        path = str(ROOT / "tests/golden/torchscript_images.pt")
        job = self.job(data, model={"name": "torchscript", "path": path},
                       train={"global_batch": 64, "slots": 4, "max_steps": 2})
        run = self.finish(job, "--workers", 1)
        target = self.scratch / "out"
        self.assert_fails(lockstep("export", "model", run.run_dir, target, "--int8"), 64,
                          names="TorchScript", advises="torch.export")
        self.assert_fails(lockstep("export", "model", run.run_dir, target, "--int8=fast"), 64,
                          names="fast")
        self.assertEqual(list(self.scratch.glob("out*")), [])

    def test_weights_that_are_not_finite(self):
        data = synthetic_dataset(self.scratch / "data")
        run = self.finish(self.job(data, train={"global_batch": 64, "slots": 4, "max_steps": 3}),
                          "--workers", 1)
        path = newest_weights(run)
        content = bytearray(path.read_bytes())
        begin = 8 + int.from_bytes(content[:8], "little")
        where = json.loads(content[8:begin])["fc1.weight"]["data_offsets"][0]
        content[begin + where:begin + where + 4] = struct.pack("<f", float("nan"))
        path.write_bytes(content)
        self.sign_again(path, content)
        target = self.scratch / "out"
        self.assert_fails(lockstep("export", "model", run.run_dir, target, "--int8"), 65,
                          names="fc1.weight", advises="--checkpoint STEP")
        self.assertEqual(list(self.scratch.glob("out*")), [])

    def sign_again(self, path, content):
        """Makes the checkpoint whole with the new content (comm/run/checkpoint/weights_hash.h)."""
        le64 = lambda n: n.to_bytes(8, "little")
        hashes = []
        whole = b"lockstep weights 1\n"
        for file in (path, path.with_name("optimizer.safetensors")):
            whole += b"optimizer 1\n" if hashes else b""
            for name, (shape, data) in sorted(tensors_in(file)[0].items()):
                whole += le64(len(name)) + name.encode() + le64(3) + b"F32" + le64(len(shape))
                whole += b"".join(map(le64, shape)) + le64(len(data)) + data
            hashes.append(hashlib.sha256(whole).hexdigest())
        manifest_path = path.with_name("manifest.json")
        manifest = json.loads(manifest_path.read_text())
        for entry in manifest["files"]:
            if entry["name"] == path.name:
                entry["sha256"] = hashlib.sha256(content).hexdigest()
        manifest["weights_sha256"], manifest["state_sha256"] = hashes
        manifest.pop("self_sha256")
        compact = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        manifest["self_sha256"] = hashlib.sha256(compact.encode()).hexdigest()
        manifest_path.write_text(json.dumps(manifest, sort_keys=True, indent=2) + "\n")


if __name__ == "__main__":
    unittest.main()
