"""Targets of numbers, several targets and weights of samples, with real processes: a death, a
resume in another world, replay and audit; the example; bad jobs and bad data."""
import csv
import shutil
import unittest

from fails_with import lacking
from harness import ROOT, LockstepTest

PROGRAMS = ROOT / "tests/golden/fields"
SAMPLES, COLUMNS = 630, 4
TRAIN = {"global_batch": 48, "slots": 4, "epochs": 10, "eval_batch": 50}
STEPS = 14 * TRAIN["epochs"]  # of 630 samples, the last of an epoch short


class Fields(LockstepTest):
    def table(self, **changed):
        """`changed`: other text in the last row, by column."""
        path = self.scratch / f"table{'-'.join(changed)}.csv"
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            names = [*"abcd", "price", "importance", "label"]
            rows.writerow(names)
            for i in range(SAMPLES):
                x = [(i * COLUMNS + c) * 7919 % 256 / 128 - 1 for c in range(COLUMNS)]
                row = [*x, sum(x) / 2, i % 4 * 0.5, i * 31 % 11 % 3]
                if i == SAMPLES - 1:
                    row = [changed.get(name, value) for name, value in zip(names, row)]
                rows.writerow(row)
        return path

    def job_of(self, archive="", table=None, targets=("price",), data=(), **train):
        model = {"name": "mlp"}
        if archive:
            path = self.scratch / f"{archive}.pt2"
            shutil.copy(PROGRAMS / path.name, path)
            model = {"name": "exported", "path": str(path)}
        table = {"path": str(table or self.table())}
        return self.job(table["path"], model=model,
                        data={"train": table, "eval": table, "inputs": list("abcd"),
                              "targets": list(targets), "transforms": ["normalize"], **dict(data)},
                        train={**TRAIN, **train}, optimizer={"name": "adamw", "lr": 0.005},
                        checkpoint={"every_steps": 20, "keep": 2})

    def test_a_death_and_a_resume_in_another_world_give_the_same_and_replay_agrees(self):
        job = self.job_of("two_targets", targets=("price", "label"), data={"weight": "importance"})
        one = self.finish(job, "--workers", 1, name="one")
        history = one.history()
        self.assertEqual(len(history), STEPS)
        self.assertEqual(set(history[0]["metrics"]), {"hit", "error"})
        self.assertLess(history[-1]["loss"], history[0]["loss"])
        rest = self.goes_on_in_another_world(job, one)
        text = self.succeed("replay", rest.run_dir, "--step", 71)
        self.assertEqual(lacking(text, names=["step 71", "body.hidden"]), [], text)

    def test_weights_count_as_often_as_they_say(self):
        job = self.job_of(loss="mse")
        plain = self.finish(job, "--workers", 2, name="plain")
        weighted = self.job_of(data={"weight": "importance"}, loss="mse")
        one = self.finish(weighted, "--workers", 1, name="one")
        self.assert_same_result(self.finish(weighted, "--workers", 3, name="three"), one)
        self.assertNotEqual(one.summary()["weights_sha256"], plain.summary()["weights_sha256"])
        self.assertNotIn("eval_accuracy", one.summary())

    def test_the_example_predicts_a_number(self):
        example = ROOT / "deploy/examples/table_number.yaml"
        run = self.finish(example, f"data.train.path={self.table()}", "data.inputs=[a,b,c,d]",
                          "data.targets=[price]", "--workers", 2, name="example")
        self.assertLess(run.summary()["eval_loss"], 0.01)
        self.assertIn("4 columns with price (float32), ", run.text())

    def test_bad_jobs_and_bad_data_are_refused_by_name(self):
        mse = {"loss": "mse"}
        for wanted, code, names, advises in (
                ({}, 64, ["cross_entropy", "price (float32)"], "mse"),
                ({"targets": ["price", "importance"], **mse}, 64,
                 ["price (float32), importance (float32)", "mse"], "export a model"),
                ({"targets": ["nobody"], **mse}, 65, ['"nobody"', "data.targets"],
                 "name one of them"),
                ({"targets": ["a"], **mse}, 64, ["data.targets", "a stands twice"],
                 "name each field once"),
                ({"data": {"weight": "price"}, **mse}, 64, ["data.weight", "price"],
                 "name a column"),
                ({"data": {"label": "label"}, **mse}, 64, ["data.targets", "data.label"],
                 "leave data.label out"),
                ({"data": {"input": "a"}, **mse}, 64, ["data.inputs", "data.input"],
                 "leave data.input out"),
                ({"data": {"transforms": ["normalize", "mixup"]}}, 64, ["mixup"],
                 "leave out mixup"),
                ({"archive": "two_targets"}, 78, ["two_targets.pt2", "3 inputs", "price"],
                 "forward takes"),
                ({"table": {"price": "nan"}, **mse}, 65, ["line 631", '"price"', '"nan"'],
                 "correct it"),
                ({"table": {"importance": "-1"}, "data": {"weight": "importance"}, **mse}, 65,
                 ["line 631", '"importance"', '"-1"'], "0 or more"),
                ({"table": {"price": "much"}, **mse}, 65, ["line 631", '"much"'], "correct it")):
            with self.subTest(names=names):
                table = self.table(**wanted.pop("table", {}))
                job = self.job_of(table=table, **wanted)
                self.assert_fails(self.start(job), code, names=names, advises=advises)

    def test_a_format_without_fields_refuses_them(self):
        data = self.small_data()
        job = self.job(data, data={"train": {"path": str(data)}, "targets": ["price"]})
        self.assert_fails(self.start(job), 64, names=["data.targets is price", "idx"],
                          advises="leave data.targets out")


if __name__ == "__main__":
    unittest.main()
