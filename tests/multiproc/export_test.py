"""`lockstep export model` with real processes: weights with the names and layouts of the libraries
that load them, the files beside them, and their way back in (model.init). torch, torchvision and
transformers load the exported files and must find Lockstep's evaluation loss."""
import json
import pathlib
import re
import shutil
import struct
import unittest

from harness import ROOT, LockstepTest, installed, lockstep, synthetic_dataset
from preloaded import run_code
from weight_files import STILL, assert_same_weights, newest_weights, tensors_in, turned

BLOCK = 16
GPT2 = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK}
TURNED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
LIBRARIES = installed("models-python")

# Evaluation loss of images (IDX) with what lockstep.json says, by the net that README.md makes.
IMAGES = """
import json, pathlib, struct
facts = json.load(open("lockstep.json"))
def idx(name):
    data = pathlib.Path(DATA, name).read_bytes()
    dims = struct.unpack(">" + "I" * data[3], data[4:4 + 4 * data[3]])
    return torch.frombuffer(bytearray(data[4 + 4 * data[3]:]), dtype=torch.uint8).reshape(dims)
images, labels = idx("t10k-images-idx3-ubyte"), idx("t10k-labels-idx1-ubyte").long()
mean, std = facts["normalize"]["mean"][0], facts["normalize"]["std"][0]
x = ((images.float() / 255 - mean) / std).unsqueeze(1)
with torch.no_grad():
    print("loss", torch.nn.functional.cross_entropy(net(x), labels).item())
"""
TOKENS = """
import pathlib, torch
text = pathlib.Path(DATA).read_bytes()
n = (len(text) - 1) // BLOCK
x = torch.tensor(list(text[:n * BLOCK])).reshape(n, BLOCK)
y = torch.tensor(list(text[1:n * BLOCK + 1])).reshape(n, BLOCK)
net.eval()
with torch.no_grad():
    logits = net(x).logits
print("loss", torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()).item())
"""


class ExportTest(LockstepTest):
    def export(self, run, *args, name="out"):
        target = self.scratch / name
        said = self.succeed("export", "model", run.run_dir, *args, target)
        self.assertIn(str(target), said)
        facts = json.loads((target / "lockstep.json").read_text())
        self.assertEqual(sorted(p.name for p in target.iterdir()),
                         sorted({*facts["files"], "lockstep.json", "README.md"}))
        return target, facts

    def assert_readme(self, target, run):
        page = (target / "README.md").read_text()
        self.assertIn(f"lockstep export model {run.run_dir}", page)
        fingerprint = json.loads((target / "lockstep.json").read_text())["data"]["train_fingerprint"]
        self.assertIn(fingerprint, page)
        return page

    def loss_in_library(self, target, code, **names):
        if not LIBRARIES:
            self.skipTest("torchvision and transformers are not installed "
                          "(deploy/install_deps.sh --for tests): they loaded no weights")
        lines = re.search(r"```python\n(.*?)```", (target / "README.md").read_text(), re.S).group(1)
        given = "".join(f"{name} = {value!r}\n" for name, value in names.items())
        done = run_code(LIBRARIES, given + lines + code, target, ("torch", "torchvision"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return float(done.stdout.split()[-1])


class Gpt2(ExportTest):
    def trained(self):
        directory = self.scratch / "text"
        directory.mkdir()
        (directory / "train.txt").write_text("every slot of every rank, " * 200)
        (directory / "val.txt").write_text("every rank of every slot, " * 20)
        job = self.job(directory, model=GPT2, train={"global_batch": 20, "slots": 4, "epochs": 2},
                       checkpoint={"every_steps": 10})
        return directory, self.finish(job, "--workers", 2, name="first")

    def test_it_is_hugging_faces_directory_and_comes_back_in(self):
        directory, run = self.trained()
        target, facts = self.export(run)
        ours, _ = tensors_in(newest_weights(run))
        theirs, metadata = tensors_in(target / "model.safetensors")
        self.assertEqual(metadata, {"format": "pt"})
        self.assertEqual({name.removeprefix("transformer.") for name in theirs}, set(ours))
        for name, (shape, content) in ours.items():
            wanted = turned(shape, content) if name.endswith(TURNED) else (shape, content)
            self.assertEqual(theirs[f"transformer.{name}"], wanted, name)
        config = json.loads((target / "config.json").read_text())
        self.assertEqual((config["n_positions"], config["vocab_size"], config["n_head"]),
                         (BLOCK, 256, 2))
        self.assertEqual(config["activation_function"], "gelu_new")
        self.assertEqual((facts["step"], facts["input"]["block"]), (len(run.history()), BLOCK))
        self.assert_readme(target, run)
        job = self.job(directory, model={**GPT2, "init": str(target)}, optimizer=STILL,
                       train={"global_batch": 20, "slots": 4, "max_steps": 1})
        assert_same_weights(self, self.finish(job, "--workers", 1, name="again"), ours)

    def test_an_older_checkpoint_is_exported_by_its_step(self):
        _, run = self.trained()
        steps = sorted(int(p.name.split("-")[1])
                       for p in (run.run_dir / "checkpoints").glob("step-*"))
        _, facts = self.export(run, "--checkpoint", steps[0])
        self.assertEqual(facts["step"], steps[0])

    def test_from_pretrained_finds_the_same_evaluation_loss(self):
        directory, run = self.trained()
        target, _ = self.export(run)
        loss = self.loss_in_library(target, TOKENS, DATA=str(directory / "val.txt"), BLOCK=BLOCK)
        self.assertAlmostEqual(loss, run.summary()["eval_loss"], delta=1e-5)


class Images(ExportTest):
    def trained(self, side, stem, name="resnet18"):
        data = synthetic_dataset(self.scratch / "data", train=60, evaluation=24, size=side)
        job = self.job(data, model={"name": name, "stem": stem},
                       train={"global_batch": 20, "slots": 2, "epochs": 1})
        return data, self.finish(job, "--workers", 2, name=f"{name}-{stem}")

    def test_resnets_have_torchvisions_names_and_figures_beside_them(self):
        _, run = self.trained(12, "cifar")
        target, facts = self.export(run)
        tensors, _ = tensors_in(target / "model.safetensors")
        self.assertEqual(tensors, tensors_in(newest_weights(run))[0])
        self.assertIn("layer1.0.bn1.num_batches_tracked", tensors)
        self.assertEqual((facts["model"]["stem"], facts["outputs"], facts["input"]["channels"]),
                         ("cifar", 4, 1))
        self.assertEqual(len(facts["normalize"]["mean"]), 1)
        page = self.assert_readme(target, run)
        self.assertIn("net.maxpool = torch.nn.Identity()", page)
        self.assertIn(f"{run.summary()['eval_loss']:.4f}", page)

    def test_torchvision_loads_both_stems_strictly_and_finds_the_same_evaluation_loss(self):
        for side, stem, name in ((12, "cifar", "resnet18"), (40, "imagenet", "resnet18"),
                                 (40, "imagenet", "resnet50")):
            with self.subTest(stem=stem, model=name):
                data, run = self.trained(side, stem, name)
                target, _ = self.export(run, name=f"{name}-{stem}-model")
                loss = self.loss_in_library(target, IMAGES, DATA=str(data))
                wanted = run.summary()["eval_loss"]
                self.assertAlmostEqual(loss, wanted, delta=1e-5 * wanted)

    def program(self):
        data = synthetic_dataset(self.scratch / "data", size=8, classes=10, evaluation=50)
        path = str(ROOT / "tests/golden/exported/convnet.pt2")
        job = self.job(data, model={"name": "exported", "path": path},
                       data={"train": {"path": str(data)}, "eval": {"path": str(data)}},
                       train={"global_batch": 64, "slots": 4, "epochs": 1, "eval_batch": 50})
        return data, self.finish(job, "--workers", 2, name="first")

    def test_a_program_comes_out_for_training_with_the_trained_weights(self):
        data, run = self.program()
        target, facts = self.export(run)
        self.assertEqual(set(facts["files"]), {"model.pt2", "train.pt2"})
        self.assertNotEqual((target / "model.pt2").read_bytes(), (target / "train.pt2").read_bytes())
        job = self.job(data, model={"name": "exported", "path": str(target / "train.pt2")},
                       train={"global_batch": 60, "slots": 4, "max_steps": 1, "eval_batch": 50},
                       optimizer=STILL)
        again = self.finish(job, "--workers", 1, name="again")
        wanted, _ = tensors_in(newest_weights(run))
        found, _ = tensors_in(newest_weights(again))
        statistics = {name: found[name] for name in wanted if "running" in name}
        assert_same_weights(self, again, {**wanted, **statistics})

    def test_torch_loads_the_program_for_evaluation_with_the_same_loss(self):
        data, run = self.program()
        target, _ = self.export(run)
        loss = self.loss_in_library(target, IMAGES, DATA=str(data))
        self.assertAlmostEqual(loss, run.summary()["eval_loss"], delta=1e-5)

    def script(self):
        data = synthetic_dataset(self.scratch / "data", classes=10)
        path = str(ROOT / "tests/golden/torchscript_images.pt")
        job = self.job(data, model={"name": "torchscript", "path": path},
                       train={"global_batch": 64, "slots": 4, "epochs": 1})
        return data, self.finish(job, "--workers", 2, name="first")

    def test_a_script_comes_out_with_the_trained_weights(self):
        data, run = self.script()
        target, _ = self.export(run)
        job = self.job(data, model={"name": "torchscript", "path": str(target / "model.pt")},
                       train={"global_batch": 60, "slots": 4, "max_steps": 1}, optimizer=STILL)
        again = self.finish(job, "--workers", 1, name="again")
        wanted, _ = tensors_in(newest_weights(run))
        found, _ = tensors_in(newest_weights(again))
        statistics = {name: wanted[name] for name in wanted
                      if "running" in name or name == "level"}  # change in a step
        self.assertTrue(statistics)
        assert_same_weights(self, again, {**wanted, **{n: found[n] for n in statistics}})

    def test_torch_loads_the_script_in_evaluation_mode_with_the_same_loss(self):
        data, run = self.script()
        target, _ = self.export(run)
        loss = self.loss_in_library(target, "assert not net.training\n" + IMAGES, DATA=str(data))
        self.assertAlmostEqual(loss, run.summary()["eval_loss"], delta=1e-5)


class Best(ExportTest):
    def test_the_best_checkpoint_is_the_one_that_the_run_kept(self):
        data = synthetic_dataset(self.scratch / "data")
        labels = data / "t10k-labels-idx1-ubyte"  # others, so each evaluation is worse
        content = labels.read_bytes()
        labels.write_bytes(content[:8] + bytes((label + 1) % 4 for label in content[8:]))
        run = self.finish(self.job(data, eval={"every_steps": 5},
                                   checkpoint={"every_steps": 10, "best": "loss"},
                                   train={"global_batch": 64, "slots": 4, "max_steps": 40}),
                          "--workers", 1)
        target, facts = self.export(run, "--checkpoint", "best")
        self.assertEqual(facts["step"], run.summary()["best_checkpoint"]["step"])
        self.assertLess(facts["step"], 40)
        figure = f"| {run.summary()['eval_loss']:.4f} |"
        self.assertNotIn(figure, self.assert_readme(target, run), "that of the last step")
        last, _ = self.export(run, name="last")
        self.assertIn(figure, self.assert_readme(last, run))


class Refused(ExportTest):
    def test_a_program_that_has_changed_is_refused_and_leaves_nothing(self):
        programs = ROOT / "tests/golden/exported"
        path = pathlib.Path(shutil.copy(programs / "convnet.pt2", self.scratch / "net.pt2"))
        data = synthetic_dataset(self.scratch / "data", size=8, classes=10, evaluation=50)
        job = self.job(data, model={"name": "exported", "path": str(path)},
                       data={"train": {"path": str(data)}, "eval": {"path": str(data)}},
                       train={"global_batch": 64, "slots": 4, "max_steps": 2, "eval_batch": 50})
        run = self.finish(job, "--workers", 1)
        shutil.copy(programs / "mlp.pt2", path)
        target = self.scratch / "out"
        self.assert_fails(lockstep("export", "model", run.run_dir, target), 64, names=path)
        self.assertEqual(list(self.scratch.glob("out*")), [])

    def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(self):
        data = synthetic_dataset(self.scratch / "data")
        run = self.finish(self.job(data, train={"global_batch": 64, "slots": 4, "max_steps": 3}),
                          "--workers", 1)
        target = self.scratch / "out"

        def refused(code, *args, **more):
            self.assert_fails(lockstep("export", "model", *args), code, **more)

        refused(66, self.scratch / "nowhere", target, names=self.scratch / "nowhere")
        refused(64, run.run_dir, target, "--checkpoint", 7, names=[7, 3])
        refused(64, run.run_dir, target, "--checkpoint", "frist", names="frist")
        refused(64, run.run_dir, target, "--checkpoint", "best", names="checkpoint.best")
        target.mkdir()
        (target / "mine.txt").write_text("keep me")
        refused(64, run.run_dir, target, names=target)
        (target / "mine.txt").unlink()
        path = newest_weights(run)
        good = path.read_bytes()
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        refused(65, run.run_dir, target, names=path)
        path.write_bytes(good)
        self.assertEqual(sorted(p.name for p in self.scratch.glob("out*")), ["out"])
        self.assertEqual(list(target.iterdir()), [])
        self.succeed("export", "model", run.run_dir, target)  # an empty directory is good



class ChosenWeights(ExportTest):
    """--ema and --prune."""

    def floats(self, path):
        tensors, _ = tensors_in(path)
        return {name: struct.unpack(f"<{len(content) // 4}f", content)
                for name, (_, content) in tensors.items()}

    def trained(self, **train):
        data = synthetic_dataset(self.scratch / "data", classes=10)
        return self.finish(self.job(data, model={"name": "cnn"},
                                    train={"global_batch": 64, "slots": 4, "epochs": 1, **train}),
                           "--workers", 1)

    def test_the_average_and_a_share_of_zeros(self):
        run = self.trained(ema=0.9)
        newest = newest_weights(run)
        averaged, facts = self.export(run, "--ema", name="averaged")
        self.assertTrue(facts["average"])
        self.assertIn("--ema", self.assert_readme(averaged, run))
        stored = self.floats(newest.with_name("optimizer.safetensors"))
        written = self.floats(averaged / "model.safetensors")
        self.assertEqual(written, {name: stored[f"ema.{name}"] for name in written})
        self.assertNotEqual(written, self.floats(newest))

        pruned, facts = self.export(run, "--prune", "0.5", name="pruned")
        self.assertEqual(facts["pruned"], 0.5)
        page = self.assert_readme(pruned, run)
        self.assertIn("--prune 0.5", page)
        self.assertNotIn("loss of the evaluation data", page)
        weights = self.floats(newest)
        for name, values in self.floats(pruned / "model.safetensors").items():
            zeros = [i for i, value in enumerate(values) if value == 0]
            if name.endswith("bias"):
                self.assertEqual(values, weights[name])
                continue
            self.assertEqual(len(zeros), len(values) // 2, name)
            least = sorted(map(abs, weights[name]))[len(values) // 2 - 1]
            self.assertLessEqual(max(abs(weights[name][i]) for i in zeros), least)
            self.assertEqual([values[i] for i in range(len(values)) if i not in set(zeros)],
                             [weights[name][i] for i in range(len(values)) if i not in set(zeros)])

    def test_what_is_not_there_is_told(self):
        run = self.trained(max_steps=2)
        for args, code, words in ((("--ema",), 64, "train.ema"), (("--prune", "1"), 64, "--prune")):
            refused = lockstep("export", "model", run.run_dir, *args, self.scratch / "none")
            self.assert_fails(refused, code, names=words)
            self.assertEqual(list(self.scratch.glob("none*")), [])


if __name__ == "__main__":
    unittest.main()
