"""`lockstep generate` with real processes: text of runs and of exported directories, by bytes, by a
tokenizer and by numbers, and what it refuses."""
import json
import shutil
import struct
import subprocess
import unittest

from harness import BIN, LockstepTest, lockstep
from tokenizer_test import MERGES, vocabulary

BLOCK = 32
GPT2 = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK}
TEXT = "every slot of every rank, "


class Generate(LockstepTest):
    def text(self):
        directory = self.scratch / "text"
        directory.mkdir()
        (directory / "train.txt").write_text(TEXT * 800)
        (directory / "val.txt").write_text(TEXT * 20)
        return directory

    def train(self, path, name="run", **sections):
        job = self.job(path, model=GPT2, train={"global_batch": 16, "slots": 2, "max_steps": 600},
                       optimizer={"name": "adamw", "lr": 0.005}, name=f"{name}.yaml", **sections)
        return self.finish(job, "--workers", 1, name=name)

    def generate(self, place, prompt, *args):
        return self.printed("generate", place, "--prompt", prompt, *args)

    def test_a_run_and_its_export_go_on_with_a_text_alike(self):
        run = self.train(self.text(), checkpoint={"every_steps": 40})
        wanted = "every slot of every rank, every slo"
        likeliest = ["--temperature", 0, "--tokens", 20]
        self.assertTrue(self.generate(run.run_dir, "every slot of e", *likeliest)
                        .startswith(wanted[:30]))
        exported = self.scratch / "exported"
        self.succeed("export", "model", run.run_dir, exported)
        drawn = ["--top-k", 20, "--top-p", 0.95, "--temperature", 2, "--tokens", 2 * BLOCK]
        from_run = self.generate(run.run_dir, "every slot", *drawn)
        self.assertEqual(len(from_run.encode()), len("every slot") + 2 * BLOCK + 1)
        shutil.move(run.run_dir, self.scratch / "elsewhere")
        self.assertEqual(self.generate(exported, "every slot", *drawn), from_run)
        self.assertNotEqual(self.generate(exported, "every slot", *drawn, "--seed", 1), from_run)

        with self.subTest("an older checkpoint"):
            moved = self.scratch / "elsewhere"
            self.assertNotEqual(self.generate(moved, "every slot", *drawn, "--checkpoint", 560),
                                from_run)
        with self.subTest("weights that were changed"):
            path = exported / "model.safetensors"
            content = bytearray(path.read_bytes())
            content[-5] ^= 1
            path.write_bytes(content)
            self.assert_fails(lockstep("generate", exported, "--prompt", "a"), 65, names=path,
                              advises="export")
        with self.subTest("a checkpoint that is damaged"):
            newest = max((moved / "checkpoints").glob("step-*")) / "model.safetensors"
            content = bytearray(newest.read_bytes())
            content[-5] ^= 1
            newest.write_bytes(content)
            self.assert_fails(lockstep("generate", moved, "--prompt", "a"), 65, names=newest)

    def test_a_tokenizer_is_used_both_ways_and_travels_with_the_export(self):
        tokenizer = self.scratch / "tokenizer.json"
        tokenizer.write_text(json.dumps({
            "added_tokens": [{"id": 256 + len(MERGES), "content": "<|endoftext|>"}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
            "model": {"type": "BPE", "vocab": vocabulary(MERGES), "merges": MERGES}}))
        data = self.text()
        run = self.train(data, data={"train": {"path": str(data)}, "tokenizer": str(tokenizer)})
        said = self.generate(run.run_dir, "every slot of e", "--temperature", 0, "--tokens", 12)
        self.assertTrue(said.startswith("every slot of every rank, every"), said)
        exported = self.scratch / "exported"
        self.succeed("export", "model", run.run_dir, exported)
        tokenizer.unlink()
        self.assertEqual(self.generate(exported, "every slot of e", "--temperature", 0, "--tokens", 12),
                         said)
        self.assert_fails(lockstep("generate", run.run_dir, "--prompt", "a"), 66, names=tokenizer)
        # Python hands on a byte that is not UTF-8 in this form.
        self.assert_fails(lockstep("generate", exported, "--prompt", "ok \udcff"), 64,
                          names="byte 3", advises="iconv")

    def test_tokens_without_a_text_are_numbers(self):
        path = self.scratch / "tokens.bin"
        tokens = [i % 5 for i in range(400 * BLOCK)]
        path.write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        run = self.train(path)
        said = self.generate(run.run_dir, "0 1 2 3", "--temperature", 0, "--tokens", 6)
        self.assertEqual(said.split(), list("0123401234"))
        self.assert_fails(lockstep("generate", run.run_dir, "--prompt", "To be"), 64, names="To",
                          advises="--tokenizer")
        self.assert_fails(lockstep("generate", run.run_dir, "--prompt", "7"), 64, names=["7", "5"])

    def test_a_run_that_goes_on_and_one_without_a_checkpoint(self):
        job = self.job(self.text(), model=GPT2, checkpoint={"every_steps": 5},
                       train={"global_batch": 16, "slots": 2, "max_steps": 1_000_000})
        run = self.start(job, "--workers", 1, slot_ms=20)
        run.wait_for_step(1)
        early = lockstep("generate", run.run_dir, "--prompt", "every", "--temperature", 0)
        if early.returncode != 0:
            self.assert_fails(early, 66, names=run.run_dir, advises="checkpoint")
        run.wait_for_step(12)
        run.wait_for(lambda: list((run.run_dir / "checkpoints").glob("step-*")), "a checkpoint")
        self.assertTrue(self.generate(run.run_dir, "every", "--temperature", 0).startswith("every"))
        self.succeed("stop", run.run_dir)
        self.assertEqual(run.wait(), 75)

    def test_what_cannot_be_is_one_line(self):
        for words, code, subjects in (
                ([self.scratch / "none", "--prompt", "a"], 66, "none"),
                ([self.scratch, "--prompt", "a"], 64, [self.scratch, "export model"]),
                ([self.scratch, "--prompt", ""], 64, "prompt"),
                ([self.scratch, "--prompt", "a", "--temperature", -1], 64, "--temperature"),
                ([self.scratch, "--prompt", "a", "--top-p", 0], 64, "--top-p"),
                ([self.scratch, "--prompt", "a", "--checkpoint", "last"], 64, "--checkpoint")):
            with self.subTest(words):
                self.assert_fails(lockstep("generate", *words), code, names=subjects)

    def test_a_model_of_images_and_a_full_disk(self):
        job = self.job(self.small_data(), model={"name": "mlp"},
                       train={"global_batch": 20, "slots": 2, "max_steps": 2})
        images = self.finish(job, "--workers", 1, name="images")
        self.assert_fails(lockstep("generate", images.run_dir, "--prompt", "a"), 64,
                          names=["mlp", "gpt2"])
        run = self.train(self.text())
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "lockstep", "generate", run.run_dir, "--prompt", "a"],
                                  stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertIn("stdout", done.stderr)


if __name__ == "__main__":
    unittest.main()
