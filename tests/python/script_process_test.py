"""The processes of a script: a machine that is short of something, forks, a worker without a sample
of a step, and a writer that dies as it applies the last step."""
import re
import unittest

from script_runs import ScriptTest

SCRIPT = """
# /// lockstep
# train: {global_batch: 2, slots: 2, epochs: 3}
# ///
import errno, os, signal, sys, time
def is_first(what):
    try: os.close(os.open(f"{sys.argv[1]}/{what}", os.O_CREAT | os.O_EXCL))
    except FileExistsError: return False
    return True
if is_first("import"): raise OSError(errno.EAGAIN, "cannot fork")
import torch, lockstep
class OneSample(torch.utils.data.Dataset):
    def __len__(self): return 1
    def __getitem__(self, i):
        if is_first("sample"): raise OSError(errno.EIO, "cannot read")
        return torch.ones(4)
run = lockstep.start()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def after():
    print("step", run.step, "of epoch", run.epoch)
    run.log(applied=run.step)
    if run.step == 3 and run.is_writer and is_first("writer"): os.kill(os.getpid(), signal.SIGKILL)
    if run.step == 2:
        pid = os.fork()
        if pid == 0: time.sleep(600)
        os.kill(pid, signal.SIGTERM)
        print("a child ended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
run.keep(model=model, optimizer=optimizer, after_step=after)
for x in run.batches(torch.utils.data.DataLoader(OneSample(), 5, shuffle=True)):
    if run.is_trial and is_first("trial"): raise MemoryError()
    run.backward(model(x).square().mean())
"""


class Processes(ScriptTest):
    def test_what_the_machine_lacked_is_tried_again_and_all_see_the_same_epochs(self):
        run = self.start_script(self.write_script(SCRIPT), [self.scratch], workers=2)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        for worker in (0, 1):
            said = (run.run_dir / "logs" / f"worker-{worker}.stderr").read_text()
            self.assertEqual(re.findall("step (.) of epoch (.)", said),
                             [("1", "0"), ("2", "1"), ("3", "2")], said)
            self.assertIn("a child ended with -15", said)
            self.assertIn("batch_size=5 of the DataLoader does not count", said)
        for what in ("import", "sample", "trial", "writer"):
            self.assertTrue((self.scratch / what).exists(), what)
        self.assertEqual(len(run.history()), 3)
        log = (run.run_dir / "script_log.jsonl").read_text()
        self.assertEqual(re.sub(',"crc":"[0-9a-f]{8}"', "", log),
                         "".join('{"step":%d,"applied":%d}\n' % (n, n) for n in (1, 2, 3)))
        self.assert_nothing_left(run)

    def test_modules_come_from_the_scripts_folder_and_never_from_the_working_directory(self):
        here = self.scratch / "here"
        here.mkdir()
        trap = "import pathlib; pathlib.Path(__file__).with_suffix('.ran').touch()\nraise ImportError\n"
        for name in ("torch", "lockstep", "typing", "importlib", "helper"):
            (here / f"{name}.py").write_text(trap)
        (self.scratch / "helper.py").write_text("print('the right helper')\n")
        script = self.write_script("# /// lockstep\n# train: {global_batch: 2, max_steps: 1}\n# ///\n"
                                   "import helper, lockstep, torch\n")
        run = self.start_script(script, prefix=("env", "-C", here))
        self.assert_fails(run, 64, names="lockstep.start()")
        self.assertIn("the right helper", self.log_of(run) + run.text())
        self.assertEqual([*here.glob("*.ran")], [])


if __name__ == "__main__":
    unittest.main()
