"""Checks of a failure or an event: its exit code or kind, its subjects, its advice. The sentences
around these words are free to change. tests/support/fails_with.h is the same for C++.

    self.assert_fails(run, 65, names=[path, "labels"], advises="--format")
    self.assert_fails(lockstep("scale", "/nowhere", 2), 66, names="/nowhere")
    self.assert_event(run, "member_died", names=[f"pid {victim}", "signal 9"])
"""
import json
import os
import pathlib
import re

# A line in which one of our programs says what is wrong.
COMPLAINT = re.compile(r"(?m)^ *(?:lockstep[\w-]*|coordinator|agent|worker)[^:\n]*: .*$")
CRASH = ("terminate called", "core dumped", "what():", "egmentation", "frame #")
# Keys that every line of a log has besides its event's own keys.
OF_EVERY_LINE = ("ts", "level", "process", "event", "run", "generation", "step", "rank")


def all_of(words):
    """One word may stand for a list of one."""
    is_one = isinstance(words, (str, int, os.PathLike))
    return [str(word) for word in ([words] if is_one else words)]


def is_named(subject, text):
    """Whether the text has the subject as a whole word: 1592 does not name 59, nor cnnn cnn."""
    return re.search(rf"(?<!\w){re.escape(subject)}(?!\w)", text) is not None


def lacking(text, names=(), says=(), advises=()):
    """Which of these a message lacks.

    names: its subjects, such as a file, a member, a key, a place in them, a value
    says: a fact that no other failure of the same subject has
    advises: keywords of what to do
    """
    return ([word for word in all_of(names) if not is_named(word, text)]
            + [word for word in [*all_of(says), *all_of(advises)] if word not in text])


def outcome_of(ended):
    """Exit code and output of a Run, a subprocess.CompletedProcess or such a pair."""
    if isinstance(ended, tuple):
        return ended
    if hasattr(ended, "returncode"):
        return ended.returncode, (ended.stdout or "") + (ended.stderr or "")
    return ended.wait(), ended.text()


def events(run, kind, log="coordinator"):
    """The lines of this event in a program's log, in order. `log`: its name, or a pattern such as
    worker-*."""
    run_dir = pathlib.Path(getattr(run, "run_dir", run))
    lines = [json.loads(line) for path in sorted((run_dir / "logs").glob(f"{log}.log.jsonl"))
             for line in path.read_text().splitlines() if line.endswith("}")]
    return [line for line in lines if line["event"] == kind]


def told(event):
    """The values of a log line that belong to its own event."""
    return " ".join(str(value) for key, value in event.items() if key not in OF_EVERY_LINE)


class FailsWith:
    """A base of unittest.TestCases."""

    def assert_fails(self, ended, code, names=(), says=(), advises=()):
        """Checks that a program ended with this exit code, and complained of this."""
        returned, text = outcome_of(ended)
        self.assertEqual(returned, code, text[-3000:])
        self.assert_no_crash(text)
        complaint = "\n".join(COMPLAINT.findall(text))
        self.assertEqual(lacking(complaint, names, says, advises), [],
                         f"is lacking in:\n{complaint or text[-3000:]}")

    def assert_event(self, run, kind, names=(), says=(), advises=(), log="coordinator"):
        """Checks that a line of this event tells of this. Returns the first such line."""
        lines = events(run, kind, log)
        for line in lines:
            if not lacking(told(line), names, says, advises):
                return line
        self.fail(f"no {kind} in {log} with {[*all_of(names), *all_of(says), *all_of(advises)]}: "
                  + "\n".join(map(told, lines)))

    def assert_no_crash(self, text):
        for word in CRASH:
            self.assertNotIn(word, text)
