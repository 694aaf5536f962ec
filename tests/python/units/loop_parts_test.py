"""The parts of the loop that stand on their own: the trial's slots, settings of torch, the compiler,
gradients, forks, and what an error is due to."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

import torch
from torch import nn

from lockstep import _numerics
from lockstep._device import HOST
from lockstep._core import Core, Task
from lockstep._data import unpack
from lockstep._errors import (BAD_DATA, USAGE, LockstepError, Misuse, detail_of, failing_alike,
                              fails_alike, hint_of, is_of_machine, is_of_script)
from lockstep._forks import Forks
from lockstep._gradients import Gradients
from lockstep._settings import Settings
from lockstep._signals import StopSignals
from lockstep._state import MisuseError, NamedParameter, StateError
from lockstep._translate import as_ours, ours
from lockstep._trial import tasks_of


class FakeCore:
    """Cuts `samples` as a run does."""

    def __init__(self, samples: int, batch: int, slots: int, max_steps: int = 0) -> None:
        self.job = {"global_batch": batch, "slots": slots, "max_steps": max_steps}
        self.samples, self.batch, self.slots = samples, batch, slots

    def task_of(self, step: int, slot: int) -> Task | None:
        begin = step * self.batch
        size = min(self.batch, self.samples - begin)
        ends = [begin + size * (slot + k) // self.slots for k in (0, 1)]
        return None if ends[0] == ends[1] else Task(step=step, begin=ends[0], end=ends[1],
                                                    step_samples=size, slot=slot)


class TrialTest(unittest.TestCase):
    def sizes(self, *shape: int) -> list[tuple[int, int]]:
        return [(task.step, task.end - task.begin)
                for task in tasks_of(FakeCore(*shape), shape[0], 1) if task is not None]

    def test_the_smallest_slot_of_a_run_is_tried(self) -> None:
        self.assertEqual([(0, 4)], self.sizes(40, 8, 2), "all are alike")
        self.assertEqual([(0, 4), (5, 1)], self.sizes(41, 8, 2))
        self.assertEqual([(0, 4)], self.sizes(41, 8, 2, 5), "the short step is not reached")
        self.assertEqual([(0, 4), (5, 1)], self.sizes(41, 8, 2, 6))
        self.assertEqual([(0, 1)], self.sizes(3, 8, 4), "fewer samples than slots")
        self.assertEqual([(0, 1)], self.sizes(7, 7, 4), "the first is the smallest")


class SettingsTest(unittest.TestCase):
    def test_a_setting_that_the_body_leaves_changed_is_named(self) -> None:
        settings = Settings(HOST.place)
        for change, back, name in (
                (lambda: torch.set_num_threads(3), lambda: torch.set_num_threads(1), "num_threads"),
                (lambda: torch.set_default_dtype(torch.float64),
                 lambda: torch.set_default_dtype(torch.float32), "default_dtype"),
                (lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None),
                 "default_device"),
                (lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True),
                 "grad_enabled"),
                (lambda: torch.set_float32_matmul_precision("high"),
                 lambda: torch.set_float32_matmul_precision("highest"), "float32_matmul_precision")):
            settings.check()
            change()
            try:
                with self.assertRaisesRegex(Misuse, f"the loop changed torch.set_{name}"):
                    settings.check()
            finally:
                back()

    def test_an_autocast_or_a_determinism_that_begins_in_the_loop_is_named(self) -> None:
        settings = Settings(HOST.place)
        with torch.autocast("cpu", torch.bfloat16), self.assertRaisesRegex(Misuse, "torch.autocast"):
            settings.check()
        before = torch.are_deterministic_algorithms_enabled()
        self.addCleanup(torch.use_deterministic_algorithms, before)
        torch.use_deterministic_algorithms(not before, warn_only=True)
        with self.assertRaisesRegex(Misuse, "torch.use_deterministic_algorithms"):
            settings.check()

    def test_no_loop_trains_on_another_device_or_for_inference(self) -> None:
        with torch.device("meta"), self.assertRaisesRegex(Misuse, "on the device meta by default"):
            Settings(HOST.place)
        with torch.inference_mode(), self.assertRaisesRegex(Misuse, "stands in torch.inference_mode"):
            Settings(HOST.place)


class NumericsTest(unittest.TestCase):
    def test_a_process_computes_as_its_fingerprint_says(self) -> None:
        before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        self.addCleanup(torch.set_num_threads, before[0])
        self.addCleanup(torch.use_deterministic_algorithms, before[1])
        torch.use_deterministic_algorithms(False)
        _numerics.prepare(3, True)
        lines = _numerics.fingerprint("abc", HOST)
        self.assertEqual(sorted(lines), lines)
        self.assertLessEqual({"threads=3", "deterministic=True", "trial=abc", "matmul=highest"}, {*lines})


class CompilerTest(unittest.TestCase):
    def test_every_shape_is_compiled_or_the_script_ends(self) -> None:
        _numerics.prepare(1, True)
        compiled: list[int] = []

        def backend(graph: Any, inputs: Any) -> Any:
            compiled.append(len(inputs))
            return graph.forward

        function = torch.compile(lambda x: x.sin() + 1, backend=backend)
        for size in range(2, 14):
            function(torch.ones(size))
        self.assertEqual(12, len(compiled), "a program for each shape, and no fallback")
        self.addCleanup(setattr, torch._dynamo.config, "recompile_limit", 256)
        torch._dynamo.config.recompile_limit = 12
        with self.assertRaises(Exception) as caught:
            function(torch.ones(99))
        self.assertIn("dynamic=True", str(_numerics.misuse_of_compiler(caught.exception)))
        self.assertIsNone(_numerics.misuse_of_compiler(ValueError()))

    def test_kernels_are_not_chosen_by_the_clock(self) -> None:
        function = torch.compile(lambda x: x @ x, mode="max-autotune")
        _numerics.prepare(1, True)
        with self.assertRaises(Exception) as caught:
            function(torch.ones(2, 2))
        self.assertIn("max_autotune", str(_numerics.misuse_of_compiler(caught.exception)))


class LazyMinus(torch.autograd.Function):
    """Its gradient is a view whose numbers have the other sign in memory."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.sum()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        imaginary = -torch.arange(1.0, 4) * grad
        return torch._neg_view(imaginary)


class GradientsTest(unittest.TestCase):
    def test_a_gradient_that_is_negated_lazily_has_its_sign_in_memory(self) -> None:
        weight = nn.Parameter(torch.zeros(3))
        gradients = Gradients([NamedParameter("w", weight)])
        taken: list[torch.Tensor] = []
        gradients.sink = lambda _, grad: taken.append(grad)
        gradients.is_open = True
        LazyMinus.apply(weight).backward()
        self.assertFalse(taken[0].is_neg())
        self.assertEqual([1.0, 2.0, 3.0], taken[0].numpy().tolist())

    def test_a_gradient_that_a_hook_has_turned_comes_in_the_order_of_its_parameter(self) -> None:
        weight = nn.Parameter(torch.zeros(2, 3))

        def turn(parameter: torch.Tensor) -> None:
            parameter.grad = parameter.grad.t().contiguous().t()
        weight.register_post_accumulate_grad_hook(turn)
        gradients = Gradients([NamedParameter("w", weight)])
        taken: list[torch.Tensor] = []
        gradients.sink, gradients.is_open = lambda _, grad: taken.append(grad), True
        (weight * torch.arange(6.0).view(2, 3)).sum().backward()
        self.assertEqual(((3, 1), torch.arange(6.0).view(2, 3).tolist()),
                         (taken[0].stride(), taken[0].tolist()))

    def test_a_sparse_gradient_is_named(self) -> None:
        rows = nn.Embedding(4, 2, sparse=True)
        gradients = Gradients([NamedParameter("rows", rows.weight)])
        gradients.is_open = True
        with self.assertRaisesRegex(Misuse, "the gradient of rows is sparse"):
            rows(torch.tensor([1])).sum().backward()


class TranslationTest(unittest.TestCase):
    def test_a_state_that_cannot_be_described_has_one_code_wherever_it_is_found(self) -> None:
        for error, code in ((StateError("scheduler", "a function", "leave it out"), BAD_DATA),
                            (MisuseError("one sentence."), USAGE)):
            with self.assertRaises(LockstepError) as caught, as_ours():
                raise error
            self.assertEqual((code, str(error)), (caught.exception.code, str(caught.exception)))
            self.assertEqual(code, ours(error).code)


class ForksTest(unittest.TestCase):
    def test_a_fork_has_the_handlers_that_python_knows_of(self) -> None:
        # abs() stands for the handler of the run: a C function that Python does not know of.
        libc = ctypes.CDLL(None)
        libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
        before = libc.signal(signal.SIGTERM, ctypes.cast(libc.abs, ctypes.c_void_p))
        self.addCleanup(libc.signal, signal.SIGTERM, before)
        at_once: list[int] = []  # signals that a child gets while it is made
        os.register_at_fork(after_in_child=lambda: [os.kill(os.getpid(), n) for n in at_once])
        self.assertEqual(0, self.end_of_child(signal.SIGTERM), "the handler came along")
        forks = Forks()
        self.assertEqual(signal.SIGTERM, self.end_of_child(signal.SIGTERM))
        at_once.append(signal.SIGTERM)
        self.assertEqual(signal.SIGTERM, self.end_of_child(0))
        at_once.clear()
        forks.stop()
        self.assertEqual(0, self.end_of_child(signal.SIGTERM))
        self.assertEqual(set(), signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    def end_of_child(self, number: int) -> int:
        pid = os.fork()
        if pid == 0:
            os.kill(os.getpid(), number)
            os._exit(0)
        return os.WTERMSIG(os.waitpid(pid, 0)[1])


class CoreTest(unittest.TestCase):
    def test_a_handler_may_ask_for_a_stop_while_the_run_is_closed(self) -> None:
        with mock.patch.multiple("lockstep._core.ctypes", CDLL=mock.DEFAULT, PyDLL=mock.DEFAULT) as dlls:
            stays = dlls["PyDLL"].return_value
            stays.ls_open.return_value, stays.ls_job.return_value = 0, b"a=b"
            core = Core(None)
        core._run = ctypes.c_void_p(1)
        before = signal.signal(signal.SIGUSR1, lambda *_: core.request_stop())
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        stays.ls_request_stop.side_effect = lambda _: os.kill(os.getpid(), signal.SIGUSR1) \
            if stays.ls_request_stop.call_count == 1 else None
        core.request_stop()
        self.assertEqual(2, stays.ls_request_stop.call_count)
        dlls["CDLL"].return_value.ls_close.side_effect = lambda *_: os.kill(os.getpid(), signal.SIGUSR1)
        core.close(0)
        self.assertEqual(2, stays.ls_request_stop.call_count, "of a run that is gone nobody asks")


class StopSignalsTest(unittest.TestCase):
    def test_the_run_keeps_its_handler_until_it_is_over(self) -> None:
        libc, heard = ctypes.CDLL(None), []
        libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            signals = StopSignals(is_worker=True)
            # abs() stands for the handler of the run.
            libc.signal(signal.SIGTERM, ctypes.cast(libc.abs, ctypes.c_void_p))
            signals.check()
            for _ in range(2):
                signal.signal(signal.SIGTERM, lambda *_: heard.append("script"))
                signals.check()
                os.kill(os.getpid(), signal.SIGTERM)
            signals.stop()
        self.assertEqual([], heard)
        self.assertEqual(1, told.getvalue().count("of SIGTERM waits until the loop is over"), told.getvalue())
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(["script"], heard)


class StartTest(unittest.TestCase):
    def test_a_spawned_child_without_a_main_guard_starts_no_run(self) -> None:
        code = ("import multiprocessing, lockstep\n"
                "if __name__ != '__main__': lockstep.start()\n"
                "else:\n"
                "    child = multiprocessing.get_context('spawn').Process(target=print)\n"
                "    child.start(); child.join()\n")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(code)
            script.flush()
            done = subprocess.run([sys.executable, script.name], stderr=subprocess.PIPE, text=True)
        self.assertIn("a child by spawn runs the script's top level again", done.stderr)


class MachineTest(unittest.TestCase):
    def test_what_another_attempt_may_do(self) -> None:
        wrapped = ValueError("no model")
        wrapped.__cause__ = ConnectionResetError()
        for error in (MemoryError(), OSError(errno.EAGAIN, "fork"), BlockingIOError(errno.EAGAIN, ""),
                      OSError(errno.ENOSPC, ""), TimeoutError(), wrapped,
                      RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
                      ImportError("x.so: failed to map segment from shared object")):
            self.assertTrue(is_of_machine(error), error)
        for error in (None, ValueError("out of memory"), FileNotFoundError(errno.ENOENT, ""),
                      PermissionError(errno.EACCES, ""), RuntimeError("shapes"), SystemExit(1)):
            self.assertFalse(is_of_machine(error), error)

    def test_a_script_that_wants_a_rank_is_told_what_it_takes_instead(self) -> None:
        process_group = ValueError("Error initializing torch.distributed using env:// rendezvous: "
                                   "environment variable MASTER_ADDR expected, but not set")
        for error, name in ((KeyError("RANK"), "RANK"), (KeyError("MASTER_PORT"), "MASTER_PORT"),
                            (process_group, "MASTER_ADDR")):
            self.assertRegex(hint_of(error) or "", f"^{name} is for a process of torchrun")
        for error in (None, KeyError(), KeyError("rank"), KeyError(["RANK"]), KeyError(3),
                      ValueError("RANK"), ValueError("env:// rendezvous"), RuntimeError("RANK")):
            self.assertIsNone(hint_of(error), error)

    def test_what_fails_while_a_step_is_applied_fails_in_every_worker(self) -> None:
        for alike, error in ((True, ValueError("mine")), (True, RuntimeError("shapes")),
                             (False, MemoryError()), (False, OSError(errno.ENOSPC, "")),
                             (False, RuntimeError("CUDA error: an illegal memory access")),
                             (False, KeyboardInterrupt()), (False, SystemExit(3))):
            with self.subTest(error):
                try:
                    with failing_alike(7):
                        raise error
                except BaseException as raised:
                    self.assertIs(raised, error, "the script may know its own errors")
                    self.assertEqual(fails_alike(raised), alike)
                    detail = detail_of(raised)
                    self.assertEqual("step 7" in detail and "in test_what_fails" in detail, alike)
        self.assertEqual((fails_alike(None), detail_of(None)), (False, ""))


    def test_what_the_body_raises_is_told_with_its_traceback_unless_it_is_not_the_scripts(self) -> None:
        for of_script, error in ((True, KeyError("conf")), (True, RuntimeError("shapes")),
                                 (False, MemoryError()), (False, OSError(errno.EIO, "")),
                                 (False, RuntimeError("CUDA error: an illegal memory access")),
                                 (False, LockstepError("a sample", BAD_DATA)), (False, KeyboardInterrupt()),
                                 (False, SystemExit(3)), (False, GeneratorExit())):
            with self.subTest(error):
                try:
                    raise error
                except BaseException as raised:
                    self.assertEqual(is_of_script(raised), of_script)
                    self.assertEqual("in test_what_the_body_raises" in detail_of(raised), of_script)
        self.assertFalse(is_of_script(None))


class BatchSizeTest(unittest.TestCase):
    def test_a_batch_size_that_does_not_count_is_told(self) -> None:
        def said(batch_size: int) -> str | None:
            loader = torch.utils.data.DataLoader([1] * 99, batch_size, shuffle=True)
            return unpack(loader).about_batch_size(64, 4)
        self.assertIsNone(unpack([1] * 9).about_batch_size(64, 4))
        for fitting in (1, 16, 64):
            self.assertIsNone(said(fitting))
        self.assertIn("batch_size=32 of the DataLoader does not count: the job's train.global_batch "
                      "is 64, in 4 slots of about 16 samples", said(32))


if __name__ == "__main__":
    unittest.main()
