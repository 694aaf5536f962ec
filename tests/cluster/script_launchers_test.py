"""Training loops in Python under mpirun, Slurm and in pods: the weights of `python train.py` alone,
and none of the launcher's variables, by which libraries would open a process group of their own."""
import json
import os
import pathlib
import signal
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "world"))
from harness import installed, lockstep  # noqa: E402
from launches import LaunchTest, needs_mpirun  # noqa: E402
import pods  # noqa: E402
from pods import USER, PodsTest, needs_pods  # noqa: E402
from script_runs import SCRIPTS, ScriptTest  # noqa: E402
from slurm_runs import SlurmTest  # noqa: E402

TRAIN = SCRIPTS / "train.py"
STEPS = 22  # two epochs of 500 samples in steps of 48
LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "SLURM_", "PET_", "TORCHELASTIC_", "RANK", "WORLD_SIZE",
             "LOCAL_RANK", "MASTER_", "MPI_LOCAL", "JOB_COMPLETION_INDEX", "LOCKSTEP_RANK",
             "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_PODS", "LOCKSTEP_LAUNCH_ID")
# In front of the training loop: what the script's process was given.
TELLS = """
import json, os
print("variables " + json.dumps(sorted(os.environ)), flush=True)
"""


class Scripts(ScriptTest):
    slot_ms = 0
    weights = None  # of `python train.py` alone

    def setUp(self):
        super().setUp()
        self.train = self.scratch / "train.py"
        head, line, tail = TRAIN.read_text().partition("import pathlib\n")
        self.train.write_text(head + TELLS + line + tail)
        Scripts.weights = Scripts.weights or self.weights_alone(TRAIN, "mlp")

    def assert_as_alone(self, run):
        self.assertEqual(run.summary()["weights_sha256"], self.weights)
        self.assertEqual(len(run.history()), STEPS)
        self.audit(run)
        told = [line for path in (run.run_dir / "logs").glob("worker-*.stderr")
                for line in path.read_text().splitlines() if line.startswith("variables ")]
        self.assertGreaterEqual(len(told), 2, "each worker said what it was given")
        for line in told:
            names = json.loads(line.removeprefix("variables "))
            self.assertIn("LOCKSTEP_WORKER", names)
            self.assertEqual([name for name in names if name.startswith(LAUNCHERS)], [])


@needs_mpirun
class Mpirun(Scripts, LaunchTest):
    def environment(self, env=None, slot_ms=None):
        """Adds the variables that torchrun sets, as if it had started mpirun."""
        return {**super().environment(env, slot_ms), "TORCHELASTIC_RUN_ID": "7", "RANK": "0",
                "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "1"}

    def alone(self, *words, **more):
        with unittest.mock.patch.object(self, "environment", super().environment):
            return super().alone(*words, **more)

    def test_two_ranks_one_of_whose_workers_is_killed(self):
        run = self.mpirun(self.train, "script.args=[mlp, fp32, 0, 200]", np=2)
        run.wait_for_workers(2)
        run.wait_for_more_steps(2)
        os.kill(run.worker(1), signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_as_alone(run)


class Slurm(Scripts, SlurmTest):
    def test_a_batch_job(self):
        self.cluster.env["LOCKSTEP_PYTHON"] = self.python
        run = self.sbatch(self.train, "script.args=[mlp]", options=["--nodes", "2"])
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_as_alone(run)


@needs_pods
class Pods(Scripts, PodsTest):
    def python_of_image(self):
        """A Python with torch as an image has it, and what is mounted for it."""
        environment = pathlib.Path(installed("models-python")).parents[1]
        linked = next(environment.glob("lib/python3*/site-packages/torch.pth"))
        torch = pathlib.Path(linked.read_text().strip())
        image = self.scratch / "image"
        image.mkdir()
        image.chmod(0o755)
        (image / "python").write_text(
            f"#!/bin/sh\nexport LD_LIBRARY_PATH={environment}/stand-ins PYTHONNOUSERSITE=1\n"
            f"exec {environment}/bin/python \"$@\"\n")
        (image / "python").chmod(0o755)
        return "/opt/image/python", [(image, "/opt/image"),
                                     *((path, str(path)) for path in (environment, torch))]

    def test_an_indexed_job(self):
        python, image = self.python_of_image()
        out = lockstep("k8s", "render", self.train, "--kind", "job", "--image", "here/lockstep:1",
                       "--python", python, "--run-claim", "runs", "--name", "shoes", "--workers", 2,
                       "--", "mlp")
        self.assertEqual(out.returncode, 0, out.stderr)
        runs = self.scratch / "runs"
        runs.mkdir()
        os.chown(runs, USER, USER)
        cluster = pods.Kubernetes(self.scratch / "cluster", 2, {"runs": runs}, image=image)
        self.addCleanup(cluster.close)
        cluster.apply(list(pods.yaml.safe_load_all(out.stdout)))
        cluster.wait_complete()
        self.assert_as_alone(pods.PodsRun(cluster, runs / "shoes"))


if __name__ == "__main__":
    unittest.main()
