"""One small seed of tests/chaos.sh."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
import chaos  # noqa: E402


class Chaos(unittest.TestCase):
    SEED, WORKERS, FAULTS, STEPS = 1, 4, 12, 4800

    def test_twelve_faults_change_nothing(self):
        said = []
        wrong, scratch = chaos.one_seed(self.SEED, self.WORKERS, self.FAULTS, "mlp", self.STEPS,
                                        say=said.append, timeout_s=300)
        replay = (f"replay: {pathlib.Path(chaos.__file__)} --seed {self.SEED} --workers "
                  f"{self.WORKERS} --faults {self.FAULTS} --steps {self.STEPS}; kept {scratch}")
        self.assertEqual(wrong, [], "\n".join(said + wrong + [replay]))

    def test_a_seed_always_gives_the_same_faults(self):
        first = chaos.schedule(5, 20, 8, 4000)
        self.assertEqual(first, chaos.schedule(5, 20, 8, 4000))
        self.assertNotEqual(first, chaos.schedule(6, 20, 8, 4000))
        self.assertEqual(len(first), 20)


if __name__ == "__main__":
    unittest.main()
