#!/usr/bin/env python3
r"""Fine-tuning with PEFT: LoRA on a causal language model, trained on the answers to prompts. The base
model stays as it is; the script saves the adapter.

    lockstep run lora.py --workers 2 -- --model gpt2 --data pairs.jsonl --save adapter
    python lora.py --model gpt2 --data pairs.jsonl --save adapter

Both give the same weights. The model is a directory, or a name on Hugging Face's hub. The file has lines
of {"prompt": ..., "completion": ...}. Without them the script makes sums to answer, and a small GPT-2
with random weights, which learns little so. A larger model:

    lockstep run lora.py --workers 8 train.global_batch=64 train.slots=32 train.epochs=3 -- \
        --model Qwen/Qwen2.5-0.5B --data pairs.jsonl --rank 16 --lr 2e-4 --length 1024 --save adapter

11 lines are not plain PyTorch: the block, and those that name lockstep or `run`.
"""
# /// lockstep
# job: lora
# train: {global_batch: 32, slots: 4, epochs: 4, eval_batch: 8}
# ///
import argparse
import json
import pathlib

import lockstep
import torch
from peft import LoraConfig, get_peft_model
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

IGNORED = -100  # of labels: the prompt, and padding


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--model", help="a directory, or a name on the hub")
    parser.add_argument("--data", type=pathlib.Path, help="a file of JSON lines with prompt and completion")
    parser.add_argument("--length", type=int, default=256, help="tokens of a pair, at most")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--alpha", type=int, default=32)
    parser.add_argument("--lora-dropout", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--save", type=pathlib.Path, help="a directory for the adapter")
    return parser.parse_args()


def pairs_of(path):
    if path is None:
        return [(f"{a} and {b} make ", f"{a + b}.") for a in range(20) for b in range(20)]
    rows = map(json.loads, path.read_text().splitlines())
    return [(row["prompt"], row["completion"]) for row in rows]


def base_of(name):
    """The model, and how it encodes a text and ends it."""
    if name is None:
        config = GPT2Config(vocab_size=257, n_positions=256, n_embd=32, n_layer=2, n_head=2,
                            bos_token_id=256, eos_token_id=256)
        return GPT2LMHeadModel(config), lambda text: list(text.encode()), 256
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
    return model, lambda text: tokenizer(text, add_special_tokens=False).input_ids, tokenizer.eos_token_id


class Pairs(torch.utils.data.Dataset):
    def __init__(self, pairs, encode, end, length):
        self.pairs, self.encode, self.end, self.length = pairs, encode, end, length

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        prompt, completion = map(self.encode, self.pairs[index])
        ids = [*prompt, *completion, self.end][:self.length]
        labels = ([IGNORED] * len(prompt) + [*completion, self.end])[:self.length]
        return torch.tensor(ids), torch.tensor(labels)


def collate(samples):
    """Pads on the right."""
    ids, labels = zip(*samples)
    mask = [torch.ones_like(i) for i in ids]
    return {"input_ids": pad_sequence(ids, batch_first=True),
            "attention_mask": pad_sequence(mask, batch_first=True),
            "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED)}


def answers(batch):
    """Tokens that the loss is the mean over; the first of a sequence follows on none."""
    return int((batch["labels"][:, 1:] != IGNORED).sum())


def main():
    args = arguments()
    run = lockstep.start()
    base, encode, end = base_of(args.model)
    model = get_peft_model(base, LoraConfig(
        task_type="CAUSAL_LM", r=args.rank, lora_alpha=args.alpha, lora_dropout=args.lora_dropout))
    model.print_trainable_parameters()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], args.lr)
    train, val = torch.utils.data.random_split(Pairs(pairs_of(args.data), encode, end, args.length),
                                               [0.9, 0.1], torch.Generator().manual_seed(1))

    def evaluate(batch):
        return {"loss": model(**batch).loss, "count": answers(batch)}

    run.keep(model=model, optimizer=optimizer, clip_norm=1.0)
    run.evaluate(evaluate, val, collate=collate)
    for batch in run.batches(train, collate=collate):
        run.backward(model(**batch).loss, count=answers(batch))
    if args.save and run.is_writer:
        model.save_pretrained(args.save)
    model.eval()
    with torch.no_grad():
        print(f"held-out loss {model(**collate([*val])).loss:.4f}")


if __name__ == "__main__":
    main()
