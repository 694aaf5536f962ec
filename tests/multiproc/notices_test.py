"""A cloud says that it takes a machine away: its node leaves between two steps, the others go on; where
none would be left, the run ends with a checkpoint. Weights are those of an undisturbed run."""
import os
import unittest

from harness import DEADLINE_S, get
from metadata_server import MetadataServer, aws_interruption
from nodes import Node, NodesTest

INTERRUPTION = "/latest/meta-data/spot/instance-action"
REBALANCE = "/latest/meta-data/events/recommendations/rebalance"


class Notices(NodesTest):
    train = {"global_batch": 64, "slots": 8, "max_steps": 600}
    slot_ms = 20

    def test_the_node_that_is_taken_away_leaves_and_the_other_goes_on(self):
        with MetadataServer("gcp") as service:
            service.answers["/computeMetadata/v1/instance/preempted"] = "FALSE"
            service.answers["/computeMetadata/v1/instance/maintenance-event"] = "NONE"
            there = ["env", f"LOCKSTEP_METADATA_URL={service.setting}"]
            run, (stays, goes) = self.start_nodes({"node-a": [], "node-b": there}, 2)
            service.wait_until_asked(more=4)
            self.assertEqual(len(run.workers()), 4, "FALSE is no notice")
            service.answers["/computeMetadata/v1/instance/preempted"] = "TRUE"
            run.wait_for(lambda: run.workers() == stays.pids(), "node-a goes on")
            self.assert_as_if_nothing_had_happened(run)
            self.assertEqual(goes.agent.wait(DEADLINE_S), 0)
        self.assert_event(run, "node_notice", names="node-b", says="GCP preemption")
        self.assertEqual(run.summary()["terms"], 2, "the second one is start_nodes()'s own")
        self.assertIn("node-b is to be taken away in 0:30 (GCP preemption); its workers leave",
                      run.text())

    def test_where_the_coordinator_is_the_workers_leave_and_it_serves_on(self):
        with MetadataServer("aws") as service:
            run = self.start(self.job_of(), "--workers", 2,
                             env={**os.environ, "LOCKSTEP_METADATA_URL": service.setting})
            run.wait_for_step(10)
            other = Node(run, "node-b", 2, ["env", "LOCKSTEP_METADATA_URL=none"])
            self.addCleanup(self.reap, [other])
            targets = f"http://{run.coordinator()['http']}/sd"
            run.wait_for(lambda: b"node-b" in get(targets), "its agent is there")
            self.succeed("scale", run.run_dir, 4)
            run.wait_for_workers(4)
            service.answers[INTERRUPTION] = aws_interruption(120)
            run.wait_for(lambda: run.workers() == other.pids(), "node-b goes on")
            self.assert_as_if_nothing_had_happened(run)
            self.assertEqual(other.agent.wait(DEADLINE_S), 0)
            self.assertEqual(run.summary()["terms"], 1)
            again = self.start(self.job_of(), "--workers", 1, name="again",
                               env={**os.environ, "LOCKSTEP_METADATA_URL": service.setting})
            self.assertEqual(again.wait(), 75, again.text())
            self.assertIn("nothing starts here: this machine is to be taken away", again.text())

    def test_the_only_node_ends_with_a_checkpoint_and_goes_on_elsewhere(self):
        with MetadataServer("aws") as service:
            run = self.start(self.job_of(), "--workers", 2,
                             env={**os.environ, "LOCKSTEP_METADATA_URL": service.setting})
            run.wait_for_step(20)
            service.answers[REBALANCE] = '{"noticeTime": "2026-12-01T13:41:49Z"}'
            service.wait_until_asked(more=3)
            run.wait_for_more_steps(5)
            service.answers[INTERRUPTION] = aws_interruption(120)
            self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.assertIn("may be taken away (AWS rebalance recommendation); its workers stay",
                      run.text())
        self.assertRegex(run.text(), r"is to be taken away in [12]:\d\d \(AWS spot interruption: "
                                     r"terminate\); its workers leave")
        rest = self.start("--resume", "--workers", 3)
        self.assert_as_if_nothing_had_happened(rest)

    def test_a_forecast_is_enough_where_the_job_says_so(self):
        with MetadataServer("aws") as service:
            run = self.start(self.job_of(cluster={"on_rebalance_notice": "drain"}), "--workers", 1,
                             env={**os.environ, "LOCKSTEP_METADATA_URL": service.setting})
            run.wait_for_step(20)
            service.answers[REBALANCE] = '{"noticeTime": "2026-12-01T13:41:49Z"}'
            self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.assertIn("may be taken away (AWS rebalance recommendation); its workers leave",
                      run.text())


if __name__ == "__main__":
    unittest.main()
