"""Shared parts of the tests of runs in pods (kubernetes.py)."""
import os
import unittest

from disturbed import SECTIONS, DisturbedTest
from harness import DEADLINE_S, lockstep, slow_slots
from hosts import why_not

try:
    import yaml
    from kubernetes import Kubernetes, PodsRun
    from pod_root import SLOW_SLOTS_HERE
except ImportError as error:
    yaml, LACK = None, f"{error} (Debian: python3-yaml)"
else:
    LACK = why_not()

USER = 65532
needs_pods = unittest.skipIf(LACK, f"pods cannot be made here: {LACK}")


class PodsTest(DisturbedTest):
    slot_ms = 8

    def render(self, kind, *words, workers=3):
        job = self.job("/data", name="shoes.yaml", job="shoes", train=self.train,
                       **SECTIONS)
        out = lockstep("k8s", "render", job, "--kind", kind, "--image",
                       "registry.example/lockstep:0.3", "--run-claim", "runs", "--data-claim", "data",
                       "--workers", workers, *words, timeout=DEADLINE_S)
        self.assertEqual(out.returncode, 0, out.stderr)
        return list(yaml.safe_load_all(out.stdout))

    def pods_run(self, kind, *words, addresses=6, before=lambda cluster: None):
        """`before`: called with the cluster before the run is applied."""
        self.job_of()  # the undisturbed run
        manifests = self.render(kind, *words)
        runs = self.scratch / "runs"
        runs.mkdir(exist_ok=True)
        os.chown(runs, USER, USER)  # as fsGroup does
        os.chmod(self.shared, 0o755)
        cluster = Kubernetes(self.scratch / f"cluster-{kind}", addresses,
                             {"runs": runs, "data": self.data},
                             slow_slots(self.slot_ms, SLOW_SLOTS_HERE))
        self.addCleanup(cluster.close)
        before(cluster)
        cluster.apply(manifests)
        run = PodsRun(cluster, runs / "shoes")
        return run, cluster

    def assert_as_undisturbed(self, run, cluster):
        cluster.wait_complete()
        self.assertEqual(run.summary()["exit_code"], 0, cluster.text()[-3000:])
        self.assert_same_result(run, self.undisturbed)
