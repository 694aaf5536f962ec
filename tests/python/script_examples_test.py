"""The loops of deploy/examples/loops at a small size: two workers give the weights of one, and
few lines of a loop are not plain PyTorch."""
import re
import unittest

from harness import ROOT
from script_runs import ScriptTest

LOOPS = ROOT / "deploy/examples/loops"
GPT, IMAGES, GAN = LOOPS / "gpt.py", LOOPS / "images.py", LOOPS / "gan.py"
SMALL_GPT = ["--layers", 1, "--heads", 2, "--width", 16, "--context", 16]
STEPS = 6
LINES = 15  # at most, that are not plain PyTorch


class Examples(ScriptTest):
    def assert_same_with_two_workers(self, script, words):
        run = self.start_script(script, words, 2, overrides=[f"train.max_steps={STEPS}"])
        alone = self.alone(script, *words, TRAIN__MAX_STEPS=str(STEPS))  # meanwhile
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(len(run.history()), STEPS)
        self.assertIn(f"weights_sha256 {run.summary()['weights_sha256']}", alone)
        measured = alone.splitlines()[-1]  # of the weights, behind the loop
        self.assertRegex(measured, r"(held-out loss|accuracy|brightness) -?\d")
        for rank in range(2):
            log = run.run_dir / "logs" / f"worker-{rank}.stderr"
            self.assertIn(measured, log.read_text().splitlines())

    def test_gpt_in_bf16(self):
        text = self.scratch / "text.txt"
        text.write_text("every slot of every rank sums the same. " * 200)
        self.assert_same_with_two_workers(GPT, [text, *SMALL_GPT, "--warmup", 2, "--steps", STEPS,
                                                "--precision", "bf16", "--data-processes", 1])

    def test_images(self):
        self.assert_same_with_two_workers(IMAGES, ["--samples", 300, "--unseen", 50,
                                                   "--milestones", 2, 4])

    def test_gan_in_phases(self):
        drawn = self.scratch / "drawn.pgm"
        self.assert_same_with_two_workers(GAN, ["--samples", 300, "--width", 4, "--save", drawn])
        self.assertEqual(len(drawn.read_bytes()), len(b"P5 224 224 255\n") + 224 * 224)

    def test_few_lines_are_not_plain_pytorch(self):
        for script in (GPT, IMAGES, GAN):
            with self.subTest(script=script.name):
                text = script.read_text()
                code = text.split('"""', 2)[2]
                block = re.search(r"^# /// lockstep\n(#.*\n)*?# ///\n", code, re.MULTILINE)[0]
                ours = [line for line in code.replace(block, "").splitlines()
                        if re.search(r"\b(lockstep|run)\b", line)]
                count = len(block.splitlines()) + len(ours)
                self.assertLessEqual(count, LINES)
                self.assertIn(f" {count} lines are not plain PyTorch", text)


if __name__ == "__main__":
    unittest.main()
