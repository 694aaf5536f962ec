"""A small GPT under lockstep.Trainer, as its words say: DELAY (every slot takes longer, in ms: a number
or a file that has it), PLAIN (a file to which transformers' own Trainer over the same slots writes
what it finds; alone only).
"""
# /// lockstep
# job: hf
# seed: 7
# train: {global_batch: 12, slots: 3, epochs: 2, eval_batch: 4}
# checkpoint: {every_steps: 6}
# ///
import copy
import json
import pathlib
import sys
import time

import torch
import transformers

import lockstep

DELAY, PLAIN = [*sys.argv[1:], *("0", "")[len(sys.argv) - 1:]]
OUT = pathlib.Path(PLAIN or DELAY).with_name("out")
SAMPLES = 40  # 4 steps an epoch, the last of 4 samples


class Words(torch.utils.data.Dataset):
    """Samples of many lengths, so that slots have different numbers of words."""

    def __init__(self):
        generator = torch.Generator().manual_seed(5)
        lengths = torch.randint(3, 16, (SAMPLES,), generator=generator).tolist()
        self.words = [(torch.randint(30, (1,), generator=generator) + torch.arange(n)) % 31 + 1
                      for n in lengths]

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return {"input_ids": self.words[index].tolist(), "source": index}  # the model takes no source


def collate(samples):
    width = max(len(s["input_ids"]) for s in samples)
    ids = torch.tensor([s["input_ids"] + [0] * (width - len(s["input_ids"])) for s in samples])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(),
            "labels": ids.masked_fill(ids == 0, -100)}


HELD_OUT = [{"input_ids": list(range(1, length))} for length in range(4, 15)]


class Slow:
    def compute_loss(self, model, inputs, *more, **named):
        in_loop = isinstance(self, lockstep.Trainer)
        if in_loop and not run.is_trial:
            time.sleep(delay_s())
            assert self.state.global_step == run.step
        loss = super().compute_loss(model, inputs, *more, **named)
        if model.training and not (in_loop and run.is_trial):
            self.computed.append((copy.deepcopy(inputs), float(loss.detach())))
        return loss


class Told(transformers.TrainerCallback):
    def __init__(self):
        self.events = []
        self.rates = []

    def on_step_end(self, args, state, control, **kwargs):
        self.events.append(state.global_step)

    def on_epoch_end(self, args, state, control, **kwargs):
        self.events.append(f"epoch {state.epoch:g}")

    def on_log(self, args, state, control, logs, **kwargs):
        self.rates += [logs["learning_rate"]] if "learning_rate" in logs else []


class Report(transformers.TrainerCallback):
    """Like W&B's callback: writes nothing if it begins in another process than the first."""

    def on_train_begin(self, args, state, control, **kwargs):
        self.is_open = state.is_world_process_zero

    def on_log(self, args, state, control, logs, **kwargs):
        if self.is_open and PLAIN and isinstance(trainer, lockstep.Trainer):
            with open(pathlib.Path(PLAIN).with_name("report.txt"), "a") as file:
                file.write(f"{state.global_step} {logs['learning_rate']}\n")


def delay_s():
    return float(DELAY if DELAY.isdigit() else pathlib.Path(DELAY).read_text()) / 1000


def trainer_of(base, model, told, **more):
    arguments = transformers.TrainingArguments(
        str(OUT), seed=7, learning_rate=1e-2, warmup_steps=2, weight_decay=0.1, max_grad_norm=0.5,
        lr_scheduler_type="cosine", logging_steps=1, save_strategy="no", disable_tqdm=True,
        report_to=["test"], **more)
    name = type("Slow" + base.__name__, (Slow, base), {"computed": []})
    return name(model, arguments, train_dataset=Words(),
                eval_dataset={"long": HELD_OUT, "short": HELD_OUT[:3]},
                data_collator=collate, callbacks=[told])


class InOrder(transformers.Trainer):
    """Trains on the batches in `slots`, in their order."""

    slots = []

    def get_train_dataloader(self):
        return torch.utils.data.DataLoader(self.slots, batch_size=None, shuffle=False)


run = lockstep.start()
config = transformers.GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2,
                                 bos_token_id=0, eos_token_id=0, attn_pdrop=0, embd_pdrop=0,
                                 resid_pdrop=0)
model = transformers.GPT2LMHeadModel(config)
model.loss_type = "ForCausalLM"
fresh = copy.deepcopy(model)
told = Told()
transformers.integrations.integration_utils.INTEGRATION_TO_CALLBACK["test"] = Report
trainer = trainer_of(lockstep.Trainer, model, told, num_train_epochs=2, eval_strategy="epoch")
output = trainer.train()
with torch.no_grad():
    held_out, other = (model.eval()(**{name: tensor.to(run.device)
                                       for name, tensor in collate(data).items()}).loss
                       for data in (HELD_OUT, HELD_OUT[:3]))
print(f"behind train after {output.global_step} steps, told {told.events[-2:]}, "
      f"held out {held_out:.5f}, other {other:.5f}", flush=True)
if PLAIN:
    InOrder.slots = [inputs for inputs, _ in trainer.computed]
    told_too = Told()
    plain = trainer_of(InOrder, fresh, told_too, max_steps=8, gradient_accumulation_steps=3)
    computed, trainer = trainer.computed, plain
    plain.train()
    words = [int((inputs["labels"][:, 1:] != -100).sum()) for inputs in InOrder.slots]
    losses = [sum(n * loss for n, (_, loss) in zip(words[i:i + 3], computed[i:i + 3]))
              / sum(words[i:i + 3]) for i in range(0, 24, 3)]
    found = {"train": losses,
             "plain": [row["loss"] for row in plain.state.log_history if "loss" in row],
             "rates": [told.rates, told_too.rates],
             "weights": max(float((a.cpu() - b).detach().abs().max())
                            for a, b in zip(model.parameters(), fresh.parameters()))}
    pathlib.Path(PLAIN).write_text(json.dumps(found))
