"""A stranger takes the coordinator's port while the coordinator starts again."""
import json
import os
import select
import signal
import socket
import unittest

from disturbed import DisturbedTest
from harness import DEADLINE_S
from impostor import Impostor, refuse


class AnotherHasThePort(DisturbedTest):
    slot_ms = 10

    def control_address(self, run):
        host, port = run.coordinator()["control"].rsplit(":", 1)
        return host, int(port)

    def take_the_port(self, run, with_each):
        workers, old = run.workers(), self.control_address(run)
        os.kill(run.coordinator()["pid"], signal.SIGKILL)
        impostor = Impostor(old, with_each)
        self.addCleanup(impostor.leave)
        run.wait_for(lambda: self.control_address(run) != old, "the coordinator has another port")
        return workers, old, impostor

    def assert_gains_nothing(self, run, workers, impostor):
        run.wait_for(lambda: run.status()["state"] == "training", "the run went on")
        run.wait_for_more_steps(100)
        self.assertGreater(impostor.met, 0, "or nothing was tried")
        self.assertEqual(run.workers(), workers, "nobody was ended")
        self.assert_as_if_nothing_had_happened(run)

    def test_its_refusals_end_no_worker(self):
        run = self.start_run(2)
        workers, _, impostor = self.take_the_port(run, refuse)
        self.assert_gains_nothing(run, workers, impostor)

    def test_it_cannot_pass_a_proof_on_to_the_new_coordinator(self):
        run = self.start_run(2)
        relayed = []

        def relay(line):
            there = self.control_address(run)
            if there == line.getsockname():
                return  # the new one is not there yet
            with socket.create_connection(there, timeout=DEADLINE_S) as server:
                relayed.append(there)
                while True:
                    ready, _, _ = select.select([line, server], [], [], 5)
                    for end in ready:
                        words = end.recv(65_536)
                        if not words:
                            return
                        (server if end is line else line).sendall(words)
                    if not ready:
                        return

        workers, old, impostor = self.take_the_port(run, relay)
        # A caller that has not read the new address dials the old one.
        stale = self.scratch / "stale"
        stale.mkdir()
        for name in ("token", "job.pb"):
            (stale / name).write_bytes((run.run_dir / name).read_bytes())
            (stale / name).chmod(0o600)
        coordinator = {**run.coordinator(), "control": f"{old[0]}:{old[1]}"}
        (stale / "coordinator.json").write_text(json.dumps(coordinator))
        done = self.outcome("scale", stale, 1)
        self.assertNotEqual(done[0], 0, "nothing was ordered through the one in between")
        self.assertIn("relays", done[1])
        self.assertTrue(relayed)
        self.assert_gains_nothing(run, workers, impostor)


if __name__ == "__main__":
    unittest.main()
