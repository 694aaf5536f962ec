"""Losses that models compute themselves, with weights of samples and metrics, and losses of
train.loss, with real processes: a death, a resume in another world, replay and audit; the shown
figures; bad jobs."""
import json
import os
import shutil
import signal
import struct
import unittest

from fails_with import lacking
from harness import ROOT, LockstepTest, get
from weight_files import newest_weights, tensors_in

PROGRAMS = ROOT / "tests/golden/own_loss"
SAMPLES, COLUMNS = 630, 4
TRAIN = {"global_batch": 48, "slots": 4, "epochs": 12, "eval_batch": 50}
STEPS = 14 * TRAIN["epochs"]  # of 630 samples, the last of an epoch short


def evaluations(run):
    return [json.loads(line) for line in (run.run_dir / "evals.jsonl").read_text().splitlines()]


class OwnLoss(LockstepTest):
    def assert_learns(self, run):
        losses = [row["loss"] for row in evaluations(run)]
        self.assertEqual(len(losses), TRAIN["epochs"])
        self.assertLess(losses[-1], losses[0])

    def table(self, classes=3):
        path = self.scratch / f"table-{classes}.csv"
        if not path.exists():
            rows = [",".join(str((i * COLUMNS + c) * 7919 % 256 / 128 - 1) for c in range(COLUMNS))
                    + f",{i * 31 % 11 % classes}" for i in range(SAMPLES)]
            path.write_text("\n".join(["a,b,c,d,label", *rows]) + "\n")
        return path

    def job_of(self, file, classes=3, loss=None, transforms=("normalize",), groups=(), **train):
        path = self.scratch / file
        shutil.copy(PROGRAMS / file, path)
        table = str(self.table(classes))
        kind = "torchscript" if path.suffix == ".pt" else "exported"
        return self.job(table, model={"name": kind, "path": str(path)},
                        data={"train": {"path": table}, "eval": {"path": table},
                              "transforms": list(transforms)},
                        train={**TRAIN, **({"loss": loss} if loss else {}), **train},
                        optimizer={"name": "adamw", "lr": 0.005, "clip_norm": 1,
                                   "groups": list(groups)},
                        checkpoint={"every_steps": 20, "keep": 2})

    def test_a_death_and_a_resume_in_another_world_give_the_same_and_replay_agrees(self):
        job = self.job_of("weighted.pt2")
        one = self.finish(job, "--workers", 1, name="one")
        history = one.history()
        self.assertEqual(len(history), STEPS)
        self.assert_learns(one)
        self.assertEqual(set(history[0]["metrics"]), {"hit", "size"})

        rest = self.dies_and_goes_on(job, one)
        summary = rest.summary()
        self.assertNotIn("eval_accuracy", summary)
        self.assertEqual(summary["eval_metrics"], one.summary()["eval_metrics"])
        self.assertEqual(lacking(rest.text(), names=["test loss", "test hit", "test size"]), [])
        last = evaluations(rest)[-1]
        self.assertEqual(set(last["metrics"]), {"hit", "size"})
        self.assertNotIn("accuracy", last)

        text = self.succeed("replay", rest.run_dir, "--step", 71)
        self.assertEqual(lacking(text, names=["step 71", "hidden"]), [], text)

    def dies_and_goes_on(self, job, one):
        """Runs the job again, with a death and a resume in another world, and compares with
        `one`."""
        run = self.start(job, "--workers", 2, name="killed", slot_ms=40)
        run.wait_for_step(20)
        os.kill(run.worker(1), signal.SIGKILL)
        run.wait_for_step(60)
        self.assertEqual(set(run.status()["metrics"]), {"hit", "size"})
        self.assertNotIn("accuracy", run.status())
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        rest = self.finish(job, "--resume", "--workers", 3, name="killed")
        self.assert_same_result(rest, one)
        self.assertEqual(rest.history(), one.history())
        return rest

    def test_with_groups_an_average_and_pruning_all_together(self):
        job = self.job_of("weighted.pt2", ema=0.9,
                          prune={"sparsity": 0.5, "from": 10, "to": 70, "every": 7},
                          groups=[{"match": "out.*", "lr": 2, "weight_decay": 0},
                                  {"match": "hidden.bias", "freeze": True}])
        one = self.finish(job, "--workers", 1, name="one")
        rest = self.dies_and_goes_on(job, one)
        for run in (one, rest):
            evals = [json.loads(line)["metrics"]
                     for line in (run.run_dir / "evals.jsonl").read_text().splitlines()]
            self.assertEqual(set(evals[-1]), {"hit", "size", "ema_loss", "ema_hit", "ema_size"})
            self.assertNotEqual(evals[-1]["ema_hit"], evals[0]["ema_hit"])
        self.assertEqual(*((run.run_dir / "evals.jsonl").read_text() for run in (one, rest)))
        weights, _ = tensors_in(newest_weights(rest))
        for name in ("hidden.weight", "out.weight"):
            shape, content = weights[name]
            values = struct.unpack(f"<{shape[0] * shape[1]}f", content)
            self.assertEqual(values.count(0), len(values) // 2, name)
        self.audit(rest)
        for step in (14, 71):  # before and after zeros stay zero
            self.succeed("replay", one.run_dir, "--step", step)

    def test_a_script_and_a_program_of_one_module_learn_alike(self):
        program = self.finish(self.job_of("weighted.pt2"), "--workers", 2, name="program")
        script = self.finish(self.job_of("weighted.pt"), "--workers", 3, name="script")
        for a, b in zip(program.history(), script.history()):
            self.assertAlmostEqual(a["loss"], b["loss"], delta=1e-5 * a["loss"])

    def test_the_losses_of_the_key_train_built_in_models_and_programs(self):
        for loss, classes in (("bce", 2), ("huber", 3)):
            program = self.job_of("one_output.pt2", classes, loss)
            one = self.finish(program, "--workers", 1, name=f"{loss}-one")
            self.assert_same_result(
                self.finish(program, "--workers", 3, name=f"{loss}-three"), one)
            self.assertEqual("eval_accuracy" in one.summary(), loss == "bce")
            self.assertEqual("test accuracy" in one.text(), loss == "bce")
            table = str(self.table(classes))
            mlp = self.job(table, model={"name": "mlp"}, train={**TRAIN, "loss": loss},
                           optimizer={"name": "sgd", "lr": 0.01})
            run = self.finish(mlp, "--workers", 2, name=f"{loss}-mlp")
            self.assert_learns(run)
            self.assertNotIn("metrics", run.history()[0])

    def test_metrics_are_scraped_and_plotted(self):
        job = self.job_of("weighted.pt2", epochs=1000)
        run = self.start(job, "--workers", 1, slot_ms=5)
        run.wait_for_step(20)
        address = run.coordinator()["http"]
        text = run.wait_for(lambda: (lambda t: t if "eval_metric" in t else None)(
            get(f"http://{address}/metrics").decode()), "an evaluation")
        self.assertIn('lockstep_job_train_metric{', text)
        self.assertIn('name="hit"', text)
        self.assertNotIn("train_accuracy_ratio{", text)
        history = json.loads(get(f"http://{address}/api/v1/history"))
        self.assertEqual(set(history["evals"]["metrics"]), {"hit", "size"})
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])

    def test_what_cannot_be_right_is_refused_before_the_first_step(self):
        one, own = "one_output.pt2", "per_sample.pt2"
        for i, (file, more, code, names) in enumerate((
                (own, {"loss": "mse"}, 64, ["train.loss"]),
                (own, {"label_smoothing": 0.1}, 64, ["train.label_smoothing"]),
                (one, {"loss": "mse", "label_smoothing": 0.1}, 64,
                 ["train.loss", "train.label_smoothing"]),
                (one, {"loss": "mse", "transforms": ["mixup"]}, 64, ["train.loss", "mixup"]),
                (one, {"loss": "bce"}, 64, ["train.loss", "3"]),
                ("refused_matrix.pt2", {}, 78, ["refused_matrix.pt2", "(2, 3)"]),
                ("refused_no_loss.pt2", {}, 78, ["refused_no_loss.pt2", "loss"]),
                ("refused_not_finite.pt2", {}, 78, ["refused_not_finite.pt2", "NaN"]),
                ("refused_two_labels.pt2", {}, 78, ["refused_two_labels.pt2", "int64"]))):
            run = self.start(self.job_of(file, **more), "--workers", 1, name=f"bad-{i}")
            self.assert_fails(run, code, names=names)


if __name__ == "__main__":
    unittest.main()
