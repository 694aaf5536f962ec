"""The tiers of the night go on where they stopped, and begin again at a new commit."""
import pathlib
import shutil
import tempfile
import unittest

from night import TIERS, Night


class Nights(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.played = self.directory / "played"

    def tier(self, commit="a" * 40, **ends):
        """A tier whose pieces end with these codes."""
        pieces = {name: f"echo {name} >> {self.played}; exit {code}" for name, code in ends.items()}
        return Night("few", pieces, commit, self.directory)

    def go_on(self, tier, seconds=600):
        said = []
        tier.go_on(seconds, 1, say=said.append)
        return said

    def test_it_goes_on_where_it_stopped(self):
        ends = {"one": 0, "two": 0, "three": 0}
        first = self.tier(**ends)
        first.note("one", *first.play("one"))  # and there it was stopped
        self.assertIn("1 of 3 pieces", first.report.read_text())
        self.assertIn("--night few", first.report.read_text())
        second = self.tier(**ends)
        self.assertEqual(len(self.go_on(second)), 2)
        self.assertEqual(self.played.read_text().split(), ["one", "two", "three"])
        self.assertIn("3 of 3 pieces, 3 passed, 0 failed", second.report.read_text())
        self.assertEqual(self.go_on(self.tier(**ends)), [], "all is played")

    def test_another_commit_begins_anew(self):
        self.go_on(self.tier(one=0))
        self.go_on(self.tier(commit="b" * 40, one=0))
        self.assertEqual(self.played.read_text().split(), ["one", "one"])

    def test_without_time_nothing_begins(self):
        tier = self.tier(one=0)
        self.assertEqual(self.go_on(tier, seconds=0), [])
        self.assertFalse(self.played.exists())
        self.assertIn("0 of 1 pieces", tier.report.read_text())

    def test_a_failure_is_reported_with_its_command_and_stays_one(self):
        ends = {"well": 0, "badly": 3}
        self.go_on(self.tier(**ends))
        again = self.tier(**ends)
        self.assertEqual(again.failed(), ["badly"])
        report = again.report.read_text()
        self.assertIn("1 passed, 1 failed", report)
        self.assertIn("exit 3", report)

    def test_a_damaged_state_begins_anew(self):
        self.go_on(self.tier(one=0))
        (self.directory / "few.json").write_text("{")
        self.assertEqual(self.tier(one=0).left(), ["one"])

    def test_every_tier_says_how_many_run_at_a_time_and_what_they_need(self):
        for name, (pieces, at_a_time, preset, target) in TIERS.items():
            with self.subTest(name):
                self.assertGreater(at_a_time, 0)
                self.assertTrue(preset and target and callable(pieces))


if __name__ == "__main__":
    unittest.main()
