#!/usr/bin/env python3
r"""Speech to text by CTC: a recurrent network over spectra of recordings of any length, with a loss per
letter, and the share of right letters after every epoch.

    lockstep run ctc.py --workers 2 -- --data LJSpeech-1.1
    python ctc.py --data LJSpeech-1.1

Both give the same weights. The directory has metadata.csv, with lines of id|text, and wavs/ID.wav, as
LJSpeech has them: mono, 16 bits. Without one the script makes recordings in which each letter is a tone.
A network for the whole of LJSpeech:

    lockstep run ctc.py --workers 8 train.global_batch=256 train.slots=32 train.epochs=50 -- \
        --data LJSpeech-1.1 --width 512 --layers 4 --lr 5e-4 --data-processes 2

10 lines are not plain PyTorch: the block, and those that name lockstep or `run`.
"""
# /// lockstep
# job: ctc
# train: {global_batch: 32, slots: 4, epochs: 10, eval_batch: 20}
# ///
import argparse
import pathlib
import wave

import lockstep
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

LETTERS = " abcdefghijklmnopqrstuvwxyz'"  # classes 1 to 28; 0 is CTC's blank
RATE = 8000  # samples/s of the recordings that are made here


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", type=pathlib.Path, help="a directory in the form of LJSpeech")
    parser.add_argument("--samples", type=int, default=400, help="recordings, if they are made here")
    parser.add_argument("--features", type=int, default=40, help="bands of a spectrum")
    parser.add_argument("--width", type=int, default=64, help="of a layer, in each direction")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--data-processes", type=int, default=1, help="they read ahead")
    return parser.parse_args()


def made(index):
    """A recording of three to eight letters, and its text."""
    draw = torch.Generator().manual_seed(index)
    letters = torch.randint(2, 12, (int(torch.randint(3, 9, (), generator=draw)),), generator=draw)
    sounds = []
    for letter in letters.tolist():
        time = torch.arange(int(torch.randint(400, 900, (), generator=draw))) / RATE
        sounds += [torch.sin(2 * torch.pi * (200 + 150 * letter) * time), torch.zeros(100)]
    sound = torch.cat(sounds)
    return sound + 0.1 * torch.randn(sound.shape, generator=draw), "".join(LETTERS[i - 1] for i in letters)


def recording(path):
    with wave.open(str(path)) as file:
        content = bytearray(file.readframes(file.getnframes()))
    return torch.frombuffer(content, dtype=torch.int16) / 32768


class Speech(torch.utils.data.Dataset):
    """Spectra (time, features) and letters of recordings."""

    def __init__(self, args):
        self.directory, self.features = args.data, args.features
        self.rows = [line.split("|") for line in (args.data / "metadata.csv").read_text().splitlines()] \
            if args.data else range(args.samples)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        sound, text = (recording(self.directory / "wavs" / f"{row[0]}.wav"), row[-1]) \
            if self.directory else made(row)
        power = torch.stft(sound, 256, 128, window=torch.hann_window(256), return_complex=True).abs()
        bands = F.adaptive_avg_pool1d(power.T, self.features)
        letters = [LETTERS.index(letter) + 1 for letter in text.lower() if letter in LETTERS]
        return bands.add(1e-3).log(), torch.tensor(letters)


def collate(samples):
    """Pads both; CTC takes the lengths."""
    spectra, letters = zip(*samples)
    return (pad_sequence(spectra, batch_first=True), pad_sequence(letters, batch_first=True),
            torch.tensor([len(s) for s in spectra]), torch.tensor([len(s) for s in letters]))


class Recognizer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.norm = nn.LayerNorm(args.features)
        self.rnn = nn.LSTM(args.features, args.width, args.layers, batch_first=True, bidirectional=True,
                           dropout=0.1 if args.layers > 1 else 0.0)
        self.classes = nn.Linear(2 * args.width, len(LETTERS) + 1)

    def forward(self, spectra, lengths):
        packed = pack_padded_sequence(self.norm(spectra), lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.classes(hidden).log_softmax(-1)


def loss_of(log_probs, letters, lengths, letter_lengths):
    """The mean over the letters of the batch."""
    loss = F.ctc_loss(log_probs.transpose(0, 1), letters, lengths, letter_lengths, reduction="sum",
                      zero_infinity=True)
    return loss / letter_lengths.sum()


def distance(one, other):
    """Letters to put in, take out or change."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one):
        before, row[0] = row[0], i + 1
        for j, b in enumerate(other):
            before, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, before + (a != b))
    return row[-1]


def wrong_letters(log_probs, letters, lengths, letter_lengths):
    """Counts wrong letters of the best path, without repeats and blanks."""
    wrong = 0
    for best, length, text, count in zip(log_probs.argmax(-1), lengths, letters, letter_lengths):
        read = [c for c in best[:length].unique_consecutive().tolist() if c]
        wrong += distance(read, text[:count].tolist())
    return wrong


def main():
    args = arguments()
    speech = Speech(args)
    train, val = torch.utils.data.random_split(speech, [0.9, 0.1], torch.Generator().manual_seed(1))
    run = lockstep.start()
    model = Recognizer(args)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr)

    def evaluate(batch):
        spectra, letters, *lengths = batch
        log_probs = model(spectra, lengths[0])
        count = int(lengths[1].sum())
        return {"loss": loss_of(log_probs, letters, *lengths), "count": count,
                "correct": max(0, count - wrong_letters(log_probs, letters, *lengths))}

    run.keep(model=model, optimizer=optimizer, clip_norm=5.0)
    run.evaluate(evaluate, val, collate=collate)
    for spectra, letters, *lengths in run.batches(train, workers=args.data_processes, collate=collate):
        loss = loss_of(model(spectra, lengths[0]), letters, *lengths)
        run.backward(loss, count=int(lengths[1].sum()))
    model.eval()
    with torch.no_grad():
        spectra, letters, *lengths = collate([*val])
        wrong = wrong_letters(model(spectra, lengths[0]), letters, *lengths)
    print(f"letter error rate {wrong / int(lengths[1].sum()):.4f}")


if __name__ == "__main__":
    main()
