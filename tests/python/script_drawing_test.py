"""Weighted drawing: run.batches(data, weights=...) in every world, through a kill, a stop and a resume;
the journal's proof; and other weights, which make another run."""
import unittest

from script_runs import ScriptTest

# Its first word: plain, or a file of milliseconds that a slot takes. Its second: the weight of class 0.
TRAIN = """
# /// lockstep
# train: {global_batch: 24, slots: 6, epochs: 3}
# checkpoint: {every_steps: 5}
# ///
import pathlib, sys, time
import torch, lockstep
from torch import nn
from torch.nn import functional as F
pace, weight = sys.argv[1], float(sys.argv[2])
class Table(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.x, self.y = torch.randn(200, 8, generator=generator), torch.randint(4, (200,), generator=generator)
    def __len__(self): return 200
    def __getitem__(self, index):
        return self.x[index] + 0.05 * torch.randn(8), self.y[index], index
data = Table()
run = lockstep.start()
model = nn.Linear(8, 4)
first = [p.detach().clone() for p in model.parameters()]
run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
seen, drawn = {}, torch.zeros(200)
for x, y, index in run.batches(data, workers=1, weights=torch.where(data.y == 0, weight, 1.0)):
    if not run.is_trial:
        if pace != "plain": time.sleep(int(pathlib.Path(pace).read_text()) / 1000)
        drawn += torch.bincount(index, minlength=200)
        seen.setdefault(run.step, []).append((x.clone(), y.clone()))
    run.backward(F.cross_entropy(model(x), y))
if pace == "plain":
    plain = nn.Linear(8, 4)
    with torch.no_grad():
        for p, value in zip(plain.parameters(), first): p.copy_(value)
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    for slots in seen.values():
        optimizer.zero_grad()
        total = sum(len(y) for _, y in slots)
        for x, y in slots: (F.cross_entropy(plain(x), y, reduction="sum") / total).backward()
        optimizer.step()
    apart = max((p - q).detach().abs().max().item() for p, q in zip(plain.parameters(), model.parameters()))
    print("apart", apart, "steps", len(seen), "drawn", int(drawn.sum()), "of class 0",
          float(drawn[data.y == 0].sum() / drawn.sum()), "never", int((drawn == 0).sum()))
"""


class Drawing(ScriptTest):
    plain = None  # weights of the script alone, which equal a plain loop's

    def start_train(self, workers, weight=10, **more):
        return self.start_script(self.write_script(TRAIN), [self.pace, weight], workers, **more)

    def weights_of_plain(self):
        cls = type(self)
        cls.plain = cls.plain or self.compare_with_plain()
        return cls.plain

    def compare_with_plain(self):
        script = self.write_script(TRAIN)
        said = self.alone(script, "plain", 10)
        words = said[said.index("apart"):].split()
        self.assertLess(float(words[1]), 1e-5, said)
        self.assertEqual((words[3], words[5]), ("27", "600"), said)
        self.assertGreater(float(words[9]), 0.6, "class 0 is a quarter, and weighs ten times as much")
        self.assertGreater(int(words[11]), 0, "not all are drawn")
        return said[said.index("weights_sha256") + 15:][:64]

    def assert_drawn(self, run, weights):
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(run.summary()["weights_sha256"], weights)
        self.assertTrue(self.audit(run)["drawn"])

    def test_three_workers_draw_what_one_does_and_the_two_that_a_kill_leaves_too(self):
        weights = self.weights_of_plain()
        self.take_ms(100)
        run = self.start_train(3)
        run.wait_for_step(5)
        self.kill_and_go_on(run, 1)
        self.take_ms(0)
        self.assert_drawn(run, weights)

    def test_a_resume_draws_on_and_other_weights_are_another_run(self):
        weights = self.weights_of_plain()
        self.take_ms(100)
        run = self.start_train(2)
        run.wait_for_step(7)
        self.stop(run)
        self.take_ms(0)
        other = self.start("--resume", f"script.args=[{self.pace}, 9]")
        self.assertEqual(other.wait(), 64, other.text()[-3000:])
        self.assertIn("batches.weights", other.text())
        rest = self.start("--resume", f"script.args=[{self.pace}, 10]", "--workers", 1)
        self.assert_drawn(rest, weights)
        text = self.printed("audit", run.run_dir)
        self.assertIn(", drawn with replacement by 200 weights, ", text)
        self.assertIn("epochs 3, drawn samples 600: lost 0, repeated 0\n", text)
        self.assertIn("bit for bit", self.replayed(run, 20))

    def test_without_weights_nothing_of_it_is_told(self):
        self.take_ms(0)
        text = TRAIN.replace(", weights=torch.where(data.y == 0, weight, 1.0)", "")
        run = self.start_script(self.write_script(text), [self.pace, 1])
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertNotIn("drawn", self.audit(run))
        self.assertIn("epochs 3, samples 600: lost 0, repeated 0\n", self.printed("audit", run.run_dir))


if __name__ == "__main__":
    unittest.main()
