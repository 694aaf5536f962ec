"""Phases: several updates on one batch, in every world, through kills, a stop between two of them and a
resume; the journal's proof; and refusals by name."""
import unittest

from script_runs import ScriptTest

# Its first word: plain, or a file of milliseconds that a slot takes. Its second: workers that read.
TRAIN = """
# /// lockstep
# train: {global_batch: 24, slots: 6, epochs: 2}
# checkpoint: {every_steps: 5}
# ///
import pathlib, sys, time
import torch, lockstep
from torch import nn
from torch.nn import functional as F
pace, readers = sys.argv[1], int(sys.argv[2])
class Table(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.randn(108, 8, generator=torch.Generator().manual_seed(1))
    def __len__(self): return 108
    def __getitem__(self, index): return self.x[index] + 0.05 * torch.randn(8), index
run = lockstep.start()
def nets():
    torch.manual_seed(3)
    return (nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Linear(8, 8)),
            nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.BatchNorm1d(16), nn.Linear(16, 1)))
def optimizers(G, D):
    d, g = torch.optim.Adam(D.parameters(), 1e-2), torch.optim.Adam(G.parameters(), 2e-2)
    return d, g, torch.optim.lr_scheduler.StepLR(d, 3, 0.5)
def losses(phase, G, D, x, z):
    one = torch.ones(len(x), 1)
    if phase == "d":
        fake = G(z).detach()
        return F.binary_cross_entropy_with_logits(D(x), one) + F.binary_cross_entropy_with_logits(D(fake), 0 * one)
    return F.binary_cross_entropy_with_logits(D(G(z)), one)
G, D = nets()
d, g, scheduler = optimizers(G, D)
run.keep(G=G, D=D, d=d, g=g, scheduler=scheduler)
slots = []
for phase, (x, index) in run.batches(Table(), workers=readers, phases=("d", "g")):
    assert phase == run.phase
    if not run.is_trial and pace != "plain": time.sleep(int(pathlib.Path(pace).read_text()) / 1000)
    z = torch.randn(len(x), 4)
    slots.append((run.is_trial, run.step, phase, x.clone(), z, index.tolist()))
    x.mul_(1.0)
    loss = losses(phase, G, D, x, z)
    run.backward(loss, metrics={"fooled" if phase == "g" else "seen": loss.detach()})
if pace == "plain":
    G2, D2 = nets()
    d2, g2, scheduler2 = optimizers(G2, D2)
    steps = {}
    for is_trial, step, *slot in slots:
        if not is_trial: steps.setdefault(step, []).append(slot)
    norms = [m for net in (G2, D2) for m in net if isinstance(m, nn.BatchNorm1d)]
    for step, parts in steps.items():
        phase, total = parts[0][0], sum(len(x) for _, x, _, _ in parts)
        optimizer, net = (d2, D2) if phase == "d" else (g2, G2)
        optimizer.zero_grad()
        before = [{k: v.clone() for k, v in m.named_buffers()} for m in norms]
        sums = [{k: torch.zeros_like(v, dtype=torch.float) for k, v in m.named_buffers()} for m in norms]
        for _, x, z, _ in parts:
            for m, old in zip(norms, before):
                for k, v in m.named_buffers(): v.copy_(old[k])
            (losses(phase, G2, D2, x, z) * len(x) / total).backward()
            for m, sum_ in zip(norms, sums):
                for k, v in m.named_buffers(): sum_[k] += v
        for m, sum_ in zip(norms, sums):
            for k, v in m.named_buffers(): v.copy_(sum_[k] / len(parts))
        optimizer.step()
        if phase == "d": scheduler2.step()
    pairs = [(p, q) for a, b in ((G, G2), (D, D2)) for p, q in zip(a.state_dict().values(), b.state_dict().values())]
    apart = max((p.float() - q.float()).abs().max().item() for p, q in pairs)
    batches = {step - step % 2: sorted(i for part in parts for i in part[3]) for step, parts in steps.items()}
    same = all(batches[step - step % 2] == sorted(i for part in parts for i in part[3]) for step, parts in steps.items())
    print("apart", apart, "steps", len(steps), "same", int(same), "lr", d.param_groups[0]["lr"],
          "of", run.last.metrics)
"""


class Phases(ScriptTest):
    plain = None  # weights of the script alone, which equal a plain loop's

    def start_train(self, workers, **more):
        return self.start_script(self.write_script(TRAIN), [self.pace, 1], workers, **more)

    def weights_of_plain(self):
        cls = type(self)
        cls.plain = cls.plain or self.compare_with_plain()
        return cls.plain

    def compare_with_plain(self):
        said = self.alone(self.write_script(TRAIN), "plain", 0)
        words = said[said.index("apart"):].split()
        self.assertLess(float(words[1]), 1e-4, said)
        self.assertEqual((words[3], words[5], words[7]), ("20", "1", "0.00125"), said)
        self.assertIn("of {'fooled': ", said)
        return said[said.index("weights_sha256") + 15:][:64]

    def assert_done(self, run, weights):
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(run.summary()["weights_sha256"], weights)
        self.assertEqual(run.summary()["epochs"], 2)
        audit = self.audit(run)
        self.assertEqual((audit["lost"], audit["repeated"], audit["samples"]), (0, 0, 216))

    def test_three_workers_train_as_one_does_and_the_two_that_a_kill_leaves_too(self):
        weights = self.weights_of_plain()
        self.take_ms(100)
        run = self.start_train(3)
        run.wait_for_step(5)
        self.kill_and_go_on(run, 1)
        self.take_ms(0)
        self.assert_done(run, weights)

    def test_a_stop_between_two_phases_goes_on_with_the_second(self):
        weights = self.weights_of_plain()
        text = TRAIN.replace("scheduler=scheduler)", "scheduler=scheduler, after_step=lambda: "
                             "run.request_stop() if run.step == 6 and pace == 'stop' else None)")
        text = text.replace('pace != "plain"', 'pace not in ("plain", "stop")')
        run = self.start_script(self.write_script(text), ["stop", 1], 2)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        step = run.summary()["steps"]
        self.assertEqual(step % 2, 1, "no stop between two phases was tried")
        self.take_ms(0)
        rest = self.start("--resume", f"script.args=[{self.pace}, 1]", "--workers", 1)
        self.assert_done(rest, weights)
        self.assertIn("2 steps a batch", self.printed("audit", run.run_dir))
        self.assertIn("bit for bit", self.replayed(run, step + 1))
        other = self.start("--resume", "script.args=[plain, 1]", "train.epochs=3")
        self.assertEqual(other.wait(), 0, other.text()[-3000:])


if __name__ == "__main__":
    unittest.main()
