"""Command lines that people type: a wrong word gets the right one as advice. Also the commands that
end and list runs."""
import json
import shlex
import unittest

from harness import LockstepTest, Run, lockstep, synthetic_dataset


class WrongWords(LockstepTest):
    def refuse(self, *words, names=(), advises=()):
        self.assert_fails(lockstep(*words), 64, names=names, advises=advises)

    def test_an_option_that_is_unknown_shows_those_that_there_are(self):
        for words, own in ((["run", "--frobnicate"], ["--resume", "--workers"]),
                           (["data", "inspect", "--frobnicate", "x"], ["--json", "--format"])):
            self.assert_fails(lockstep(*words), 64, names="--frobnicate", advises=own)
        near = lockstep("data", "inspect", "--jso", "x")
        self.assert_fails(near, 64, names="--jso", advises="--json")
        self.assertNotIn("--format", near.stderr, "one is near enough")

    def test_a_word_of_another_program_names_the_command(self):
        for word, command in {"train": "lockstep run", "kill": "lockstep stop", "ls": "lockstep runs",
                              "resume": "--resume", "verify": "lockstep ckpt verify",
                              "monitor": "lockstep top"}.items():
            with self.subTest(word):
                self.refuse(word, "x", names=f"'{word}'", advises=command)

    def test_a_mistyped_command_names_the_nearest_one_on_its_level(self):
        self.refuse("trian", "x", names="'trian'", advises="lockstep run")
        self.refuse("statsu", "x", names="'statsu'", advises="status")
        self.refuse("data", "inspct", "x", names="'data inspct'",
                    advises=["inspect", "lockstep data --help"])
        self.refuse("help", "ckpt", "verfy", names="'ckpt verfy'", advises="verify")

    def test_an_unknown_option_names_the_nearest_one_and_the_help_of_its_command(self):
        self.refuse("run", "job.yaml", "--worker", "2", names=["lockstep run", "--worker"],
                    advises=["--workers", "lockstep run --help"])
        self.refuse("data", "verify", "--jsn", "x", names=["data verify", "--jsn"],
                    advises=["--json", "lockstep data verify --help"])
        self.refuse("drain", "x", "--nod=a", names="--nod", advises=["--node", "drain --help"])
        self.refuse("scale", "x", names="workers", advises="lockstep scale --help")

    def test_help_shows_what_the_option_shows(self):
        self.assertEqual(self.succeed("help"), self.succeed("--help"))
        self.assertEqual(self.succeed("help", "data", "inspect"),
                         self.succeed("data", "inspect", "--help"))


class Stop(LockstepTest):
    slot_ms = 5

    def start_long(self, name="run", **sections):
        job = self.job(self.small_data(), model={"name": "mlp"},
                       train={"global_batch": 64, "slots": 4, "max_steps": 1_000_000_000},
                       optimizer={"name": "adamw", "lr": 0.0002}, name=f"{name}.yaml", **sections)
        run = self.start(job, "--workers", 2, name=name)
        run.wait_for_workers(2)
        return run

    def test_a_stopped_run_has_a_checkpoint_and_goes_on(self):
        run = self.start_long()
        run.wait_for_more_steps(20)
        said = self.succeed("stop", run.run_dir)
        self.assertEqual(run.wait(), 75)  # it has ended already
        self.assertEqual(run.summary()["exit_code"], 75)
        steps = run.summary()["steps"]
        self.assertIn(run.summary()["checkpoint"], said)
        self.assertIn(f"--resume --run-dir {run.run_dir}", said)
        again = self.start("--resume", f"train.max_steps={steps + 20}")
        self.assertEqual(again.wait(), 0, again.text())
        self.assertEqual(len(again.history()), steps + 20)
        self.audit(again)

    def test_a_second_stop_does_not_hurry_the_first(self):
        run = self.start_long()
        run.wait_for_more_steps(5)
        for _ in range(3):
            lockstep("stop", run.run_dir, "--no-wait")
        self.assertEqual(run.wait(), 75)
        self.assertEqual(len(run.history()), run.summary()["steps"])
        self.assertIn("checkpoint", run.summary())

    def test_a_run_that_does_not_run_is_named(self):
        job = self.job(self.small_data())
        run = self.finish(job, "--workers", 1, "train.max_steps=2")
        self.assert_fails(lockstep("stop", run.run_dir), 3, names=str(run.run_dir))
        self.assert_fails(lockstep("stop", self.scratch / "none"), 66, names="none")


class TryNext(LockstepTest):
    def advised(self, text):
        """The words of the resume command, as a user copies them, without the run directory."""
        line = next(line for line in text.splitlines() if "run --resume" in line)
        words = shlex.split(line.split("#")[0])[2:]
        at = words.index("--run-dir")
        return words[:at] + words[at + 2:]

    def test_the_advice_goes_on_whatever_ended_the_run(self):
        data = self.small_data()
        for train in ({"max_steps": 4}, {"epochs": 1}, {"epochs": 2, "max_steps": 4}):
            with self.subTest(train=train):
                name = "-".join(map(str, train.values())) + "-" + "-".join(train)
                job = self.job(data, train={"global_batch": 64, "slots": 4, **train})
                run = self.finish(job, "--workers", 1, name=name)
                again = Run(self.advised(run.text()), run.run_dir)
                self.runs.append(again)
                self.assertEqual(again.wait(), 0, again.text())
                steps = train.get("max_steps", 10)
                self.assertGreater(len(again.history()), steps)

    def test_after_one_cycle_the_rate_does_not_jump_up_in_silence(self):
        job = self.job(self.small_data(), train={"global_batch": 64, "slots": 4, "max_steps": 10},
                       schedule={"name": "onecycle"})
        run = self.finish(job, "--workers", 1)
        top = max(row["lr"] for row in run.history())
        plain = self.start("--resume", "train.max_steps=12")
        self.assertEqual(plain.wait(), 0, plain.text())
        self.assertRegex(plain.text(), r"learning rate of step 11 .*schedule=constant")
        advised = Run(self.advised(plain.text()), plain.run_dir)
        self.runs.append(advised)
        self.assertEqual(advised.wait(), 0, advised.text())
        rates = [row["lr"] for row in advised.history()[12:]]
        self.assertEqual(len(rates), 12)
        self.assertLessEqual(max(rates), top / 9)

    def test_a_longer_run_that_another_key_ends_says_which(self):
        run = self.finish(self.job(self.small_data()), "--workers", 1, "train.max_steps=4")
        again = self.finish("--resume", "train.epochs=5")
        self.assertIn("train.max_steps is 4", again.text())
        self.assertIn("train.max_steps=8", " ".join(self.advised(again.text())))
        self.assertEqual(len(run.history()), 4)


class Banner(LockstepTest):
    def test_the_stem_that_auto_takes_is_named(self):
        data = synthetic_dataset(self.scratch / "large", train=8, evaluation=4, size=40)
        for stem, named in (("auto", "cifar"), ("imagenet", "imagenet")):
            job = self.job(data, model={"name": "resnet18", "stem": stem},
                           train={"global_batch": 4, "slots": 1, "max_steps": 1})
            run = self.finish(job, "--workers", 1, name=stem)
            self.assertIn(f"resnet18 (stem {named}", run.text())


class Runs(LockstepTest):
    slot_ms = 5

    def table(self, *words):
        return json.loads(self.succeed("runs", *words, "--json"))

    def test_runs_are_listed_with_their_figures_and_what_tells_them_apart(self):
        data = self.small_data()
        (self.scratch / "runs").mkdir()
        first = self.finish(self.job(data), "--workers", 1, "train.max_steps=3", name="runs/a")
        second = self.finish(self.job(data), "--workers", 1, "train.max_steps=3",
                             "optimizer.lr=0.01", name="runs/b")
        live = self.start(self.job(data), "--workers", 2, "train.epochs=1000000",
                          "optimizer.lr=0.03", name="runs/c")
        live.wait_for_workers(2)
        live.wait_for_more_steps(1)
        (self.scratch / "runs" / "no-run").mkdir()
        rows = {row["run_dir"].rsplit("/", 1)[1]: row for row in self.table(self.scratch / "runs")}
        self.assertEqual(set(rows), {"a", "b", "c"})
        for name, run in (("a", first), ("b", second)):
            self.assertEqual(rows[name]["state"], "done")
            self.assertEqual(rows[name]["step"], 3)
            for figure in ("eval_accuracy", "eval_loss", "samples_per_second"):
                self.assertEqual(rows[name][figure], run.summary()[figure], figure)
        self.assertEqual(rows["c"]["state"], "training")
        self.assertGreater(rows["c"]["step"], 0)
        self.assertEqual([rows[name]["differs"]["optimizer.lr"] for name in "abc"],
                         ["0.002", "0.01", "0.03"])
        self.assertNotIn("seed", rows["a"]["differs"])
        text = self.succeed("runs", self.scratch / "runs")
        self.assertIn("optimizer.lr=0.01", text)
        self.assertIn(f"{100 * second.summary()['eval_accuracy']:.2f} %", text)
        self.succeed("stop", live.run_dir)
        self.assertEqual(live.wait(), 75)
        self.assertIn("stopped", [row["state"] for row in self.table(self.scratch / "runs")])

    def test_one_run_and_no_run(self):
        run = self.finish(self.job(self.small_data()), "--workers", 1, "train.max_steps=2")
        self.assertEqual([row["run_dir"] for row in self.table(run.run_dir)], [str(run.run_dir)])
        (self.scratch / "empty").mkdir()
        self.assertEqual(self.table(self.scratch / "empty"), [])
        self.assert_fails(lockstep("runs", self.scratch / "nowhere"), 66, names="nowhere")


if __name__ == "__main__":
    unittest.main()
