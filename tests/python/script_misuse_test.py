"""A mistake of a script gives one sentence with the line of the script, and ends a run with a code
that says whether another attempt helps."""
import unittest

from script_runs import SCRIPTS, ScriptTest

HEAD = """
# /// lockstep
# train: {global_batch: 8, slots: 2, max_steps: 6, check_every: 2}
# ///
import os, sys, torch, lockstep
from torch.nn import functional as F
class Data(torch.utils.data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, i): return torch.full((4,), float(i) / 40), torch.tensor(i % 2)
class Relative(torch.optim.Optimizer):
    def step(self, closure=None):
        for p in self.param_groups[0]['params']: p.data.sub_(p.grad, alpha=0.1)
"""
START = HEAD + """
run = lockstep.start()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""
KEEP = START + "run.keep(model=model, optimizer=optimizer)\n"
LOOP = KEEP + "for x, y in run.batches(Data()):\n    loss = F.cross_entropy(model(x), y)\n"
AFTER = START + """
def after():
    if run.step == 3: CHANGE
run.keep(model=model, optimizer=optimizer, after_step=after)
for x, y in run.batches(Data()):
    run.backward(F.cross_entropy(model(x), y))
"""
GROUP = ("torch.distributed.init_process_group('gloo', store=torch.distributed.HashStore(), rank=0, "
         "world_size=1)\n")
STOPS = START + """
run.keep(model=model, optimizer=optimizer, after_step=lambda: run.step == 3 and run.request_stop())
try:
    for x, y in run.batches(Data()): run.backward(F.cross_entropy(model(x), y))
finally: print("ended after step", run.step)
"""
# So many gradients that torch would unmap their memory.
KEPT_GRADIENTS = (START.replace("Linear(4, 2)", "Linear(1024, 8192)").replace("max_steps: 6", "max_steps: 1")
                  .replace("full((4,)", "full((1024,)")) + """
kept = []
run.keep(model=model, optimizer=optimizer,
         after_step=lambda: kept.append([p.grad for p in model.parameters()]))
for x, y in run.batches(Data()): run.backward(model(x).square().mean())
print("there are gradients:", float(kept[-1][0].norm()) > 0)
"""
INTERRUPTED = KEEP + """
next_order = run._core.next
def next_then_interrupt(reply):
    order = next_order(reply)
    if order.task.step == 2: raise KeyboardInterrupt  # as Python's handler does
    return order
run._core.next = next_then_interrupt
print("this is in the buffer of stdout")
""" + LOOP[len(KEEP):]
BATCH_NORM = """
# 41 samples: the last slot of the epoch has one
Data.__len__ = lambda self: 41
model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
run.keep("""

SCALED = LOOP.replace("run.keep(", "scaler = torch.amp.GradScaler('cpu')\nrun.keep(scaler=scaler, ")
BUFFER = LOOP.replace("run.keep(", "model.register_buffer('b', torch.ones(2, dtype=torch.int64))\nrun.keep(")


def keyed(text, keys):
    return text.replace("check_every: 2}", "check_every: 2}\n# " + keys)


def evaluated(score):
    return (KEEP + f"run.evaluate(lambda batch: {score}, Data())\n"
            "for x, y in run.batches(Data()):\n    run.backward(F.cross_entropy(model(x), y))\n")


# The script's mistake, its exit code, and a part of the message. No mistake comes before the loop's
# second step, so that the run is under way.
IN_THE_LOOP = {
    "optimizer.step": (LOOP + "    run.backward(loss); optimizer.step()\n", 64, "optimizer.step()"),
    "loss.backward": (LOOP + "    loss.backward(); run.backward(loss)\n", 64, "run.backward(loss)"),
    "no backward": (LOOP + "    pass\n", 64, "without run.backward"),
    "two backwards": (LOOP + "    run.backward(loss); run.backward(model(x).sum())\n", 64,
                      'phases=("d", "g")'),
    "no scalar": (LOOP + "    run.backward(model(x))\n", 64, ".mean()"),
    "detached": (LOOP + "    run.backward(loss.detach())\n", 64, "detached"),
    "own generator": (LOOP + "    run.backward(loss * (1 + torch.rand((), generator=G)))\n", 78,
                      "default generators"),
    "two runs": (KEEP + "lockstep.start()\n", 64, "one worker of one run"),
    "two loops": (LOOP + "    for _ in run.batches(Data()): pass\n", 64, "one loop"),
    "nothing kept": (START + "for b in run.batches(Data()): pass\n", 64, "run.keep"),
    "a sample fails": (LOOP.replace("return torch.full", "1 / (i - 17); return torch.full")
                       + "    run.backward(loss)\n", 65, "index 17"),
    "a dataset grows": (LOOP.replace("return 40", "self.n = getattr(self, 'n', 39) + 1; return self.n")
                        + "    run.backward(loss)\n", 65, "len"),
    "unseedable": (LOOP.replace("float(i) / 40", "float(i) / 40 + R.random()")
                   + "    run.backward(loss)\n", 78, "seed"),
    "other metrics": (LOOP + "    run.backward(loss, metrics={} if run.step else {'a': 1})\n", 64,
                      "the same in every slot"),
    "a metric's name": (LOOP + "    run.backward(loss, metrics={'top 5': 1})\n", 64,
                        'the script gives a metric named "top 5"'),
    "an evaluation's metric": (evaluated("{'loss': 0.5, 'F1@0.5': 1}"), 64,
                               'evaluation gives a metric named "F1@0.5"'),
    "SyncBatchNorm": (START + "run.keep(model=torch.nn.SyncBatchNorm(4), optimizer=optimizer)\n", 64,
                      "SyncBatchNorm"),
    "DDP": (START + GROUP + "model = torch.nn.parallel.DistributedDataParallel(model)\n"
            + LOOP[len(START):] + "    run.backward(loss)\n", 64, "DistributedDataParallel"),
    "a process group": (LOOP.replace("run = lockstep", GROUP + "run = lockstep"), 64,
                        "torch.distributed is initialised"),
    "epochs of a metric": (LOOP.replace(
        "optimizer=optimizer)", "optimizer=optimizer, epoch_scheduler=torch.optim.lr_scheduler."
        "ReduceLROnPlateau(optimizer))"), 64, "by the numbers of run.last"),
    "a loss of no number": (LOOP + "    run.backward(loss * (float('nan') if run.step == 2 else 1))\n", 65,
                            "the loss of step 3 is not a number"),
    "a stop": (STOPS, 75, "lockstep: stopped after step 4; no checkpoint"),
    "gradients read behind the loop": (KEPT_GRADIENTS, 0, "there are gradients: True"),
    "Ctrl-C with an order in hand": (INTERRUPTED + "    run.backward(loss)\n", 70, "in the buffer"),
    "a key and no evaluation": (keyed(LOOP, "eval: {every_steps: 2}") + "    run.backward(loss)\n", 64,
                                "call run.evaluate(fn, data)"),
    "the most accurate of nothing": (keyed(evaluated("0.5"), "checkpoint: {best: accuracy}"), 64,
                                     'return "correct"'),
    "an evaluation draws": (evaluated("torch.rand((), generator=G)"), 78, "default generators"),
    "a late evaluation": (LOOP + "    run.evaluate(len, 4)\n", 64, "before the loop"),
    "log outside": (KEEP + "run.log(x=1)\n", 64, "outside of the loop"),
    "log of nothing": (LOOP + "    run.log(x=None); run.backward(loss)\n", 64, "numbers and texts"),
    "log of a nan": (LOOP + "    run.log(x=float('nan')); run.backward(loss)\n"
                     "print(run.step, 'steps')\n", 0, "6 steps"),
    "a late step": (LOOP + "    run.backward(loss)\n    if run.step == 2: optimizer.step()\n", 64,
                    "optimizer.step()"),
    "a swallowed error": (LOOP + "    try: run.backward(loss * 1j)\n    except RuntimeError: pass\n", 64,
                          "let the exception end"),
    "an evaluation that trains": (evaluated("model.weight.data.clamp_(-.1, .1).sum()"), 64,
                                  "The evaluation changes the parameter `weight`"),
    # Puts kept weights in and back again, as for evaluating averages. The script ends as it should.
    "an evaluation that swaps": (
        evaluated("[w := model.weight.clone(), model.weight.zero_(), model.weight.copy_(w)][1].sum()"),
        0, "weights_sha256"),
    "weights clipped": (LOOP + "    run.backward(loss); model.weight.data.clamp_(-.1, .1)\n", 64,
                        "The loop body changes the parameter `weight`"),
    "weights changed later": (
        LOOP + "    run.backward(loss)\n    if run.step == 2: model.bias.detach().zero_()\n", 64,
        "The loop body changes the parameter `bias`"),
    "weights changed later in data": (
        LOOP + "    run.backward(loss)\n    if run.step == 3: model.bias.data.zero_()\n", 64,
        "run.keep(after_step=…)"),
    "a group too many": (AFTER.replace("CHANGE", "optimizer.add_param_group({'params': [], 'lr': 1})"),
                         64, "The groups of parameters of `optimizer` were changed"),
    "another dtype": (AFTER.replace("CHANGE", "model.half()"), 64, "`weight` was float32 (2, 4)"),
    "clipping": (LOOP + "    run.backward(loss)\n"
                 "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", 64,
                 "run.keep(clip_norm=…)"),
    "a scaled loss": (SCALED + "    run.backward(scaler.scale(loss))\n", 64, "`scaler.scale()`: delete"),
    "a scaler's step": (SCALED + "    run.backward(loss); scaler.step(optimizer)\n", 64,
                        "`scaler.step()`: delete"),
    "a scaler in update": (SCALED.replace("scaler=scaler", "scaler=scaler, update=lambda: "
                                          "scaler.unscale_(optimizer)") + "    run.backward(loss)\n",
                           64, "the gradients that update= finds are unscaled"),
    "another mode": (LOOP + "    run.backward(loss)\n    if run.step == 2: model.eval()\n", 64,
                     "leaves `model` in eval() and found it in train()"),
    "the first batch in another mode": (
        LOOP + "    loss = F.cross_entropy(F.dropout(model(x), training=model.training), y)\n"
        "    run.backward(loss); model.eval()\n", 78, "leaves `model` in eval() and found it in train(): set"),
    "frozen in the body": (LOOP + "    run.backward(loss)\n    if run.step == 2: model.bias.requires_grad_(False)\n",
                           64, "The loop body changes requires_grad of `bias`"),
    "a buffer of its own": (BUFFER + "    model.b.sub_(1); run.backward(loss)\n", 64,
                            "buffers="),
    # Like MoCo's pointer: the first slot raises it by as much as many others.
    "a counter of its own": (BUFFER + "    model.b.add_(len(x)); run.backward(loss)\n", 64,
                             "buffers="),
    "a mean of its own": (BUFFER.replace("torch.ones(2, dtype=torch.int64)", "torch.ones(4)")
                          + "    model.b.mul_(.9).add_(x.mean(0)); run.backward(loss)\n", 64,
                          "buffers="),
    "spectral norm": (LOOP.replace("run.keep(", "model = torch.nn.utils.parametrizations.spectral_norm("
                                   "model)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
                                   "run.keep(") + "    run.backward(loss)\nprint(run.step, 'steps')\n",
                      0, "6 steps"),
    "a hook that frees gradients": (LOOP.replace(
        "run.keep(", "model.weight.register_post_accumulate_grad_hook(lambda p: setattr(p, 'grad', None))"
        "\nrun.keep(") + "    run.backward(loss)\n", 64, "frees the gradient of weight before"),
    "a buffer later": (BUFFER + "    if run.step == 2: model.b.add_(1)\n    run.backward(loss)\n", 64,
                       "changed the buffer b, which the trial's slot did not"),
    "a large buffer later": (BUFFER.replace("torch.ones(2,", "torch.ones(1 << 18,")
                             + "    if run.step == 3: model.b.data.add_(1)\n    run.backward(loss)\n", 64,
                             "changed the buffer b, which the trial's slot did not"),
    "a sparse buffer": (BUFFER.replace("torch.ones(2, dtype=torch.int64)",
                                       "torch.eye(2).to_sparse(), persistent=False")
                        + "    run.backward(loss)\nprint(run.step, 'steps')\n", 0, "6 steps"),
    "a batch norm twice": (LOOP.replace("run.keep(", BATCH_NORM.split("\n", 3)[3])
                           .replace("model(x)", "model(x) + model(x * x)") + "    run.backward(loss)\n"
                           "print(int(model[1].num_batches_tracked), 'batches')\n", 0, "12 batches"),
    "no learning rate": (LOOP.replace("run.keep(", "optimizer = Relative(model.parameters(), {'lr': None})\n"
                                      "run.keep(") + "    run.backward(loss)\nprint(run.step, 'steps')\n",
                         0, "6 steps"),
    "a gradient twice": (LOOP + "    from torch.utils.checkpoint import checkpoint\n"
                         "    again = lambda: checkpoint(model, x.requires_grad_(), use_reentrant=True)\n"
                         "    if run.step == 2: loss = (again() + again()).mean()\n"
                         "    run.backward(loss)\n", 64, "came twice in one slot"),
    "a sparse gradient": (LOOP.replace("run.keep(", "model = torch.nn.EmbeddingBag(9, 2, sparse=True)\n"
                                       "optimizer = torch.optim.SGD(model.parameters(), 0.1)\nrun.keep(")
                          .replace("model(x)", "model((x * 8).long())") + "    run.backward(loss)\n", 64,
                          "gradient of weight is sparse; make the embedding with sparse=False"),
    "one sample": (LOOP.replace("run.keep(", BATCH_NORM) + "    run.backward(loss)\n", 64,
                   "this was the run's smallest slot, of 1 samples: step 6 has 1;"),
    "more threads": (LOOP + "    run.backward(loss)\n    if run.step == 2: torch.set_num_threads(3)\n",
                     64, "the loop changed torch.set_num_threads() from 1 to 3"),
    "default device": (KEEP + "torch.set_default_device('meta')\n" + LOOP[len(KEEP):]
                       + "    run.backward(loss)\n", 64, "on the device meta by default"),
    "no gradients": (LOOP.replace("for x, y", "torch.set_grad_enabled(False)\nfor x, y")
                     + "    run.backward(loss)\n", 64, "no_grad()"),
    "float64": (LOOP.replace("model =", "torch.set_default_dtype(torch.float64)\nmodel =")
                + "    run.backward(loss)\n", 64, "only float32"),
    "a fork that goes on": (LOOP + "    if run.step == 2 and os.fork(): os.wait()\n    run.backward(loss)\n",
                            0, "a process that the loop's body forked goes on"),
    "exit": (LOOP + "    run.backward(loss)\n    if run.step == 2: sys.exit(3)\n", 64, "run.finish() ends a run early"),
    "break": (LOOP + "    run.backward(loss)\n    if run.step == 2: break\n", 64, "left its loop"),
}

# One mistake of each kind, for a run, with its message in a run if it differs.
IN_RUNS = {**dict.fromkeys(("optimizer.step", "a late step", "own generator", "a sample fails", "exit")),
           "a loss of no number": "step 3, of the samples at positions [16, 24) of epoch 1: its loss"}
# The other worker has to hear of these.
OF_TWO_WORKERS = ("own generator", "exit")


class Misuse(ScriptTest):
    def script_of(self, text):
        """Adds generators that no line of the script seeds."""
        return text.replace("import os, sys", "import os, random, sys").replace(
            "class Data", "G = torch.Generator()\nR = random.Random()\nclass Data")

    def test_alone_each_is_one_sentence(self):
        # A loop that was left ends the process itself: script_finish_test.py.
        cases = {name: case for name, case in IN_THE_LOOP.items() if name not in ("exit", "break")}
        scripts = {name: self.write_script(self.script_of(text), f"case{number}.py")
                   for number, (name, (text, _, _)) in enumerate(cases.items())}
        codes = self.alone(SCRIPTS / "run_each.py", *scripts.values()).split("codes ")[1].split()
        self.assertLessEqual(set(codes), {"0", "1", "75"}, "each came to its own end")
        for name, (_, _, said) in cases.items():
            with self.subTest(name):
                output = scripts[name].with_suffix(".py.out").read_text()
                self.assertIn(said, output[-2000:])

    def test_a_run_ends_at_once_with_the_code_and_the_sentence(self):
        for number, (name, said_in_runs) in enumerate(IN_RUNS.items()):
            text, code, said = IN_THE_LOOP[name]
            with self.subTest(name):
                script = self.write_script(self.script_of(text))
                run = self.start_script(script, workers=2 if name in OF_TWO_WORKERS else 1,
                                        name=f"run{number}")
                self.assertEqual(run.wait(), code, run.text()[-3000:])
                self.assertIn(said_in_runs or said, run.text())
                self.assert_nothing_left(run)

    def test_a_script_that_starts_nothing(self):
        run = self.start_script(self.write_script(HEAD + "print('hello')\n"), workers=1)
        self.assertEqual(run.wait(), 64, run.text()[-2000:])
        self.assertIn("never called lockstep.start()", run.text())

    def test_under_another_launcher(self):
        script = self.write_script("import os\nos.environ['TORCHELASTIC_RUN_ID'] = '1'\n" + KEEP)
        self.assertIn("torchrun", self.alone(script, expect=1))
        script = self.write_script(START + "rank = int(os.environ['LOCAL_RANK'])\n")
        self.assertIn("LOCAL_RANK is for a process of torchrun", self.alone(script, expect=1))
        begun = self.write_script(HEAD + "rank = int(os.environ['RANK'])\n")
        run = self.start_script(begun, workers=1)
        self.assertEqual(run.wait(), 64, run.text()[-2000:])
        self.assertIn("RANK is for a process of torchrun", run.text())


if __name__ == "__main__":
    unittest.main()
