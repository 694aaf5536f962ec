"""Disturbed runs, and the undisturbed run whose result they must have."""
from harness import LockstepTest, Run, scratch_directory, synthetic_dataset

# Two workers take 10 ms a step, mostly asleep, so the run is hit in its middle. Slots stay where they
# are: workers that are stopped and killed differ in speed, and tests count the generations. The lease
# is long: a busy machine must not evict a worker. A test in which a lease has to end names its own.
TRAIN = {"global_batch": 64, "slots": 4, "max_steps": 1000}
SECTIONS = {"model": {"name": "mlp", "dropout": 0.25},
            "checkpoint": {"every_steps": 100, "keep": 2},
            "optimizer": {"name": "adamw", "lr": 0.0001},
            "cluster": {"lease_s": 120, "grace_s": 120, "max_crashes": 1000, "rebalance": False}}


SHORT_LEASE = {**SECTIONS["cluster"], "lease_s": 2}


class DisturbedTest(LockstepTest):
    train = TRAIN
    slot_ms = 5

    @classmethod
    def setUpClass(cls):
        cls.shared = scratch_directory(cls.addClassCleanup)
        cls.data = synthetic_dataset(cls.shared / "data", train=3000)
        cls.undisturbed = None

    def job_of(self, **sections):
        """Returns the job file. Makes the undisturbed run first, once for the class."""
        job = self.job(self.data, **{"train": self.train, **SECTIONS, **sections})
        cls = type(self)
        if cls.undisturbed is None:
            cls.undisturbed = Run([job, "--workers", 1], self.shared / "undisturbed")
            self.assertEqual(cls.undisturbed.wait(), 0, cls.undisturbed.text()[-3000:])
        return job

    def start_run(self, workers, **sections):
        run = self.start(self.job_of(**sections), "--workers", workers)
        run.wait_for_step(50)
        return run

    def assert_as_if_nothing_had_happened(self, run):
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_no_crash(run.text())
        self.assert_nothing_left(run)
        self.assert_same_result(run, self.undisturbed)
