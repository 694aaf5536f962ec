"""A rendered MPIJob: mpirun in the launcher's pod starts the agents over real ssh. A worker's pod that
is evicted ends the run at a checkpoint first, and the next launch goes on."""
import shutil
import unittest

from pods import PodsTest, needs_pods


@needs_pods
@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun here")
@unittest.skipUnless(shutil.which("sshd", path="/usr/sbin"), "there is no sshd (openssh-server)")
class MpiPods(PodsTest):
    def test_mpijob_with_an_evicted_worker(self):
        run, cluster = self.pods_run("mpijob")
        job = cluster.jobs["shoes"]
        run.wait_for_step(50)
        steps = len(run.history())
        hook = job.evict(1)
        self.assertEqual(hook.returncode, 0, hook.stdout + hook.stderr)
        run.wait_for(lambda: job.made == 2, "there was another launch")
        self.assertEqual(job.codes, [75], cluster.text())
        self.assertGreaterEqual(len(run.history()), steps, "a checkpoint was made for the eviction")
        self.assert_as_undisturbed(run, cluster)


if __name__ == "__main__":
    unittest.main()
