"""`lockstep preflight`: what would keep a run from working is named before it, by hosts that are
really so."""
import os
import re
import subprocess
import unittest

import doctor_world
from fails_with import lacking
from harness import BIN, DEADLINE_S, LockstepTest, lockstep
from hosts import NETWORK, Hosts, why_not
from launches import needs_mpirun


class PreflightTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.run_dir = self.scratch / "run"
        self.job_file = self.job(self.small_data())

    def command(self, *overrides):
        return [BIN / "lockstep", "preflight", self.job_file, "--run-dir", self.run_dir,
                "--wait", "20", *overrides]

    def assert_ready(self, text, ranks, hosts):
        self.assertEqual(re.findall(r"\d+", text.splitlines()[-1])[:2], [str(ranks), str(hosts)])
        for subject in ("directory", "network", "clock", "version"):
            self.assertRegex(text, rf"(?m)^ok +{subject} ")
        self.assertNotRegex(text, "(?m)^(FAILED|warning)")
        self.assertFalse(self.run_dir.exists(), "nothing is left behind")


class OneMachine(PreflightTest):
    def test_alone(self):
        ended = subprocess.run(self.command(), capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assert_ready(ended.stdout, ranks=1, hosts=1)

    def test_a_file_where_the_directory_should_be(self):
        self.run_dir.write_text("")
        ended = subprocess.run(self.command(), capture_output=True, text=True, timeout=DEADLINE_S)
        self.assert_fails(ended, 78, names=self.run_dir, says="Not a directory")

    @needs_mpirun
    def test_under_mpirun(self):
        ended = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3",
                                *self.command()], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assert_ready(ended.stdout, ranks=3, hosts=1)


@unittest.skipIf(reason := doctor_world.why_no_fuse(), reason)
class RenamesOpenFiles(PreflightTest):
    """A mount that keeps an open file under another name when it is removed, as NFS does."""

    def setUp(self):
        super().setUp()
        (self.scratch / "server").mkdir()
        try:
            mount = doctor_world.Mount(self.scratch / "server", self.scratch / "mount")
        except doctor_world.CannotMount as error:
            self.skipTest(f"NOTHING WAS MOUNTED: {error}")
        self.addCleanup(mount.close)
        self.run_dir = self.scratch / "mount" / "run"

    def test_nothing_is_left_and_the_run_begins_there(self):
        self.run_dir.mkdir()
        ended = subprocess.run(self.command(), capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertEqual(os.listdir(self.run_dir), [])
        self.finish(self.job_file, "--workers", 1, name="mount/run")

    def test_nothing_is_left_under_a_launcher(self):
        ranks = [subprocess.Popen(self.command(), stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "LOCKSTEP_RANK": str(rank),
                                       "LOCKSTEP_WORLD_SIZE": "2", "LOCKSTEP_LAUNCH_ID": "test"})
                 for rank in range(2)]
        said = [rank.communicate(timeout=DEADLINE_S)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], said)
        self.assert_ready(said[0], ranks=2, hosts=1)


class LeftByAKilledOne(PreflightTest):
    def test_it_does_not_matter(self):
        (self.run_dir / "preflight-alone.tmp").mkdir(parents=True)
        (self.run_dir / "preflight-alone.tmp" / "lock").touch()
        (self.run_dir / ".nfs000000000001").touch()
        self.finish(self.job_file, "--workers", 1)


@unittest.skipIf(reason := why_not(), reason)
class SeveralHosts(PreflightTest):
    def setUp(self):
        super().setUp()
        self.hosts = Hosts(3)
        self.addCleanup(self.hosts.close)

    def preflight(self, *overrides, prefixes={}):
        """Rank i on host i. Gives the exit codes and what each said."""
        ranks = []
        for i in range(3):
            env = {**os.environ, "LOCKSTEP_RANK": str(i), "LOCKSTEP_WORLD_SIZE": "3",
                   "LOCKSTEP_LOCAL_RANK": "0", "LOCKSTEP_LOCAL_WORLD_SIZE": "1",
                   "LOCKSTEP_LAUNCH_ID": "test"}
            command = self.command(f"comm.network={NETWORK}", *overrides)
            ranks.append(subprocess.Popen([*self.hosts.on(i), *prefixes.get(i, []), *command],
                                          env=env, text=True, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))
        said = [rank.communicate(timeout=DEADLINE_S)[0] for rank in ranks]
        return [rank.returncode for rank in ranks], said

    def assert_failed(self, text, subject, ranks, *names):
        rows = re.findall(rf"(?m)^FAILED +{subject} +{ranks}: (.*)", text)
        self.assertTrue(any(not lacking(row, names) for row in rows), f"{names} in:\n{text}")

    def test_hosts_that_share_all_are_ready(self):
        codes, said = self.preflight()
        self.assertEqual(codes, [0, 0, 0], said)
        self.assert_ready(said[0], ranks=3, hosts=1)  # by its name
        self.assertEqual(said[1:], ["", ""], "rank 0 speaks for all")

    def test_a_host_whose_cable_is_pulled_is_a_matter_of_the_route(self):
        self.hosts.cut(1)
        codes, said = self.preflight()
        self.assertEqual(codes, [78, 78, 78], said)
        self.assert_failed(said[0], "route", "ranks 0, 2", "rank 1", "10.77.0.2")
        self.assert_failed(said[0], "route", "rank 1", "rank 0", "10.77.0.1")

    def test_a_host_that_is_not_in_the_network(self):
        for words in (["address", "del", "10.77.0.3/24", "dev", "eth0"],
                      ["address", "add", "10.99.0.3/24", "dev", "eth0"]):
            subprocess.run([*self.hosts.on(2), "ip", *words], check=True)
        codes, said = self.preflight()
        self.assertEqual(codes, [78, 78, 78], said)
        self.assert_failed(said[0], "network", "rank 2", "10.77.0.0/24")

    def test_a_name_that_leads_nowhere(self):
        codes, said = self.preflight("comm.advertise=coordinator.invalid")
        self.assertEqual(codes, [78, 78, 78], said)
        self.assert_failed(said[0], "name", "ranks 0-2", "coordinator.invalid")

    def test_a_certificate_that_is_not_for_all_hosts(self):
        lockstep("certs", self.scratch / "tls", "--hosts", "10.77.0.1,10.77.0.3",
                 timeout=DEADLINE_S).check_returncode()
        codes, said = self.preflight(f"comm.tls={self.scratch}/tls")
        self.assertEqual(codes, [78, 78, 78], said)
        self.assert_failed(said[0], "certificate", "ranks 0, 2", "rank 1", "10.77.0.2")

    def test_a_directory_of_its_own_is_told_by_both_sides(self):
        self.run_dir.mkdir()
        codes, said = self.preflight(prefixes={2: [
            "unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', self.run_dir]})
        self.assertEqual(codes, [78, 78, 78], said)
        self.assert_failed(said[0], "directory", "rank 2")
        self.assertEqual(lacking(said[2], names=["rank 2", self.run_dir]), [], said[2])


if __name__ == "__main__":
    unittest.main()
