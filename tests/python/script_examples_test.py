"""The loops of deploy/examples/loops at a small size: two workers give the weights of one, also when one
is killed, and few lines of a loop are not plain PyTorch. The loop that needs peft is in
script_libraries_test.py."""
import ast
import unittest

from examples import LOOPS, ExampleTest, other_lines

WORDS = {
    "gpt": ["--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 16, "--warmup", 2,
            "--data-processes", 1],
    "images": ["--samples", 300, "--auto-augment", "--epochs", 2],
    "gan": ["--samples", 300, "--width", 4],
    "diffusion": ["--samples", 200, "--width", 4, "--timesteps", 10],
    "ctc": ["--samples", 60, "--width", 8],
}
LINES = 15  # at most, that are not plain PyTorch
KILLS = """
        import os, signal
        if run.step == 3 and not run.is_trial:
            try:
                os.close(os.open({flag!r}, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
"""


class Examples(ExampleTest):
    alone_of = {}  # made once for the class

    def alone_output(self, name):
        if not self.alone_of:
            self.alone_of.update(self.all_alone(WORDS))
        return self.alone_of[name]

    def test_gpt_in_bf16_evaluates(self):
        run = self.assert_same_with_two_workers("gpt", WORDS["gpt"], self.alone_output("gpt"))
        self.assertEqual((run.run_dir / "evals.jsonl").read_text().count("\n"), 1)

    def test_images_with_mixup_and_an_average(self):
        run = self.assert_same_with_two_workers("images", WORDS["images"], self.alone_output("images"))
        self.assertEqual((run.run_dir / "evals.jsonl").read_text().count("ema_acc1"), 2)

    def test_gan_in_phases(self):
        drawn = self.scratch / "drawn.pgm"
        self.assert_same_with_two_workers("gan", [*WORDS["gan"], "--save", drawn], self.alone_output("gan"))
        self.assertEqual(len(drawn.read_bytes()), len(b"P5 224 224 255\n") + 224 * 224)

    def test_diffusion_with_a_killed_worker(self):
        alone = self.alone_output("diffusion")
        flag, drawn = self.scratch / "killed", self.scratch / "drawn.pgm"
        script = self.loops / "diffusion.py"
        loop = "for x in run.batches(data):\n"
        self.assertIn(loop, script.read_text())
        script.write_text(script.read_text().replace(loop, loop + KILLS.format(flag=str(flag))))
        run = self.assert_same_with_two_workers("diffusion", [*WORDS["diffusion"], "--save", drawn], alone,
                                                kills=1)
        self.assertTrue(flag.exists())
        self.assert_event(run, "member_died", names=["signal 9"])
        self.assertEqual(len(drawn.read_bytes()), len(b"P5 224 56 255\n") + 224 * 56)

    def test_ctc_with_a_loss_per_letter(self):
        self.assert_same_with_two_workers("ctc", WORDS["ctc"], self.alone_output("ctc"))

    def test_few_lines_are_not_plain_pytorch(self):
        scripts = [path for path in LOOPS.glob("*.py") if path.name != "pictures.py"]
        self.assertEqual(len(scripts), 6)
        for script in scripts:
            with self.subTest(script=script.name):
                text = script.read_text()
                count = other_lines(text)
                self.assertLessEqual(count, LINES)
                self.assertIn(f"{count} lines are not plain PyTorch", ast.get_docstring(ast.parse(text)))


if __name__ == "__main__":
    unittest.main()
