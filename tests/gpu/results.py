"""The suite's results, written at once: each record is a line of gpu.jsonl, and gpu.md is the table
of all so far. A killed suite leaves both complete up to the last record."""
import json
import os
import threading

import measures
import predictions
from verdicts import FAILED

NOT_RUN = "NOT RUN"


class Results:
    """Thread-safe."""

    def __init__(self, out, about):
        self.out, self.about = out, about
        self.checks, self.answers = [], []
        self.state = "unfinished: the suite is running, or something ended it"
        self.lock = threading.Lock()
        self.lines = open(out / "gpu.jsonl", "w", encoding="utf-8")
        self._write({"about": about})

    def add_check(self, check):
        """A dict: name, result (of verdicts, or NOT_RUN), predicted, detail, seconds."""
        with self.lock:
            self.checks.append(check)
            self._write({"check": check})

    def add_answer(self, answer):
        """A dict: see measures.Measuring."""
        with self.lock:
            self.answers.append(answer)
            self._write({"answer": answer})

    def end(self, state):
        with self.lock:
            self.state = state
            self._write({"end": state})

    def is_right(self):
        """True if nothing of ours failed, and no check was left out. Peers may fail."""
        return (not any(check["result"] in (FAILED, NOT_RUN) for check in self.checks)
                and not any("failed" in answer and answer["side"] in measures.OURS
                            for answer in self.answers))

    def _write(self, record):
        self.lines.write(json.dumps(record) + "\n")
        self.lines.flush()
        os.fsync(self.lines.fileno())
        beside = self.out / "gpu.md.tmp"
        beside.write_text(self.table(), encoding="utf-8")
        os.replace(beside, self.out / "gpu.md")

    def table(self):
        lines = ["# Lockstep on a GPU", "", f"- state: {self.state}",
                 *(f"- {key}: {value}" for key, value in self.about.items()),
                 f"- predicted: for {predictions.GPU}, before any GPU ran this", ""]
        if self.checks:
            lines += ["| check | result | predicted | | s |", "|---|---|---|---|---|"]
            lines += [f"| {c['name']} | {c['result']} | {c['predicted']} | "
                      f"{one_cell(c['detail'])} | {c['seconds']} |" for c in self.checks]
            lines.append("")
        return "\n".join(lines + measures.table(self.answers)) + "\n"


def one_cell(text):
    return " ".join(text.split()).replace("|", "/")
