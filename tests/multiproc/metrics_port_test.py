"""Another process has the port of metrics.listen: watching never stops training."""
import json
import os
import signal
import socket
import unittest

from disturbed import DisturbedTest
from harness import get
from ports import held_port


class TakenPort(DisturbedTest):
    def take(self, port):
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.addCleanup(taken.close)

        def bound():
            taken.bind(("127.0.0.1", port))
            taken.listen()
            return True
        return taken, bound

    def test_a_coordinator_that_takes_over_goes_on_elsewhere_and_comes_back(self):
        port = held_port(self.addCleanup)
        run = self.start_run(2, metrics={"listen": f"127.0.0.1:{port}"})
        agent_and_workers = run.workers()
        taken, bound = self.take(port)
        killed = run.coordinator()["pid"]
        os.kill(run.process.pid, signal.SIGSTOP)  # its successor waits until the port is taken
        os.kill(killed, signal.SIGKILL)
        run.wait_for(bound, "the port was taken")
        os.kill(run.process.pid, signal.SIGCONT)
        run.wait_for(lambda: run.coordinator()["pid"] != killed, "another coordinator served")
        run.wait_for(lambda: run.status()["term"] > 1, "it answers elsewhere")
        self.assertNotEqual(run.coordinator()["http"], f"127.0.0.1:{port}")
        self.assert_event(run, "http_port_taken", names=port)
        run.wait_for_more_steps(20)
        self.assertEqual(run.workers(), agent_and_workers)
        taken.close()
        run.wait_for(lambda: run.coordinator()["http"] == f"127.0.0.1:{port}", "it came back")
        self.assertEqual(json.loads(get(f"http://127.0.0.1:{port}/api/v1/status"))["term"], 2)
        self.assert_as_if_nothing_had_happened(run)


if __name__ == "__main__":
    unittest.main()
