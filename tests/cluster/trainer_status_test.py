"""Progress reports to Kubeflow Trainer: a run with its variables reports to a real HTTPS server, and
whatever that server does, the run is as if there were none."""
import os
import signal
import time
import unittest

from disturbed import DisturbedTest
from fails_with import events, told
from harness import standing_still
from status_server import StatusServer

WORKERS = 2
EVERY_S = 5  # between two reports, but for the last one


def percents(statuses):
    return [status["progressPercentage"] for status in statuses]


class TrainerStatus(DisturbedTest):
    def setUp(self):
        super().setUp()
        self.ours = self.certify("ours")
        self.server = StatusServer(self.scratch / "server", self.ours)
        self.addCleanup(self.server.stop)
        self.token = self.scratch / "mounted-token"
        self.replace_token("first")

    def certify(self, name):
        self.succeed("certs", self.scratch / name)
        return self.scratch / name

    def replace_token(self, token):
        """Replaces the file as the kubelet does. All users in the pod may read it."""
        self.server.set("token", token)
        fresh = self.scratch / "mounted-token.new"
        fresh.write_text(token)
        fresh.chmod(0o644)
        fresh.rename(self.token)

    def start_reporting(self, authority=None):
        # The undisturbed run has no server to report to.
        job = self.job_of()
        env = {**os.environ, "KUBEFLOW_TRAINER_SERVER_URL": self.server.url,
               "KUBEFLOW_TRAINER_SERVER_CA_CERT": str((authority or self.ours) / "ca.crt"),
               "KUBEFLOW_TRAINER_SERVER_TOKEN": str(self.token)}
        return self.start(job, "--workers", WORKERS, env=env)

    def wait_for_reports(self, run, count):
        run.wait_for(lambda: len(self.server.statuses()) >= count, f"{count} reports came")

    def let_the_interval_pass(self, run):
        """Waits until another report is due. The workers stand still, so the run does not end
        first."""
        run.wait_for_workers(WORKERS)
        with standing_still(run):
            run.wait_for(lambda: time.monotonic() - self.server.requests()[-1]["at_s"] > EVERY_S,
                         "the time between two reports was over")

    def assert_told_to_the_end(self, statuses):
        self.assertEqual(percents(statuses), sorted(percents(statuses)))
        self.assertEqual(percents(statuses).count(100), 1)
        last = statuses[-1]
        self.assertEqual((last["progressPercentage"], last["estimatedRemainingSeconds"]), (100, 0))
        metrics = {metric["name"]: metric["value"] for metric in last["metrics"]}
        steps = str(self.train["max_steps"])
        self.assertEqual((metrics["step"], metrics["total_steps"]), (steps, steps))
        self.assertGreater(float(metrics["loss"]), 0)
        self.assertGreater(float(metrics["samples_per_second"]), 0)

    def test_a_run_is_reported_to_its_end_with_the_token_that_holds(self):
        run = self.start_reporting()
        self.wait_for_reports(run, 1)
        self.replace_token("second")
        self.let_the_interval_pass(run)
        self.wait_for_reports(run, 2)
        self.assert_as_if_nothing_had_happened(run)
        requests = self.server.requests()
        self.assert_told_to_the_end(self.server.statuses())
        self.assertEqual({request["code"] for request in requests}, {200})
        self.assertEqual(sorted({request["token"] for request in requests}),
                         ["Bearer first", "Bearer second"])
        gaps = [b["at_s"] - a["at_s"] for a, b in zip(requests, requests[1:-1])]
        self.assertTrue(all(gap > EVERY_S - 1 for gap in gaps), gaps)
        self.assertEqual(events(run, "trainer_status_not_sent"), [])
        self.assertEqual(len(events(run, "trainer_status")), 1)

    def test_the_coordinator_that_takes_over_reports_on(self):
        run = self.start_reporting()
        self.wait_for_reports(run, 1)
        killed, told = run.coordinator()["pid"], len(self.server.statuses())
        os.kill(killed, signal.SIGKILL)
        run.wait_for(lambda: run.coordinator()["pid"] != killed, "another coordinator served")
        self.let_the_interval_pass(run)
        self.wait_for_reports(run, told + 1)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_same_result(run, self.undisturbed)
        self.assert_told_to_the_end(self.server.statuses())

    def test_a_server_that_fails_or_hangs_disturbs_nobody(self):
        self.server.set("mood", "fail")
        run = self.start_reporting()
        run.wait_for(lambda: self.server.requests()[0]["code"] == 500, "the server failed")
        self.server.set("mood", "hang")
        self.let_the_interval_pass(run)
        run.wait_for(lambda: self.server.requests()[-1]["code"] == 0, "it was tried again")
        self.assert_as_if_nothing_had_happened(run)
        # Asked at its end: where the machine is fast it ends while the server still hangs.
        self.assertEqual(run.summary()["generations"], 1, "somebody was disturbed:\n" +
                         run.coordinator_log())
        complaints = events(run, "trainer_status_not_sent")
        self.assertEqual(len(complaints), 1, complaints)
        self.assert_event(run, "trainer_status_not_sent", names=500)
        self.assertEqual(self.server.statuses(), [])

    def test_a_server_of_another_authority_is_told_nothing(self):
        run = self.start_reporting(authority=self.certify("others"))
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual(self.server.requests(), [])
        complaints = events(run, "trainer_status_not_sent")
        self.assertEqual(len(complaints), 1, complaints)
        self.assert_event(run, "trainer_status_not_sent", says="certificate")

    def test_a_run_that_is_stopped_tells_how_far_it_came(self):
        run = self.start_reporting()
        self.wait_for_reports(run, 1)
        run.wait_for_more_steps(100)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        stopped = self.server.statuses()
        self.assertLess(stopped[-1]["progressPercentage"], 100)
        self.assertNotIn("estimatedRemainingSeconds", stopped[-1])
        self.assertEqual(stopped[-1]["metrics"][0],
                         {"name": "step", "value": str(run.summary()["steps"])})


if __name__ == "__main__":
    unittest.main()
