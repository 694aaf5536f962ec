"""Two small seeds of tests/chaos.sh."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
import chaos  # noqa: E402


SCRIPT_SEED, SCRIPT_STEPS = 1239932, 160
SCRIPT_FAULTS = ["agent", "zygote", "coordinator", "scale", "resume", "kill", "data_process"]


class Chaos(unittest.TestCase):
    SEED, WORKERS, FAULTS, STEPS = 1, 4, 12, 4800

    def play(self, seed, workers, faults, model, steps, **more):
        said = []
        wrong, scratch = chaos.one_seed(seed, workers, faults, model, steps, say=said.append,
                                        timeout_s=600, **more)
        replay = (f"replay: {pathlib.Path(chaos.__file__)} --seed {seed} --workers {workers} "
                  f"--faults {faults} --model {model} --steps {steps}{' --python' if more else ''}; "
                  f"kept {scratch}")
        self.assertEqual(wrong, [], "\n".join(said + wrong + [replay]))

    def test_twelve_faults_change_nothing(self):
        self.play(self.SEED, self.WORKERS, self.FAULTS, "mlp", self.STEPS)

    def test_faults_of_a_training_loop_in_python_change_nothing(self):
        faults = chaos.schedule(SCRIPT_SEED, len(SCRIPT_FAULTS), 2, SCRIPT_STEPS, chaos.Script.faults)
        self.assertEqual([fault for _, fault, _, _ in faults], SCRIPT_FAULTS)
        self.assertEqual([wanted for _, fault, _, wanted in faults if fault in ("scale", "resume")],
                         [1, 2], "it is resumed in another world")
        self.play(SCRIPT_SEED, 2, len(SCRIPT_FAULTS), "all", SCRIPT_STEPS, kind=chaos.Script)

    def test_a_seed_always_gives_the_same_faults(self):
        first = chaos.schedule(5, 20, 8, 4000)
        self.assertEqual(first, chaos.schedule(5, 20, 8, 4000))
        self.assertNotEqual(first, chaos.schedule(6, 20, 8, 4000))
        self.assertEqual(len(first), 20)


if __name__ == "__main__":
    unittest.main()
