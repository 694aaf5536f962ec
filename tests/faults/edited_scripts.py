"""edited: the script, or a module beside it, is edited while its run lasts, and a worker starts
later. No worker trains with the new code until a user resumes the run.
"""
import json
import os
import signal

from case import Case
from jobs import script_environment
from stage import CRASH, Defect, log_events, poll
from verdict import wait_for_end

STEPS = 60
SCRIPT = f"""
# /// lockstep
# seed: 5
# train: {{global_batch: 8, slots: 4, max_steps: {STEPS}}}
# checkpoint: {{every_steps: 10}}
# cluster: {{lease_s: 1, grace_s: 10, max_crashes: 1000, start_timeout_s: 120}}
# ///
import os, time, torch, lockstep
from parts import loss_of
run = lockstep.start()
model = torch.nn.Linear(4, 2)
run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
generator = torch.Generator().manual_seed(3)
data = [(torch.randn(4, generator=generator), i % 2) for i in range(64)]
for x, y in run.batches(data):
    time.sleep(float(os.environ["FAULTS_SLOT_MS"]) / 1000 if not run.is_trial else 0)
    run.backward(loss_of(model(x), y))
"""
PARTS = """
from torch.nn import functional as F
def loss_of(logits, y):
    return F.cross_entropy(logits, y)
"""
EDITS = {"comment": lambda text: text + "# of a person who reads\n",
         "loss": lambda text: text.replace("return F.cross_entropy(logits, y)",
                                           "return 2 * F.cross_entropy(logits, y)")}


class Play:
    """A run of the script, and the checks of its outcome."""

    def __init__(self, stage, name, edit):
        self.stage, self.file = stage, stage.scratch / name
        (stage.scratch / "train.py").write_text(SCRIPT)
        (stage.scratch / "parts.py").write_text(PARTS)
        stage.job = stage.scratch / "train.py"
        self.env = script_environment(stage)
        self.new = EDITS[edit](self.file.read_text())
        whole = stage.start(workers=1, env=self.env, slot_ms=0)
        if wait_for_end(whole) != 0:
            raise Defect("the undisturbed run failed:\n" + whole.text()[-2000:])
        self.weights, self.history = whole.summary()["weights_sha256"], whole.history()
        stage.run_dir = stage.scratch / "again"
        self.run = stage.start(workers=2, env=script_environment(stage, slot_ms=50), slot_ms=0)
        poll(lambda: self.run.steps() >= 12 and len(self.run.workers()) == 2, "step 12", self.run)

    def edit(self):
        """Edits as editors do: a new file in the old one's place."""
        self.old = self.file.read_text()
        self.write(self.new)

    def write(self, text):
        fresh = self.file.with_name("fresh")
        fresh.write_text(text)
        fresh.rename(self.file)

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)

    def wait_for_refusal(self):
        return poll(lambda: log_events(self.run.run_dir, "worker_refused"), "a refusal", self.run)

    def expect_end(self, run, code, says=()):
        found = wait_for_end(run)
        for word in CRASH:  # a refused script shows where it stood
            if word in run.text():
                raise Defect(f"it crashed ({word!r}):\n" + run.text()[-3000:])
        if found != code:
            raise Defect(f"code {found}, not {code}:\n" + run.text()[-3000:])
        for word in says:
            if word not in run.text():
                raise Defect(f"nothing is said of {word!r}:\n" + run.text()[-3000:])
        if code == 0 and (run.summary()["weights_sha256"], run.history()) != (self.weights,
                                                                             self.history):
            raise Defect("it trained otherwise than the undisturbed run")

    def resume(self):
        return self.stage.resume(env=self.env)


def one_killed(play):
    """The other worker goes on, with the code that it has."""
    play.edit()
    play.kill(play.run.worker(0))
    refusals = play.wait_for_refusal()
    if "runs other code than this run" not in json.dumps(refusals):
        raise Defect(f"refused for something else: {refusals}")
    play.expect_end(play.run, 0)


def all_killed(play):
    """No process is left that has the code of the run. The run ends, and goes on with the old
    file."""
    play.edit()
    for pid in play.run.workers():
        play.kill(pid)
    play.expect_end(play.run, 64, says=("runs other code than this run",))
    play.write(play.old)
    play.expect_end(play.resume(), 0)


def coordinator_killed(play):
    """The next coordinator knows the code of the run, whichever worker comes to it first."""
    play.edit()
    workers = play.run.workers()
    coordinator = json.loads((play.run.run_dir / "coordinator.json").read_text())["pid"]
    play.kill(coordinator)
    play.kill(workers[1])
    play.wait_for_refusal()
    play.expect_end(play.run, 0)


def mended_before_a_resume(play):
    play.run.process.terminate()
    play.expect_end(play.run, 75)
    play.edit()
    play.expect_end(play.resume(), 0)


def cases():
    def case(what, edit, when, does):
        return Case(f"edited/{what}/{edit}/{when}",
                    lambda stage: does(Play(stage, f"{what}.py", edit)))
    for what, edit in (("train", "comment"), ("parts", "comment"), ("parts", "loss")):
        yield case(what, edit, "one-killed", one_killed)
        yield case(what, edit, "all-killed", all_killed)
        yield case(what, edit, "coordinator-killed", coordinator_killed)
    yield case("train", "comment", "before-resume", mended_before_a_resume)
    yield case("parts", "comment", "before-resume", mended_before_a_resume)
