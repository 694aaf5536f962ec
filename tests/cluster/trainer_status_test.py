"""Progress reports to Kubeflow Trainer: a run with its variables reports to a real HTTPS server, and
whatever that server does, the run is as if there were none."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "multiproc"))

from disturbed import DisturbedTest  # noqa: E402
from harness import BIN  # noqa: E402
from status_server import StatusServer  # noqa: E402

WORKERS = 2
EVERY_S = 5  # between two reports, but for the last one


def percents(statuses):
    return [status["progressPercentage"] for status in statuses]


class TrainerStatus(DisturbedTest):
    # Long enough for a second report.
    train = {"global_batch": 64, "slots": 4, "max_steps": 7000}

    def setUp(self):
        super().setUp()
        self.ours = self.certify("ours")
        self.server = StatusServer(self.scratch / "server", self.ours)
        self.addCleanup(self.server.stop)
        self.token = self.scratch / "mounted-token"
        self.replace_token("first")

    def certify(self, name):
        made = subprocess.run([BIN / "lockstep", "certs", self.scratch / name], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(made.returncode, 0, made.stderr)
        return self.scratch / name

    def replace_token(self, token):
        """The kubelet's way; anybody in the pod may read it."""
        self.server.set("token", token)
        fresh = self.scratch / "mounted-token.new"
        fresh.write_text(token)
        fresh.chmod(0o644)
        fresh.rename(self.token)

    def start_reporting(self, authority=None):
        job = self.job_of()  # the undisturbed run reports to nobody
        env = {**os.environ, "KUBEFLOW_TRAINER_SERVER_URL": self.server.url,
               "KUBEFLOW_TRAINER_SERVER_CA_CERT": str((authority or self.ours) / "ca.crt"),
               "KUBEFLOW_TRAINER_SERVER_TOKEN": str(self.token)}
        return self.start(job, "--workers", WORKERS, env=env)

    def events(self, run, *names):
        lines = (run.run_dir / "logs" / "coordinator.log.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["event"] in names]

    def wait_for_reports(self, run, count):
        run.wait_for(lambda: len(self.server.statuses()) >= count, f"{count} reports came")

    def assert_told_to_the_end(self, statuses):
        self.assertEqual(percents(statuses), sorted(percents(statuses)))
        self.assertEqual(percents(statuses).count(100), 1)
        last = statuses[-1]
        self.assertEqual((last["progressPercentage"], last["estimatedRemainingSeconds"]), (100, 0))
        metrics = {metric["name"]: metric["value"] for metric in last["metrics"]}
        steps = str(self.paced_train["max_steps"])
        self.assertEqual((metrics["step"], metrics["total_steps"]), (steps, steps))
        self.assertGreater(float(metrics["loss"]), 0)
        self.assertGreater(float(metrics["samples_per_second"]), 0)

    def test_a_run_is_reported_to_its_end_with_the_token_that_holds(self):
        run = self.start_reporting()
        self.wait_for_reports(run, 1)
        self.replace_token("second")
        self.wait_for_reports(run, 2)
        self.assert_as_if_nothing_had_happened(run)
        requests = self.server.requests()
        self.assert_told_to_the_end(self.server.statuses())
        self.assertEqual({request["code"] for request in requests}, {200})
        self.assertEqual(sorted({request["token"] for request in requests}),
                         ["Bearer first", "Bearer second"])
        gaps = [b["at_s"] - a["at_s"] for a, b in zip(requests, requests[1:-1])]
        self.assertTrue(all(gap > EVERY_S - 1 for gap in gaps), gaps)
        self.assertEqual(self.events(run, "trainer_status_not_sent"), [])
        self.assertEqual(len(self.events(run, "trainer_status")), 1)

    def test_the_coordinator_that_takes_over_reports_on(self):
        run = self.start_reporting()
        self.wait_for_reports(run, 1)
        killed, told = run.coordinator()["pid"], len(self.server.statuses())
        os.kill(killed, signal.SIGKILL)
        run.wait_for(lambda: run.coordinator()["pid"] != killed, "another coordinator served")
        self.wait_for_reports(run, told + 1)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_same_result(run, self.undisturbed)
        self.assert_told_to_the_end(self.server.statuses())

    def test_a_server_that_fails_or_hangs_disturbs_nobody(self):
        self.server.set("mood", "fail")
        run = self.start_reporting()
        run.wait_for(lambda: self.server.requests()[0]["code"] == 500, "the server failed")
        self.server.set("mood", "hang")
        run.wait_for(lambda: self.server.requests()[-1]["code"] == 0, "it was tried again")
        generation = run.status()["generation"]
        self.assertEqual(generation, 1, "nobody was disturbed")
        self.assert_as_if_nothing_had_happened(run)
        complaints = self.events(run, "trainer_status_not_sent")
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn("answers 500 (Internal error)", complaints[0]["message"])
        self.assertEqual(self.server.statuses(), [])

    def test_a_server_of_another_authority_is_told_nothing(self):
        run = self.start_reporting(authority=self.certify("others"))
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual(self.server.requests(), [])
        complaints = self.events(run, "trainer_status_not_sent")
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn("its certificate does not hold", complaints[0]["message"])

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
