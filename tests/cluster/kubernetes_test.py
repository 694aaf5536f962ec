"""Executes the commands of rendered manifests as the pods would, with the same variables, volumes,
user, read-only root and names. Kubernetes kills, evicts and remakes pods, and the weights equal an
undisturbed run's."""
import unittest

from harness import DEADLINE_S, lockstep
from pods import PodsTest, needs_pods
from status_server import StatusServer


@needs_pods
class Pods(PodsTest):
    def test_jobset_with_a_killed_worker_pod_and_a_killed_coordinators_pod(self):
        run, cluster = self.pods_run("jobset")
        run.wait_for_step(50)
        for pod in cluster.pods():
            self.assertTrue(pod.is_confined(), pod.name)
        coordinator = cluster.jobs["coordinator"].pods[0]
        probe = coordinator.execute(coordinator.container["readinessProbe"]["exec"]["command"])
        self.assertEqual(probe.returncode, 0, probe.stdout + probe.stderr)
        cluster.jobs["worker"].pods[1].kill()
        run.wait_for(lambda: cluster.jobs["worker"].made == 4 and len(run.workers()) == 3,
                     "another pod had its place")
        run.wait_for_more_steps(100)
        before = run.coordinator()
        workers = {(m["node"], m["pid"]) for m in run.status()["members"]}
        cluster.jobs["coordinator"].pods[0].kill()
        run.wait_for(lambda: run.coordinator()["term"] > before["term"], "another one took over")
        run.wait_for(lambda: {(m["node"], m["pid"]) for m in run.status()["members"]} == workers,
                     "the same workers were back")
        run.wait_for_more_steps(100)
        self.assert_as_undisturbed(run, cluster)
        self.assertEqual(cluster.jobs["worker"].failures, 1)
        self.assertEqual(cluster.jobs["coordinator"].failures, 1)

    def test_indexed_job_with_an_evicted_pod_and_a_killed_first_one(self):
        run, cluster = self.pods_run("job")
        job = cluster.jobs["shoes"]
        run.wait_for_step(50)
        job.pods[2].terminate()
        run.wait_for(lambda: job.made == 4 and len(run.workers()) == 3, "another pod had its place")
        run.wait_for_more_steps(100)
        job.pods[0].kill()
        run.wait_for(lambda: job.made == 5 and len(run.workers()) == 3, "it was taken over")
        run.wait_for_more_steps(100)
        self.assert_as_undisturbed(run, cluster)
        self.assertEqual(job.failures, 1, "an eviction is no failure")

    def test_jobset_taken_away_ends_at_a_checkpoint_and_goes_on_when_it_is_back(self):
        run, cluster = self.pods_run("jobset")
        run.wait_for_step(50)
        cluster.delete_all()
        codes = [code for job in cluster.jobs.values() for code in job.codes]
        self.assertEqual(codes, [75] * 4, cluster.text())
        self.assertEqual(run.summary()["exit_code"], 75)
        steps = len(run.history())
        cluster.jobs.clear()
        cluster.apply(self.render("jobset"))
        run.wait_for_step(steps + 1)
        self.assert_as_undisturbed(run, cluster)

    def test_jobset_whose_workers_are_told_first_ends_at_a_checkpoint_by_itself(self):
        run, cluster = self.pods_run("jobset")
        run.wait_for_step(50)
        steps = len(run.history())
        for job in cluster.jobs.values():
            job.is_deleted = True
        for pod in cluster.jobs["worker"].pods.values():
            pod.terminate()
        run.wait_for(lambda: not cluster.pods(), "all pods ended")
        self.assertEqual([code for job in cluster.jobs.values() for code in job.codes], [75] * 4,
                         cluster.text())
        self.assertGreaterEqual(run.summary()["steps"], steps, "a checkpoint was made of them")

    def test_jobset_whose_coordinators_pod_is_evicted_stops_at_a_checkpoint_and_goes_on(self):
        run, cluster = self.pods_run("jobset")
        run.wait_for_step(50)
        cluster.jobs["coordinator"].pods[0].terminate()
        run.wait_for(lambda: cluster.jobs["coordinator"].made == 2, "another pod had its place")
        self.assertEqual(cluster.jobs["coordinator"].codes, [75], cluster.text())
        self.assert_as_undisturbed(run, cluster)
        self.assertEqual([job.failures for job in cluster.jobs.values()], [0, 0])

    def serve_status(self, cluster):
        """Serves on a host of its own, under a name that its certificate is for."""
        name, certificates = "status.trainer.svc", self.scratch / "certificates"
        host = cluster.take_host()
        cluster.name_address(name, cluster.hosts.address(host))
        lockstep("certs", certificates, "--hosts", name, timeout=DEADLINE_S).check_returncode()
        server = StatusServer(self.scratch / "status", certificates, cluster.hosts.address(host),
                              prefix=cluster.hosts.on(host))
        self.addCleanup(server.stop)
        server.url = server.url.replace(cluster.hosts.address(host), name)
        server.projected = self.scratch / "projected"
        server.projected.mkdir()
        for path, text in (("ca.crt", (certificates / "ca.crt").read_text()), ("token", "pod's")):
            (server.projected / path).write_text(text)
            (server.projected / path).chmod(0o644)
        server.set("token", "pod's")
        cluster.status_server = server

    def test_trainjob_with_a_killed_pod(self):
        run, cluster = self.pods_run("trainjob", before=self.serve_status)
        job = cluster.jobs["node"]
        run.wait_for_step(50)
        job.pods[1].kill()
        run.wait_for(lambda: job.made == 4 and len(run.workers()) == 3, "another pod had its place")
        self.assert_as_undisturbed(run, cluster)
        told = cluster.status_server.statuses()
        self.assertEqual(told[-1]["progressPercentage"], 100)
        self.assertEqual(len(told), len(cluster.status_server.requests()), "all were taken")

    def test_a_job_that_cannot_work_fails_at_once(self):
        run, cluster = self.pods_run("job", "data.train.path=/nowhere")
        with self.assertRaisesRegex(AssertionError, r"failed \(66\)"):
            cluster.wait_complete()
        self.assertEqual(cluster.jobs["shoes"].made, 3)


if __name__ == "__main__":
    unittest.main()
