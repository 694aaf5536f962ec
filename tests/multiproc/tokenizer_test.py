"""Text with a vocabulary of BPE tokens in real runs: any number of workers, replay, resume, tools."""
import json
import random
import signal
import unittest

from harness import LockstepTest, lockstep

BLOCK = 16
MODEL = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK}
WORDS = ["the ", "rank ", "sums ", "every ", "slot's ", "Größe, ", "日本 "]
MERGES = [("t", "h"), ("th", "e"), ("r", "a"), ("n", "k"), ("ra", "nk"), ("Ġ", "s"), ("s", "l"),
          ("Ġ", "the"), ("Ġ", "rank"), ("Ã", "¶")]


def letters():
    """The letters that stand for the 256 bytes in GPT-2's files."""
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
        return self.succeed("data", command, *args)

    def test_any_number_of_workers_learn_the_same_and_a_step_is_replayed(self):
        self.tokenizer()
        job = self.job_with(self.text(), "tokenizer.json")  # next to the job file
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
        self.assertRegex(self.succeed("replay", two.run_dir, "--step", 2), r"/train\.txt\b.* \d+\n")

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
        self.assert_fails(self.start(job, "--resume", name="cut"), 64, names=path, says="SHA-256",
                          advises="back")
        exported = lockstep("export", "model", whole.run_dir, self.scratch / "out")
        self.assert_fails(exported, 64, names=path, says="SHA-256", advises="back")
        self.assertEqual(list(self.scratch.glob("out*")), [])
        path.unlink()
        self.assert_fails(self.start(job, "--resume", name="cut"), 66, names=path,
                          says="No such file")
        self.assert_fails(self.start(job, "--resume", "data.tokenizer=", name="cut"), 64,
                          names="data.tokenizer")

        moved = self.scratch / "elsewhere.json"
        moved.write_bytes(good)
        rest = self.finish(job, "--resume", f"data.tokenizer={moved}", name="cut")
        self.assert_same_result(rest, whole)

    def test_what_does_not_go_together_is_one_line(self):
        path = self.tokenizer()
        text = self.text()
        run = self.start(self.job_with(text, path, vocab=256), "--workers", 2, name="few")
        self.assert_fails(run, 64, names=["model.vocab", 256, 267])
        ranks = self.scratch / "x.tiktoken"
        ranks.write_text("IQ== 0\n")
        run = self.start(self.job_with(text, ranks), "--workers", 2, name="ranks")
        self.assert_fails(run, 64, names=ranks, advises="tokenizer.json")
        (text / "train.txt").write_bytes(b"text, and then \xff")
        run = self.start(self.job_with(text, path), "--workers", 2, name="bad")
        self.assert_fails(run, 65, names=["train.txt", "byte 15"], says="UTF-8", advises="iconv")

    def test_the_tools_take_a_tokenizer_and_tokens_packed_give_the_same_run(self):
        path = self.tokenizer()
        text = self.text()
        cache = self.scratch / "cache"
        with_it = ["--tokenizer", path, "--block", str(BLOCK)]
        self.assertIn(".tokens", self.data("index", text, "--cache-dir", cache, *with_it))
        seen = json.loads(self.data("inspect", text, "--json", *with_it))["splits"]
        self.assertEqual([(s["format"], s["classes"], s["tokens"]) for s in seen],
                         [("text", 267, BLOCK)] * 2)
        self.data("verify", text, *with_it)
        packed = self.scratch / "packed"
        self.data("pack", text, packed, *with_it)
        one = self.finish(self.job_with(text, path), "--workers", 1, name="one")
        job = self.job(packed, model={**MODEL, "vocab": 267},
                       train={"global_batch": 40, "slots": 4, "epochs": 3})
        again = self.finish(job, "--workers", 1, name="again")
        self.assertEqual([step["samples"] for step in again.history()],
                         [step["samples"] for step in one.history()])


if __name__ == "__main__":
    unittest.main()
