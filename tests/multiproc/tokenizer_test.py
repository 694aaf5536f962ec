"""Text with a vocabulary of BPE tokens in real runs: any number of workers, replay, resume, tools."""
import json
import random
import signal
import subprocess
import unittest

from harness import BIN, LockstepTest, replay

BLOCK = 16
MODEL = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK}
WORDS = ["the ", "rank ", "sums ", "every ", "slot's ", "Größe, ", "日本 "]
MERGES = [("t", "h"), ("th", "e"), ("r", "a"), ("n", "k"), ("ra", "nk"), ("Ġ", "s"), ("s", "l"),
          ("Ġ", "the"), ("Ġ", "rank"), ("Ã", "¶")]


def letters():
    """Of each byte, the letter that stands for it in GPT-2's files."""
    others = iter(range(256, 512))
    plain = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def vocabulary(merges):
    tokens = [*letters(), *("".join(pair) for pair in merges)]
    return {token: i for i, token in enumerate(tokens)}


class Tokenizer(LockstepTest):
    def tokenizer(self, name="tokenizer.json", merges=MERGES):
        path = self.scratch / name
        path.write_text(json.dumps({
            "added_tokens": [{"id": 256 + len(merges), "content": "<|endoftext|>"}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
            "model": {"type": "BPE", "vocab": vocabulary(merges), "merges": merges}}))
        return path

    def text(self):
        directory = self.scratch / "text"
        directory.mkdir()
        for name, words in (("train.txt", 4000), ("val.txt", 400)):
            chosen = random.Random(name).choices(WORDS, k=words)
            chosen[words // 2] = "<|endoftext|>"
            (directory / name).write_text("".join(chosen))
        return directory

    def job_with(self, data, tokenizer, epochs=3, **model):
        job = self.job(data, model={**MODEL, **model}, checkpoint={"every_steps": 10, "keep": 3},
                       train={"global_batch": 40, "slots": 4, "epochs": epochs})
        sections = json.loads(job.read_text())
        sections["data"].update(tokenizer=str(tokenizer), cache_dir=str(self.scratch / "cache"))
        job.write_text(json.dumps(sections))
        return job

    def data(self, command, *args):
        done = subprocess.run([BIN / "lockstep", "data", command, *args], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_any_number_of_workers_learn_the_same_and_a_step_is_replayed(self):
        self.tokenizer()
        job = self.job_with(self.text(), "tokenizer.json")  # beside the job file
        one = self.finish(job, "--workers", 1, name="one")
        made = {path.name: path.stat().st_mtime_ns for path in (self.scratch / "cache").iterdir()
                if path.suffix == ".tokens"}
        self.assertEqual(len(made), 2, made)
        two = self.finish(job, "--workers", 2, name="two")
        self.assertEqual({name: (self.scratch / "cache" / name).stat().st_mtime_ns
                          for name in made}, made)
        self.assert_same_result(two, one)
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
        self.assertTrue(0 < one.summary()["eval_accuracy"] < 1, one.summary())
        answer = replay(two.run_dir, "--step", 2)
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        self.assertIn("the recorded losses again, bit for bit", answer.stdout)
        self.assertIn("train.txt (its tokens) at byte ", answer.stdout)

    def test_a_resume_finds_the_tokenizer_anywhere_but_takes_no_other(self):
        path = self.tokenizer()
        job = self.job_with(self.text(), path, epochs=20)
        whole = self.finish(job, "--workers", 1, name="whole")
        cut = self.start(job, "--workers", 2, name="cut", slot_ms=20)
        cut.wait_for_step(20)
        cut.process.send_signal(signal.SIGINT)
        self.assertEqual(cut.wait(), 75, cut.text()[-2000:])

        good = path.read_bytes()
        self.tokenizer(merges=MERGES[:-1])
        refused = self.finish(job, "--resume", name="cut", expect=64)
        self.assert_clear_line(refused, str(path), "not what the run was begun with",
                               "Put it back as it was")
        path.unlink()
        refused = self.finish(job, "--resume", name="cut", expect=66)
        self.assert_clear_line(refused, str(path), "cannot be read", "No such file")
        refused = self.finish(job, "--resume", "data.tokenizer=", name="cut", expect=64)
        self.assert_clear_line(refused, "data.tokenizer")

        moved = self.scratch / "elsewhere.json"
        moved.write_bytes(good)
        rest = self.finish(job, "--resume", f"data.tokenizer={moved}", name="cut")
        self.assert_same_result(rest, whole)

    def test_what_does_not_go_together_is_one_line(self):
        path = self.tokenizer()
        text = self.text()
        run = self.finish(self.job_with(text, path, vocab=256), "--workers", 2, name="few",
                          expect=64)
        self.assert_clear_line(run, "model.vocab is 256", "take that or more")
        ranks = self.scratch / "x.tiktoken"
        ranks.write_text("IQ== 0\n")
        run = self.finish(self.job_with(text, ranks), "--workers", 2, name="ranks", expect=64)
        self.assert_clear_line(run, str(ranks), "give a tokenizer.json")
        (text / "train.txt").write_bytes(b"text, and then \xff")
        run = self.finish(self.job_with(text, path), "--workers", 2, name="bad", expect=65)
        self.assert_clear_line(run, "train.txt is not UTF-8 at byte 15", "iconv")

    def test_the_tools_take_a_tokenizer_and_tokens_packed_give_the_same_run(self):
        path = self.tokenizer()
        text = self.text()
        cache = self.scratch / "cache"
        with_it = ["--tokenizer", path, "--block", str(BLOCK)]
        self.assertIn(".tokens, ", self.data("index", text, "--cache-dir", cache, *with_it))
        seen = json.loads(self.data("inspect", text, "--json", *with_it))["splits"]
        self.assertEqual([(s["format"], s["classes"], s["tokens"]) for s in seen],
                         [("text", 267, BLOCK)] * 2)
        self.assertIn("none is damaged", self.data("verify", text, *with_it))
        packed = self.scratch / "packed"
        self.assertIn("tokens in 1 file", self.data("pack", text, packed, *with_it))
        one = self.finish(self.job_with(text, path), "--workers", 1, name="one")
        job = self.job(packed, model={**MODEL, "vocab": 267},
                       train={"global_batch": 40, "slots": 4, "epochs": 3})
        again = self.finish(job, "--workers", 1, name="again")
        self.assertEqual([step["samples"] for step in again.history()],
                         [step["samples"] for step in one.history()])


if __name__ == "__main__":
    unittest.main()
