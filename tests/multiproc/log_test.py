"""Lines of all logs of a run can be matched by run, rank, generation and step."""
import json
import os
import signal
import unittest

from harness import LockstepTest


class Logs(LockstepTest):
    def lines(self, run, name):
        with open(run.run_dir / "logs" / f"{name}.log.jsonl") as f:
            return [json.loads(line) for line in f]

    def test_every_line_tells_where_its_process_stood(self):
        train = {"global_batch": 64, "slots": 4, "max_steps": 300}
        steps = train["max_steps"]
        job = self.job(self.small_data(), job="placed", model={"name": "mlp"}, train=train,
                       checkpoint={"every_steps": 50})
        run = self.start(job, "--workers", 2, slot_ms=20)
        run.wait_for_workers(2)
        run.wait_for_step(100)
        os.kill(run.worker(1), signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])

        coordinator = self.lines(run, "coordinator")
        serving = next(i for i, line in enumerate(coordinator) if line["event"] == "serving")
        for line in coordinator[serving:]:
            self.assertEqual(line["run"], "placed", line)
            self.assertIn("step", line)
            self.assertNotIn("rank", line, "it has none")
        started = {line["event"]: line for line in coordinator}
        self.assertEqual(started["run_ended"]["step"], steps)
        self.assertGreaterEqual(started["run_ended"]["generation"], 2)
        died = started["member_died"]
        self.assertGreater(died["step"], 0)
        self.assertGreaterEqual(died["generation"], 1)

        for rank in (0, 1):
            lines = self.lines(run, f"worker-{rank}")
            self.assertEqual({line["run"] for line in lines}, {"placed"})
            last = lines[-1]
            self.assertEqual((last["rank"], last["step"]), (rank, steps), last)
            self.assertEqual(last["generation"], started["run_ended"]["generation"])
        checkpoints = [line for line in self.lines(run, "worker-0")
                       if line["event"] == "checkpoint_written"]
        self.assertTrue(checkpoints)
        for line in checkpoints:
            self.assertEqual(line["rank"], 0)
            self.assertGreaterEqual(line["generation"], 1)
        others = [path.stem.split(".")[0] for path in (run.run_dir / "logs").glob("*.log.jsonl")]
        for name in set(others) - {"coordinator", "worker-0", "worker-1"}:
            self.assertEqual({line["run"] for line in self.lines(run, name)}, {"placed"}, name)


if __name__ == "__main__":
    unittest.main()
