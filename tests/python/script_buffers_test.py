"""Buffers by rule: the same bits alone and with workers, through a kill, a stop, a resume in another
world and a replay; and what they count is what the samples hold."""
import re
import unittest

from script_runs import ScriptTest

# Its word: plain, or a file of milliseconds that a slot takes.
TRAIN = """
# /// lockstep
# train: {global_batch: 24, slots: 6, epochs: 2}
# checkpoint: {every_steps: 5}
# ///
import hashlib, pathlib, sys, time, warnings
import torch, lockstep
from torch import nn
from torch.nn import functional as F
warnings.simplefilter("ignore")
from torch.ao.quantization import FusedMovingAvgObsFakeQuantize
class Data(torch.utils.data.Dataset):
    def __len__(self): return 108
    def __getitem__(self, i):
        return torch.randn(3 + i % 11, 8, generator=torch.Generator().manual_seed(i)), i
def padded(samples):
    return (nn.utils.rnn.pad_sequence([x for x, _ in samples], batch_first=True),
            torch.tensor([i for _, i in samples]))
class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("size", torch.ones(6))
        self.register_buffer("avg", torch.randn(6, 8).bfloat16())
    def forward(self, z):
        hot = F.one_hot((z[:, None] - self.avg.float()).pow(2).sum(2).argmin(1), 6).float()
        self.size.mul_(.9).add_(hot.sum(0), alpha=.1)
        self.avg.mul_(.9).add_((hot.T @ z).bfloat16(), alpha=.1)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm, self.codebook = nn.Linear(8, 8), nn.BatchNorm1d(8), Codebook()
        self.fake = FusedMovingAvgObsFakeQuantize()
        self.register_buffer("seen", torch.zeros(2, dtype=torch.int64))
        self.register_buffer("peak", torch.tensor(float("-inf")))
        self.register_buffer("least", torch.tensor(1000, dtype=torch.int32))
        self.register_buffer("ever", torch.zeros(108, dtype=torch.bool), persistent=False)
        self.register_buffer("total", torch.zeros((), dtype=torch.float64))
        self.register_buffer("cos", torch.empty(0, 8), persistent=False)
    def forward(self, x, i):
        if x.shape[1] > len(self.cos):
            self.cos = torch.cos(torch.arange(x.shape[1])[:, None] / (1 + torch.arange(8.)))
        self.seen += torch.tensor([1, 10 ** 14 + 1]) * i.sum()
        self.peak.copy_(torch.maximum(self.peak, x.max()))
        self.least.clamp_(max=int(i.min()))
        self.ever[i] = True
        self.total += x.double().sum()
        h = self.fake(self.norm(self.layer((x * self.cos[:x.shape[1]]).mean(1))))
        self.codebook(h.detach())
        return h
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("batches", torch.zeros((), dtype=torch.uint8))
word = sys.argv[1]
run = lockstep.start()
model, other = Model(), Counts()
run.keep(model=model, other=other, optimizer=torch.optim.AdamW(model.parameters(), 1e-2),
         buffers={"seen": "sum", "peak": "max", "least": "min", "ever": "max", "total": "sum",
                  "codebook.*": "mean", "other.batches": "sum"})
true = torch.zeros(2, dtype=torch.int64)
for x, i in run.batches(Data(), collate=padded):
    if not run.is_trial and word != "plain": time.sleep(int(pathlib.Path(word).read_text()) / 1000)
    if not run.is_trial: true += torch.tensor([1, 10 ** 14 + 1]) * i.sum()
    run.backward(model(x, i).pow(2).mean())
    other.batches += 1
if word == "plain":
    assert model.seen.tolist() == true.tolist() == [2 * 5778, 2 * 5778 * (10 ** 14 + 1)]
    everything = [Data()[i][0] for i in range(108)]
    assert model.peak == max(x.max() for x in everything) and model.least == 0 and model.ever.all()
    assert abs(float(model.total) - 2 * sum(float(x.double().sum()) for x in everything)) < 1e-6
    assert other.batches == 2 * 5 * 6
    assert model.fake.activation_post_process.max_val < 100 and model.fake.scale < 1
kept = [b for m in (model, other) for b in m.state_dict().values()] + [model.ever]
print("buffers", hashlib.sha256(b"".join(bytes(b.reshape(-1).view(torch.uint8).tolist()) for b in kept)).hexdigest())
"""


class BuffersByRule(ScriptTest):
    def test_they_are_the_same_in_every_world_through_a_kill_and_a_resume(self):
        script = self.write_script(TRAIN)
        said = self.alone(script, "plain")
        self.take_ms(60)
        run = self.start_script(script, [self.pace], 3)
        run.wait_for_step(2)
        self.kill_and_go_on(run, 1)
        run.wait_for_step(5)
        self.stop(run)
        self.take_ms(0)
        rest = self.start("--resume", "--workers", 2)
        self.assertEqual(rest.wait(), 0, rest.text()[-3000:])
        self.assertEqual(rest.summary()["weights_sha256"], re.search(r"weights_sha256 (\w+)", said)[1])
        of = lambda text: set(re.findall(r"buffers (\w{64})", text))
        self.assertEqual(of(self.log_of(rest)), of(said))
        audit = self.audit(rest)
        self.assertEqual((audit["lost"], audit["repeated"], audit["samples"]), (0, 0, 216))
        self.assertIn("the weights are those of step-0000000010", self.replayed(run, 10))


if __name__ == "__main__":
    unittest.main()
