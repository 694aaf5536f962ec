"""Agents with the variables of a launcher that, unlike mpirun, ends no process: every rank must
find the run, and its end and code, by itself."""
import os
import pathlib
import signal
import unittest

from launches import LaunchTest


def expects(pid, number):
    """Whether a process already handles the signal."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("SigCgt:", "SigBlk:")) and int(line.split()[1], 16) >> (number - 1) & 1:
            return True
    return False


class Ranks(LaunchTest):
    def test_all_ranks_end_with_the_code_of_the_run(self):
        ranks = self.ranks(self.job_of())
        ranks[0].wait_for_step(50)
        for rank in ranks:
            rank.process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.codes(ranks), [75, 75, 75], ranks[0].text()[-3000:])
        ranks = self.ranks(self.job_of())
        self.assertEqual(self.codes(ranks), [0, 0, 0], ranks[0].text()[-3000:])
        self.assert_as_if_nothing_had_happened(ranks[0])
        self.assertEqual([rank.text() for rank in ranks[1:]], ["", ""])
        self.assertEqual(self.codes(self.ranks(self.job_of())), [0, 0, 0], "it is done already")

    def test_all_ranks_end_with_the_code_of_a_run_that_did_not_begin(self):
        job = self.job(self.scratch / "nowhere", data={"train": {"format": "idx",
                                                                 "path": str(self.scratch / "no")}})
        ranks = self.ranks(job)
        self.assertEqual(self.codes(ranks), [66, 66, 66], ranks[0].text()[-3000:])
        self.assertEqual([rank.text() for rank in ranks[1:]], ["", ""])

    def test_all_ranks_end_at_once_with_a_job_that_is_refused_before_there_is_a_directory(self):
        ranks = self.ranks(self.job_of(), "train.epoch=3")
        self.assertEqual(self.codes(ranks), [64, 64, 64], ranks[0].text()[-3000:])
        self.assertEqual([rank.text() for rank in ranks[1:]], ["", ""])
        ranks = self.ranks(self.job_of())
        self.assertEqual(self.codes(ranks), [0, 0, 0], "nothing is left that is in the way")

    def test_all_ranks_of_a_launch_that_finds_its_directory_in_use_end_at_once(self):
        ranks = self.ranks(self.job_of())
        ranks[0].wait_for_step(50)
        others = self.ranks(self.job_of())
        self.assertEqual(self.codes(others), [64, 64, 64], others[0].text()[-3000:])
        self.assertEqual(self.codes(ranks), [0, 0, 0], ranks[0].text()[-3000:])

    def test_one_rank_that_is_stopped_leaves_and_the_others_go_on(self):
        ranks = self.ranks(self.job_of())
        ranks[0].wait_for_step(50)
        ranks[2].process.send_signal(signal.SIGTERM)
        self.assertEqual(self.codes(ranks), [0, 0, 0], ranks[0].text()[-3000:])
        self.assert_as_if_nothing_had_happened(ranks[0])

    def test_a_rank_that_waits_in_vain_can_be_stopped(self):
        rank = self.ranks(self.job_of(), size=2)[1:][0]
        rank0 = self.runs[-2]
        os.kill(rank0.process.pid, signal.SIGKILL)
        rank0.wait()
        rank.wait_for(lambda: expects(rank.process.pid, signal.SIGTERM), "it expected signals")
        rank.process.send_signal(signal.SIGTERM)
        self.assertIn(rank.wait(), (0, 75))

    def test_nonsense_in_the_variables_is_refused(self):
        ranks = self.ranks(self.job_of(), size=1, env={"LOCKSTEP_RANK": "7"})
        self.assert_fails(ranks[0], 64, names=["LOCKSTEP_RANK", 7])


if __name__ == "__main__":
    unittest.main()
