"""Files of a run are deleted, cut or moved while it goes on, or afterwards: it says so or remakes
them. It never claims success over a journal that is lost.
"""
import json
import os
import signal
import unittest

from disturbed import DisturbedTest
from harness import lockstep, standing_still


class OwnFiles(DisturbedTest):
    def assert_loss_is_noticed(self, lose, names):
        run = self.start_run(2)
        lose(run.run_dir)
        self.assertEqual(run.wait(), 70, run.text()[-3000:])
        self.assert_fails(run, 70, names=names(run.run_dir))
        return run

    def test_a_deleted_journal_ends_the_run(self):
        self.assert_loss_is_noticed(lambda d: (d / "journal.db").unlink(),
                                    lambda d: d / "journal.db")

    def test_a_cut_log_of_the_journal_ends_the_run(self):
        run = self.start_run(2)
        # Seen as long before: the coordinator looks every few seconds.
        run.wait_for_more_steps(600)
        os.truncate(run.run_dir / "journal.db-wal", 0)
        self.assert_fails(run, 70, names=run.run_dir / "journal.db")

    def test_a_replaced_journal_ends_the_run(self):
        def replace(run_dir):
            copy = run_dir / "copy"
            copy.write_bytes((run_dir / "journal.db").read_bytes())
            copy.rename(run_dir / "journal.db")
        self.assert_loss_is_noticed(replace, lambda d: d / "journal.db")

    def test_a_run_directory_that_was_moved_ends_the_run(self):
        away = self.scratch / "away"
        run = self.assert_loss_is_noticed(lambda d: d.rename(away), lambda d: d)
        self.assertNotIn("logs are in", run.text())

    def test_a_deleted_or_cut_history_is_written_anew(self):
        run = self.start_run(2)
        for damage in (os.unlink, lambda path: os.truncate(path, 100)):
            damage(run.run_dir / "history.jsonl")
            run.wait_for_step(100)
            run.wait_for_more_steps(100)
        self.assert_as_if_nothing_had_happened(run)

    def test_a_history_that_goes_at_the_end_is_there_afterwards(self):
        run = self.start_run(2)
        run.wait_for_step(900)
        with standing_still(run):
            (run.run_dir / "history.jsonl").unlink()
        self.assert_as_if_nothing_had_happened(run)

    def test_without_its_address_a_dead_coordinator_is_still_followed(self):
        run = self.start_run(2)
        address = run.run_dir / "coordinator.json"
        first = json.loads(address.read_text())
        address.unlink()
        os.kill(first["pid"], signal.SIGKILL)
        run.wait_for(lambda: run.coordinator()["term"] > first["term"], "it took over")
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual(run.summary()["generations"], 1, "the workers trained on")

    def test_a_lost_address_comes_back_and_the_loss_of_a_lock_hides_no_run(self):
        run = self.start_run(2)
        (run.run_dir / "coordinator.json").unlink()
        run.wait_for(run.coordinator, "the address was there again")
        self.assert_as_if_nothing_had_happened(run)
        (run.run_dir / "lock").unlink()
        audited = lockstep("audit", run.run_dir)
        self.assertEqual(audited.returncode, 0, audited.stderr)


if __name__ == "__main__":
    unittest.main()
