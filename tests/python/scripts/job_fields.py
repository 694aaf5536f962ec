"""A loop over samples whose every number follows from one, so that each batch says whether it is whole;
its word says what the job's data are."""
# /// lockstep
# train: {global_batch: 12, slots: 3, max_steps: 5}
# ///
import sys

import torch

import lockstep


def check_fields(batch):
    x, y = batch
    assert type(batch) is lockstep.Batch and batch.x is x and batch.y is y
    number = x["number"]
    assert list(x) == ["image", "number"] and list(y) == ["half", "kind"]
    assert x["image"].dtype == torch.float32 and x["image"].shape[1:] == (1, 2, 2)
    assert number.dtype == torch.int64 and number.shape == x["image"].shape[:1]
    assert torch.equal(x["image"], (number / 255).float().view(-1, 1, 1, 1).expand(-1, 1, 2, 2))
    assert torch.equal(y["half"], torch.stack([number / 2, number / 4], 1))
    assert torch.equal(y["kind"], number % 3) and y["kind"].dtype == torch.int64
    assert torch.equal(batch.weight, number + 1.0) and batch.fields["number"] is number
    return x["image"].flatten(1)


def check_tokens(batch):
    x, y = batch
    assert x.dtype == y.dtype == torch.int64 and x.shape == y.shape and x.shape[1] == 8
    assert torch.equal(x + 1, y) and batch.fields == {} and batch.weight is None
    return x.float() / 100


def check_documents(batch):
    x, y = batch
    tokens, places = x[:, 0], x[:, 1]
    assert x.shape[1:] == (2, 8) and y.shape == tokens.shape and x.dtype == torch.int64
    counted = y != -100
    assert counted.any() and torch.equal(tokens[counted] + 1, y[counted])
    assert int(places.max()) < 8 and int(places.min()) == 0
    return tokens.float() / 100


check, width = {"fields": (check_fields, 4), "tokens": (check_tokens, 8),
                "documents": (check_documents, 8)}[sys.argv[1]]
run = lockstep.start()
model = torch.nn.Linear(width, 1)
run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
for batch in run.batches():
    run.backward(model(check(batch)).square().mean())
