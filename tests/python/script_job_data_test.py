"""The data that a script's job names: C++ loads them as for models of its own, so the losses are those
of such a model and of eager PyTorch, and the promises hold as in any run."""
import json
import os
import struct
import subprocess
import unittest
import zipfile

from array_files import channels_last, npy
from harness import lockstep
from image_files import images
import shard_files
from range_server import RangeServer
from script_runs import SCRIPTS, ScriptTest

TRAIN = SCRIPTS / "job_data.py"
STEPS = 10  # two epochs of 200 samples in steps of 48


class JobData(ScriptTest):
    def setUp(self):
        super().setUp()
        self.data, self.cache = self.scratch / "data", self.scratch / "cache"
        self.weights = self.scratch / "weights.safetensors"
        self.data.mkdir()
        for what, array in zip(("images", "labels"), channels_last(200)):
            (self.data / f"train_{what}.npy").write_bytes(array)
        self.keys = [f"data.train.path={self.data}", f"data.cache_dir={self.cache}"]

    def environment(self, env=None, slot_ms=None):
        """Without the proxies of the user who runs the tests."""
        env = {name: value for name, value in (env or os.environ).items()
               if not name.lower().endswith("_proxy")}
        return super().environment(env, slot_ms)

    def train_alone(self, script, *words, keys=None):
        settings = dict(key.split("=", 1) for key in keys or self.keys)
        return self.weights_alone(script, *words, **{
            key.upper().replace(".", "__"): value for key, value in settings.items()})

    def losses(self, run):
        found = [row["loss"] for row in run.history()]
        self.assertEqual(len(found), STEPS)
        return found

    def assert_close(self, losses, others):
        for a, b in zip(losses, others, strict=True):
            self.assertAlmostEqual(a, b, delta=1e-5 * b)

    def of_a_model_of_lockstep(self, name):
        """The job without a script, begun with the same weights."""
        job = self.job(self.data, f"{name}.json", seed=7,
                       model={"name": name, "init": str(self.weights)},
                       data={"train": {"path": str(self.data)}},
                       train={"global_batch": 48, "slots": 6, "epochs": 2},
                       optimizer={"name": "sgd", "lr": 0.05, "momentum": 0})
        return self.finish(job, "--workers", 1, name=name)

    def in_eager_pytorch(self, name):
        seen = lockstep("data", "inspect", self.data, "--json", "--cache-dir", self.cache)
        fingerprint = json.loads(seen.stdout)["splits"][0]["fingerprint"]
        return json.loads(subprocess.run(
            [self.python, SCRIPTS / "eager.py", name, self.data, fingerprint, self.weights,
             str(STEPS)], check=True, capture_output=True, text=True,
            env=self.environment()).stdout)

    def test_a_cnn_trains_as_lockstep_and_pytorch_do_in_any_world_and_through_a_kill(self):
        alone = self.train_alone(TRAIN, "cnn", self.weights)
        whole = self.start_script(TRAIN, ["cnn"], 1, name="whole", overrides=self.keys)
        self.assertEqual(whole.wait(), 0, whole.text()[-3000:])
        self.assertEqual(whole.summary()["weights_sha256"], alone)
        losses = self.losses(whole)
        self.assert_close(losses, self.losses(self.of_a_model_of_lockstep("cnn")))
        self.assert_close(losses, self.in_eager_pytorch("cnn"))

        self.take_ms(1000)
        killed = self.start_script(TRAIN, ["cnn", "", self.pace], 3, name="killed", overrides=self.keys)
        killed.wait_for_step(3)
        self.kill_and_go_on(killed, 1)
        self.take_ms(0)
        self.assertEqual(killed.wait(), 0, killed.text()[-3000:])
        self.assert_same_result(killed, whole)

    def test_an_mlp_trains_and_evaluates_as_lockstep_does(self):
        for what, array in zip(("images", "labels"), channels_last(70)):
            (self.data / f"test_{what}.npy").write_bytes(array)
        one, two = (self.start_script(TRAIN, ["mlp", self.weights, 0, "evaluate"], workers,
                                      name=f"w{workers}", overrides=[*self.keys, "train.eval_batch=16"])
                    for workers in (1, 2))
        for run in (one, two):
            self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_same_result(two, one)
        self.assertEqual(self.evals(two), self.evals(one))
        model = self.of_a_model_of_lockstep("mlp")
        self.assert_close(self.losses(one), self.losses(model))
        mine, theirs = self.evals(one), self.evals(model)
        self.assert_close([row["loss"] for row in mine], [row["loss"] for row in theirs])
        for key in ("step", "correct", "samples"):
            self.assertEqual([row[key] for row in mine], [row[key] for row in theirs])
        self.assertEqual([(row["step"], row["samples"]) for row in mine], [(5, 70), (10, 70)])

    def evals(self, run):
        return [json.loads(line) for line in (run.run_dir / "evals.jsonl").read_text().splitlines()]

    def test_a_mixture_with_samples_held_out_is_resumed_and_far_away_it_is_the_same(self):
        def keys(first, second):
            return [f"data.train.path={first}", f"data.cache_dir={self.cache}",
                    f"data.mix=[{{path: {second}, weight: 1}}]", "data.mix_weight=2",
                    "data.holdout=0.2", "train.epochs=3", "data.transforms=[resize=12, center_crop=12, normalize]"]

        shards = self.scratch / "shards"
        for name, pictures in (("a", 30), ("b", 12)):
            (shards / name).mkdir(parents=True)
            shard_files.tar(shards / name / "train-000.tar", list(images(pictures, 1)))
        self.take_ms(1000)
        near = keys(shards / "a", shards / "b")
        run = self.start_script(TRAIN, ["cnn", "", self.pace, "evaluate"], 2, overrides=near)
        run.wait_for_step(3)
        self.stop(run)
        self.take_ms(0)
        run = self.finish("--resume", "--workers", 1)
        self.audit(run)
        self.assertEqual([row["samples"] for row in self.evals(run)], 3 * [18], "a fifth of 90")
        with RangeServer(shards / "a") as a, RangeServer(shards / "b") as b:
            for server in (a, b):
                server.write_manifest()
            far = self.train_alone(TRAIN, "cnn", "", "0", "evaluate", keys=keys(a.url, b.url))
        self.assertEqual(run.summary()["weights_sha256"], far)

    def test_several_fields_and_tokens_come_as_the_job_names_them(self):
        numbers = list(range(40))
        with zipfile.ZipFile(self.data / "train.npz", "w") as file:
            for name, array in {
                    "image": npy("|u1", (40, 2, 2), bytes(n for n in numbers for _ in range(4))),
                    "number": npy("<i8", (40,), struct.pack("<40q", *numbers)),
                    "half": npy("<f4", (40, 2), struct.pack("<80f", *(
                        n / d for n in numbers for d in (2, 4)))),
                    "kind": npy("<i8", (40,), struct.pack("<40q", *(n % 3 for n in numbers))),
                    "weight": npy("<f4", (40,), struct.pack("<40f", *(n + 1 for n in numbers)))
                    }.items():
                file.writestr(f"{name}.npy", array)
        tokens = self.scratch / "tokens.npy"
        tokens.write_bytes(npy("<u2", (400,), struct.pack("<400H", *range(400))))
        cut = [f"data.train.path={tokens}", "data.train.format=tokens", "model.block=8"]
        for what, keys in (
                ("fields", [f"data.train.path={self.data}/train.npz", "data.inputs=[image, number]",
                            "data.targets=[half, kind]", "data.weight=weight",
                            "data.transforms=[]"]),
                ("tokens", cut),
                ("documents", [*cut, "data.documents=pack", "data.document_end=399"])):
            with self.subTest(what):
                self.train_alone(SCRIPTS / "job_fields.py", what,
                                 keys=[*keys, f"data.cache_dir={self.cache}"])


if __name__ == "__main__":
    unittest.main()
