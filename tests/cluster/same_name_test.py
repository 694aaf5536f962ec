"""Containers that have the host name of their image: one name, and the same pids."""
import os
import signal
import subprocess
import unittest

from fails_with import events
from harness import processes_of
from launches import LaunchTest

# Its processes count pids from 1, and nothing else is theirs.
CONTAINER = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
ONE_A_HOST = {"LOCKSTEP_LOCAL_RANK": "0", "LOCKSTEP_LOCAL_WORLD_SIZE": "1"}


def why_no_container():
    tried = subprocess.run([*CONTAINER, "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip()


@unittest.skipIf(reason := why_no_container(), reason)
class SameName(LaunchTest):
    def containers(self):
        ranks = self.ranks(self.job_of(), env=ONE_A_HOST, prefix=CONTAINER)
        ranks[0].wait_for_workers(3)
        return ranks

    def test_their_workers_are_told_apart_and_a_death_is_that_of_the_right_one(self):
        ranks = self.containers()
        members = ranks[0].status()["members"]
        self.assertEqual(len({member["node"] for member in members}), 3, members)
        pids = [member["pid"] for member in members]
        self.assertLess(len(set(pids)), 3, "two have one pid")
        self.assert_event(ranks[0], "same_node_name", advises="LOCKSTEP_NODE")
        ranks[0].wait_for_more_steps(20)
        workers = processes_of(ranks[0].run_dir, lambda words: words[0].endswith(b"-worker"))
        os.kill(max(workers), signal.SIGKILL)
        ranks[0].wait_for(lambda: ranks[0].status()["generation"] > 1, "the run went on")
        self.assertEqual(self.codes(ranks), [0, 0, 0], ranks[0].text()[-3000:])
        self.assertEqual(len(events(ranks[0], "member_died")), 1)
        for kind in ("worker_refused", "register_refused"):
            self.assertEqual(events(ranks[0], kind), [])
        self.assert_same_result(ranks[0], self.undisturbed)

    def test_a_coordinator_that_is_started_again_knows_them(self):
        ranks = self.containers()
        before = {member["id"]: member["node"] for member in ranks[0].status()["members"]}
        coordinator = processes_of(ranks[0].run_dir,
                                   lambda words: words[0].endswith(b"-coordinator"))[0]
        os.kill(coordinator, signal.SIGKILL)
        ranks[0].wait_for(lambda: ranks[0].status()["term"] > 1 and len(ranks[0].workers()) == 3,
                          "another coordinator had all workers")
        after = {member["id"]: member["node"] for member in ranks[0].status()["members"]}
        self.assertEqual(after, before)
        self.assertEqual(self.codes(ranks), [0, 0, 0], ranks[0].text()[-3000:])
        self.assert_same_result(ranks[0], self.undisturbed)


if __name__ == "__main__":
    unittest.main()
