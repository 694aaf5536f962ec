"""The label's column in real runs: the job names it, or Lockstep guesses it and says so; a resume
keeps it, and so does a packed copy."""
import json
import random
import unittest

from harness import LockstepTest, lockstep

TRAIN = {"global_batch": 20, "slots": 2, "epochs": 2}


class Columns(LockstepTest):
    def table(self, name, header=True):
        """Two features, and two columns that could be labels: of 3 and of 2 classes."""
        rng = random.Random(7)
        data = self.scratch / name
        with data.open("w", encoding="utf-8") as file:
            if header:
                file.write("kind,width,height,side\n")
            for _ in range(60):
                kind = rng.randrange(3)
                file.write(f"{kind},{rng.gauss(kind, 0.2):.4f},{rng.gauss(-kind, 0.2):.4f},"
                           f"{int(kind > 1)}\n")
        return data

    def inspect(self, path, *args):
        return json.loads(self.succeed("data", "inspect", path, "--json", *args))["splits"][0]

    def test_a_first_line_that_may_be_a_header_is_told_where_a_run_starts(self):
        data = self.scratch / "two.csv"
        data.write_text("0,1\n" + "".join(f"{i / 90},{i % 2}\n" for i in range(90)))
        job = self.job(data, model={"name": "mlp"}, train={**TRAIN, "max_steps": 1})
        told = "0 to 1, is taken for a row"
        self.assertIn(told, self.inspect(data)["header"])
        run = self.finish(job, "--workers", 1, name="counted")
        self.assertIn(f"note: in the training data line 1, {told}", run.text())
        data.write_text(data.read_text().replace("0,1", "width,label", 1))
        run = self.finish(job, "--workers", 1, name="named")
        self.assertNotIn("note:", run.text())

    def test_a_job_names_the_label_and_a_resume_keeps_it(self):
        data = self.table("t.csv")
        job = self.job(data, model={"name": "mlp"}, train=TRAIN)
        guessed = self.start(job, "--workers", 1, "train.max_steps=1", name="guessed")
        self.assertEqual(guessed.wait(), 0, guessed.text())
        self.assertIn("labels in side", guessed.text())
        run = self.finish(job, "--workers", 2, "data.label=kind", "data.input=width,height",
                          "train.max_steps=3", name="named")
        self.assertNotIn("labels in", run.text())
        other = self.start(job, "--resume", "data.label=side", "train.max_steps=0", name="named")
        self.assert_fails(other, 64, names="data.label")
        run = self.finish(job, "--workers", 1, "--resume", "train.max_steps=0", name="named")
        one = self.finish(job, "--workers", 1, "data.label=kind", "data.input=width,height",
                          name="one")
        self.assert_same_result(run, one)
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])

    def test_inspect_verify_and_pack_take_the_same_columns(self):
        data = self.table("bare.csv", header=False)
        seen = self.inspect(data)
        self.assertEqual((seen["label"], seen["classes"]), ("column 4", 2))
        self.assertIn("data.label", seen["guessed"])
        args = ("--label", 1, "--input", "2,3")
        seen = self.inspect(data, *args)
        self.assertEqual((seen["label"], seen["classes"], seen["shape"], seen["guessed"]),
                         ("column 1", 3, [2, 1, 1], ""))
        self.succeed("data", "verify", data, *args)
        packed = self.scratch / "packed"
        self.succeed("data", "pack", data, packed, *args)
        seen = self.inspect(packed)
        self.assertEqual((seen["format"], seen["classes"], seen["label"], seen["input"]),
                         ("arrow", 3, "label", "features"))
        self.assert_fails(lockstep("data", "inspect", data, "--label", "5"), 65, names="data.label",
                          says="4 columns")

    def test_a_table_that_tells_no_label_is_refused(self):
        data = self.scratch / "prices.csv"
        data.write_text("id,price\n" + "".join(f"{i},{100 * i}\n" for i in range(9)))
        run = self.start(self.job(data, model={"name": "mlp"}, train=TRAIN), "--workers", 1)
        self.assert_fails(run, 65, names=data, advises="data.label")


if __name__ == "__main__":
    unittest.main()
