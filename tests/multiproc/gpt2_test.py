"""GPT-2 on text with real processes: the promises that hold for images hold for sequences."""
import os
import random
import signal
import struct
import unittest

from array_files import safetensors
from harness import LockstepTest

BLOCK = 16
MODEL = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK}
TRAIN = {"global_batch": 20, "slots": 4, "epochs": 3}  # 203 = 10 * 20 + 3 sequences
WORDS = ["the ", "rank ", "sums ", "every ", "slot "]


class Gpt2(LockstepTest):
    def text(self, name="train.txt", sequences=203, seed=1):
        path = self.scratch / "text" / name
        path.parent.mkdir(exist_ok=True)
        words = "".join(random.Random(seed).choices(WORDS, k=sequences * BLOCK))
        path.write_text(words[:sequences * BLOCK + 5])  # the rest is shorter than a block
        return path

    def test_any_number_of_workers_and_a_death_give_the_same_weights(self):
        self.text()
        directory = self.text("val.txt", sequences=30, seed=2).parent
        train = {**TRAIN, "epochs": 30}
        job = self.job(directory, model=MODEL, train=train)
        one = self.finish(job, "--workers", 1, name="one")
        self.assertEqual(len(one.history()), 11 * train["epochs"])
        self.assertEqual(one.history()[10]["samples"], 3)
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
        self.assertTrue(0 < one.summary()["eval_accuracy"] < 1, one.summary())

        killed = self.start(job, "--workers", 2, name="killed", slot_ms=10)
        victim = killed.worker(1)
        killed.wait_for_step(5)
        os.kill(victim, signal.SIGKILL)
        self.assertEqual(killed.wait(), 0, killed.text()[-3000:])
        four = self.finish(job, "--workers", 4, name="four")
        for run in (killed, four):
            self.assert_same_result(run, one)
            self.assertEqual(run.summary()["eval_loss"], one.summary()["eval_loss"])

    def test_a_token_that_becomes_no_token_while_a_run_reads_it_is_no_part_of_any_step(self):
        path = self.scratch / "tokens.bin"
        tokens = [i * 7919 % 500 for i in range(103 * BLOCK)]
        path.write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        job = self.job(path, model=MODEL, train={**TRAIN, "epochs": 30})
        run = self.start(job, "--workers", 2, slot_ms=20)
        run.wait_for_step(3)
        with open(path, "r+b") as file:
            file.seek(2 * (50 * BLOCK + 3))
            file.write(b"\xff\xff")
        self.assert_fails(run, 65, names=path, says="changed")
        self.assert_nothing_left(run)

    def test_a_step_is_replayed_bit_for_bit_with_its_sequences(self):
        path = self.text()
        run = self.finish(self.job(path, model=MODEL, train=TRAIN), "--workers", 2)
        said = self.succeed("replay", run.run_dir, "--step", 22)
        header, data = safetensors(run.run_dir / "replay-step-22.safetensors")
        self.assertEqual(header["tokens"]["shape"], [3, BLOCK])  # the epoch's last step
        begin, end = header["samples"]["data_offsets"]
        samples = struct.unpack(f"<{(end - begin) // 8}q", data[begin:end])
        begin, end = header["tokens"]["data_offsets"]
        tokens = struct.unpack(f"<{(end - begin) // 8}q", data[begin:end])
        text = path.read_bytes()
        for i, sample in enumerate(samples):
            self.assertEqual(bytes(tokens[i * BLOCK:(i + 1) * BLOCK]),
                             text[sample * BLOCK:(sample + 1) * BLOCK])
            self.assertRegex(said, rf"{path}\b.* {sample * BLOCK}\n")

    def test_what_does_not_fit_together_is_one_line(self):
        text = self.text()
        broken = self.scratch / "broken.bin"
        broken.write_bytes(b"\x01\x00" * 40 + b"\x07")
        for data, model, code, subjects in (
                (broken, MODEL, 65, [broken, "81 bytes"]),
                (text, {**MODEL, "n_head": 3}, 64, ["model.n_head", 3]),
                (text, {**MODEL, "vocab": 100}, 65, [text, "vocabulary of 100"]),
                (self.small_data(), MODEL, 64, ["model.name", "gpt2", "idx"]),
                (text, {"name": "mlp"}, 64, ["model.name", "mlp", "text"])):
            run = self.start(self.job(data, model=model, train=TRAIN), "--workers", 1, name="bad")
            self.assert_fails(run, code, names=subjects)


if __name__ == "__main__":
    unittest.main()
