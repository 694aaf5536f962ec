"""One training loop in Python, for script_loops.py: the same model, data and micro-batches in a bare
loop (`python loop_script.py bare ...`) and as a script of Lockstep. Prints its rate in steps/s."""
# /// lockstep
# job: loop
# train: {global_batch: 128, slots: 4, check_every: 0}
# checkpoint: {every_steps: 0}
# ///
import sys
import time

import torch

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from peer_models import loss_of, make_model, training_data  # noqa: E402

MODE, MODEL, DATA, STEPS, BATCH, SLOTS = *sys.argv[1:4], *map(int, sys.argv[4:7])
WARMUP = max(2, STEPS // 10)
SIZE, BLOCK = "d4", 128


def rate_of(begun, steps=STEPS - WARMUP, ended=None):
    print(f"rate {steps / ((ended or time.perf_counter()) - begun):.6f}", flush=True)


def bare(rows, model, optimizer):
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))
    size = BATCH // SLOTS
    for step in range(STEPS):
        if step == WARMUP:
            begun = time.perf_counter()
        for slot in range(SLOTS):
            first = (step * BATCH + slot * size) % (len(rows) - size)
            x, y = (tensor[order[first:first + size]] for tensor in rows.tensors)
            (loss_of(MODEL, model(x), y) / SLOTS).backward()
        optimizer.step()
        optimizer.zero_grad()
    rate_of(begun)


def in_lockstep(rows, model, optimizer, run):
    run.keep(model=model, optimizer=optimizer)
    begins = {}  # by step; the end of the run, which writes a checkpoint, is no step
    for x, y in run.batches(rows):
        begins.setdefault(run.step, time.perf_counter())
        run.backward(loss_of(MODEL, model(x), y))
    rate_of(begins[WARMUP], STEPS - 1 - WARMUP, begins[STEPS - 1])


def main():
    run = None
    if MODE != "bare":
        import lockstep
        run = lockstep.start()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rows = torch.utils.data.TensorDataset(*training_data(MODEL, DATA, BLOCK))
    model = make_model(MODEL, SIZE, BLOCK)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    bare(rows, model, optimizer) if run is None else in_lockstep(rows, model, optimizer, run)


main()
