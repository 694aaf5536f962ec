"""Weights to start from (model.init) with real processes: what comes in is what trains, for any
number of workers, through a death, a resume and a replay; and what does not fit."""
import os
import signal
import unittest

from array_files import safetensors_file
from harness import LockstepTest, synthetic_dataset
from range_server import RangeServer
from weight_files import STILL, assert_same_weights, newest_weights, tensors_in, turned

BLOCK = 16
GPT2 = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK}
TURNED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


class Weights(LockstepTest):
    def setUp(self):
        super().setUp()
        self.data = synthetic_dataset(self.scratch / "data", classes=10)

    def trained(self):
        """A run, and the file with its weights."""
        run = self.finish(self.job(self.data, name="first.yaml", model={"name": "cnn"},
                                   train={"global_batch": 64, "slots": 4, "epochs": 2}),
                          "--workers", 1, name="first")
        return run, newest_weights(run)

    def test_what_comes_in_trains_alike_for_any_workers_a_death_a_resume_and_a_replay(self):
        _, weights = self.trained()
        init = self.scratch / "init.safetensors"
        init.write_bytes(weights.read_bytes())
        train = {"global_batch": 64, "slots": 4, "epochs": 20}
        job = self.job(self.data, model={"name": "cnn", "init": "init.safetensors"}, train=train,
                       checkpoint={"every_steps": 20})
        one = self.finish(job, "--workers", 1, name="one")
        chance = self.finish(self.job(self.data, name="chance.yaml", model={"name": "cnn"},
                                      train={**train, "epochs": 1}), "--workers", 1, name="chance")
        self.assertLess(one.history()[0]["loss"], chance.history()[0]["loss"])
        table = (one.run_dir / "logs/model-init.txt").read_text()
        self.assertRegex(table, r"read +conv1\.weight +\[.*\] +F32 \[")
        self.succeed("replay", one.run_dir, "--step", 3)  # from step 0

        killed = self.start(job, "--workers", 3, name="killed", slot_ms=10)
        killed.wait_for_step(2)
        os.kill(killed.worker(1), signal.SIGKILL)
        killed.wait_for_step(45)
        killed.process.send_signal(signal.SIGINT)
        self.assertEqual(killed.wait(), 75, killed.text()[-2000:])
        init.unlink()  # only a state of step 0 needs it
        self.assert_same_result(self.finish(job, "--resume", "--workers", 2, name="killed"), one)
        other = self.scratch / "other.safetensors"
        other.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
        self.assert_fails(self.start(job, "--resume", f"model.init={other}", name="killed"), 64,
                          names=other, says="SHA-256")

    def test_weights_at_a_url_come_through_the_cache(self):
        first, weights = self.trained()
        far = self.scratch / "far"
        far.mkdir()
        (far / "model.safetensors").write_bytes(weights.read_bytes())
        with RangeServer(far) as server:
            job = self.job(self.data, model={"name": "cnn", "init": f"{server.url}/model.safetensors"},
                           data={"train": {"path": str(self.data)},
                                 "cache_dir": str(self.scratch / "cache")},
                           train={"global_batch": 60, "slots": 4, "max_steps": 1}, optimizer=STILL)
            run = self.finish(job, "--workers", 2)
        assert_same_weights(self, run, tensors_in(newest_weights(first))[0])

    def test_a_gpt2_comes_in_both_layouts(self):
        text = self.scratch / "train.txt"
        text.write_text("every slot of every rank, " * 200)
        train = {"global_batch": 20, "slots": 4, "max_steps": 2}
        first = self.finish(self.job(text, name="first.yaml", model=GPT2, train=train), "--workers", 1,
                            name="first")
        path = newest_weights(first)
        wanted, _ = tensors_in(path)
        theirs = {}
        for name, (shape, content) in wanted.items():
            if name.endswith(TURNED):
                shape, content = turned(shape, content)
            theirs[f"transformer.{name}"] = ("F32", shape, content)
        other = self.scratch / "hugging"
        other.mkdir()
        (other / "model.safetensors").write_bytes(safetensors_file(theirs))
        for name, place in (("ours", path), ("theirs", other)):
            job = self.job(text, model={**GPT2, "init": str(place)}, optimizer=STILL,
                           train={**train, "max_steps": 1})
            assert_same_weights(self, self.finish(job, "--workers", 2, name=name), wanted)

    def test_another_head_starts_from_the_seed_if_it_is_skipped(self):
        _, weights = self.trained()
        few = synthetic_dataset(self.scratch / "few", classes=4)

        def job(**model):
            return self.job(few, model={"name": "cnn", "init": str(weights), **model},
                            train={"global_batch": 60, "slots": 4, "max_steps": 1})

        refused = self.start(job(), "--workers", 2, name="refused")
        self.assert_fails(refused, 78, names=["fc2.weight", "fc2.bias"], advises="model.init_skip")
        self.assertFalse(refused.run_dir.exists(), "nothing was done in it")
        self.finish(job(init_skip=["fc2.*"]), "--workers", 2, name="skipped")
        self.assert_fails(self.start(job(init_skip=["fc2.*", "head.*"]), name="nothing"), 64,
                          names=["model.init_skip", "head.*"])

    def test_what_is_no_file_of_weights_is_refused_before_anything_starts(self):
        _, weights = self.trained()
        good = weights.read_bytes()
        for name, content, code, words in (("pickle.pth", b"PK\x03\x04torch", 78, "torch.load"),
                                           ("cut.safetensors", good[:-9], 65, "safetensors"),
                                           ("empty.safetensors", b"", 65, "safetensors")):
            path = self.scratch / name
            path.write_bytes(content)
            job = self.job(self.data, model={"name": "cnn", "init": name})
            self.assert_fails(self.start(job, name=f"run-{name}"), code, names=path, says=words)
        job = self.job(self.data, model={"name": "cnn", "init": "nowhere"})
        self.assert_fails(self.start(job, name="nowhere"), 66, names=self.scratch / "nowhere")
        job = self.job(self.data, model={"name": "cnn", "init_skip": ["fc2.*"]})
        self.assert_fails(self.start(job, name="alone"), 64, names="model.init_skip",
                          advises="model.init")


if __name__ == "__main__":
    unittest.main()
