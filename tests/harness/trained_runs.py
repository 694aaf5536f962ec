"""Runs whose models `lockstep eval` and `lockstep predict` use."""
import contextlib
import csv
import io
import json
import os
import pathlib
import signal
import struct
import subprocess

from harness import BIN, LockstepTest, processes_of

TRAIN = {"global_batch": 64, "slots": 4, "epochs": 1, "eval_batch": 50}


def read_npy(path):
    """The type, the shape and the values of an array."""
    content = pathlib.Path(path).read_bytes()
    end = 10 + int.from_bytes(content[8:10], "little")
    header = eval(content[10:end].decode())
    code = {"<f4": "f", "<i4": "i", "|u1": "B"}[header["descr"]]
    count = (len(content) - end) // struct.calcsize(code)
    return header["descr"], header["shape"], struct.unpack(f"<{count}{code}", content[end:])


class TrainedRunsTest(LockstepTest):
    def train(self, path, model, name="run", train=(), **sections):
        job = self.job(path, model=model, train={**TRAIN, **dict(train)}, name=f"{name}.yaml",
                       **sections)
        return self.finish(job, "--workers", 2, name=name)

    def export(self, run, name="out"):
        self.succeed("export", "model", run.run_dir, self.scratch / name)
        return self.scratch / name

    def scores(self, place, *args):
        return json.loads(self.printed("eval", place, *args, "--json"))

    def assert_scores_of_run(self, run, scores):
        self.assertEqual(scores["loss"], run.summary()["eval_loss"])
        self.assertEqual(scores.get("accuracy"), run.summary().get("eval_accuracy"))
        self.assertEqual(scores.get("metrics"), run.summary().get("eval_metrics"))

    def rows(self, *args):
        return list(csv.DictReader(io.StringIO(self.printed("predict", *args))))

    def array(self, *args):
        path = self.scratch / "array.npy"
        path.unlink(missing_ok=True)
        self.succeed("predict", *args, "--out", path)
        return read_npy(path)

    def killing_parts(self, run, most, *words):
        """The exit code, stdout and stderr of a command on two processes, of which `most` are
        killed. Its temporary files are gone."""
        temporary = self.scratch / "temporary"
        temporary.mkdir(exist_ok=True)
        command = subprocess.Popen([BIN / "lockstep", *map(str, words), "--workers", "2"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, "TMPDIR": str(temporary)})
        killed = 0
        while command.poll() is None:
            for pid in processes_of(run.run_dir, lambda words: b"--part" in words):
                if killed < most:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        killed += 1
        self.assertGreaterEqual(killed, 1)
        self.assertEqual(list(temporary.iterdir()), [])
        return command.returncode, *command.communicate()
