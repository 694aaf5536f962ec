"""optimizer.name muon with real processes: the promises that hold for other optimizers hold."""
import os
import random
import signal
import unittest

from array_files import safetensors
from harness import LockstepTest, kill_at_once

BLOCK = 16
MODEL = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK, "dropout": 0.1}
MUON = {"name": "muon", "clip_norm": 1.0,
        "groups": [{"match": "h.0.attn.*", "lr": 2.0}, {"match": "h.0.mlp.c_proj.bias",
                                                        "freeze": True}]}
WORDS = ["the ", "rank ", "sums ", "every ", "slot "]


class Muon(LockstepTest):
    def setUp(self):
        super().setUp()
        data = self.scratch / "text"
        data.mkdir()
        for name, sequences in (("train.txt", 203), ("val.txt", 30)):
            words = "".join(random.Random(name).choices(WORDS, k=sequences * BLOCK))
            (data / name).write_text(words[:sequences * BLOCK + 5])
        # 11 steps an epoch, the last one short.
        self.file = self.job(data, model=MODEL, optimizer=MUON, schedule="cosine",
                             train={"global_batch": 20, "slots": 4, "epochs": 12, "ema": 0.9,
                                    "check_every": 3},
                             checkpoint={"every_steps": 7, "keep": 3})

    def test_any_world_a_death_and_a_resume_in_another_world_give_the_same_weights(self):
        one = self.finish(self.file, "--workers", 1, name="one")
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
        four = self.finish(self.file, "--workers", 4, name="four")
        self.assert_same_result(four, one)
        self.assertEqual(four.summary()["eval_loss"], one.summary()["eval_loss"])

        killed = self.start(self.file, "--workers", 2, name="killed", slot_ms=40)
        killed.wait_for_step(5)
        os.kill(killed.worker(1), signal.SIGKILL)
        killed.wait_for(lambda: killed.status()["generation"] > 1, "another generation")
        killed.wait_for_more_steps(15)  # there is a checkpoint
        kill_at_once(killed.workers())
        killed.wait_for(lambda: killed.status()["generation"] > 2, "one after that")
        killed.wait_for_more_steps(2)
        killed.process.send_signal(signal.SIGINT)
        self.assertEqual(killed.wait(), 75, killed.text()[-3000:])
        self.assertLess(len(killed.history()), len(one.history()))
        rest = self.finish(self.file, "--resume", "--workers", 3, name="killed")
        self.assert_same_result(rest, one)
        self.audit(rest)

    def test_a_step_is_replayed_bit_for_bit(self):
        run = self.finish(self.file, "--workers", 2)
        for step in (129, 132):
            said = self.succeed("replay", run.run_dir, "--step", step)
            self.assertIn(f"step {step}", said)

    def test_matrices_have_a_momentum_and_no_second_moment(self):
        run = self.finish(self.file, "train.epochs=1", "--workers", 1)
        names = set()
        for file in run.run_dir.glob("checkpoints/*/*.safetensors"):
            names |= set(safetensors(file)[0])
        self.assertIn("momentum_buffer.h.1.mlp.c_fc.weight", names)
        self.assertNotIn("exp_avg_sq.h.1.mlp.c_fc.weight", names)
        self.assertIn("exp_avg_sq.wte.weight", names)

    def test_what_cannot_be_is_one_line(self):
        run = self.start(self.file, "optimizer.adjust_lr=rms", name="adjusted")
        self.assert_fails(run, 64, names=["optimizer.adjust_lr", "rms", "original"])
        images = self.job(self.small_data(), "resnet.yaml", model="resnet18", optimizer="muon")
        run = self.start(images, "--workers", 1, name="resnet")
        self.assert_fails(run, 64, names=["optimizer.name", "resnet18"], says="adamw")


if __name__ == "__main__":
    unittest.main()
