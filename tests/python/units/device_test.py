"""Copies between the host and a device: gradients, sums, batches, and the state. The device is the
stand-in (device/lockstep_stand_in.py): the host cannot read its memory, and its copies come
late."""

from __future__ import annotations

import os
import unittest
from typing import Any
from unittest import mock

import lockstep_stand_in
import torch
from torch import nn, optim

from lockstep._ahead import Ahead
from lockstep._buffers import Buffers, rules_of
from lockstep._core import APPLY, Memory, Order, Task
from lockstep._data import Batch
from lockstep._device import HOST, Device, Sender, Staging, Sums, sender_to
from lockstep._device._place import _name_of_gpu
from lockstep._errors import Misuse
from lockstep._gradients import Gradients
from lockstep._job_data import Batch as JobBatch
from lockstep._last import LastStep
from lockstep._phases import Phases
from lockstep._seeds import seed_all
from lockstep._slot import Seen, Slot, SlotParts
from lockstep._state import Kept, StateError, same_bits
from lockstep._state._objects import decode, encode
from lockstep._step import Step

lockstep_stand_in.load()
PLACE = torch.device(lockstep_stand_in.NAME, 0)
ON = Device(PLACE)


def waits() -> int:
    """The number of times that the host has waited for the device."""
    return torch.ops.lockstep_stand_in.waits()


def there(*values: float) -> torch.Tensor:
    return torch.tensor(values, device=PLACE)


class StagingTest(unittest.TestCase):
    def setUp(self) -> None:
        self.taken: list[tuple[int, list[float]]] = []
        self.staging = Staging(ON, lambda index, grad: self.taken.append((index, grad.tolist())))

    def test_gradients_arrive_whole_in_their_order_and_sending_waits_for_none(self) -> None:
        before = waits()
        for index in range(4):
            self.staging.send(index, there(index, 1))
        self.assertEqual(before + len(self.taken), waits(), "who has come is only asked")
        self.assertIn(len(self.taken), (1, 2, 3), "some have come meanwhile")
        self.staging.finish()
        self.assertEqual([(index, [float(index), 1.0]) for index in range(4)], self.taken)

    def test_the_memory_on_the_way_is_not_the_gradient_s(self) -> None:
        grad = there(1, 2)
        self.staging.send(0, grad)
        grad.zero_()  # the next kernel has its memory
        self.staging.finish()
        self.assertEqual([(0, [1.0, 2.0])], self.taken)

    def test_a_second_gradient_of_a_parameter_comes_after_the_first(self) -> None:
        self.staging.send(0, there(1))
        self.staging.send(0, there(2))
        self.staging.finish()
        self.assertEqual([(0, [1.0]), (0, [2.0])], self.taken)

    def test_what_a_broken_slot_has_sent_is_forgotten(self) -> None:
        self.staging.send(0, there(1))
        self.staging.begin()
        self.staging.send(1, there(2))
        self.staging.finish()
        self.assertEqual([(1, [2.0])], self.taken)


class SumsTest(unittest.TestCase):
    def test_the_device_has_the_step_s_sums_whatever_the_core_writes_after_the_reply(self) -> None:
        core = torch.zeros(4)
        sums = Sums(ON, core.data_ptr(), 4)
        for step in (1.0, 2.0):
            core.fill_(step)
            sums.bring()
            sums.give_back()
            core.fill_(-1)
            self.assertEqual([step] * 4, sums.flat.tolist())

    def test_without_giving_back_the_next_step_s_sums_would_be_read(self) -> None:
        """Shows that the test above can fail."""
        core = torch.ones(4)
        sums = Sums(ON, core.data_ptr(), 4)
        sums.bring()
        core.fill_(-1)
        self.assertEqual([-1.0] * 4, sums.flat.tolist())

    def test_on_the_host_they_are_the_core_s_own(self) -> None:
        core = torch.ones(4)
        self.assertEqual(core.data_ptr(), Sums(HOST, core.data_ptr(), 4).flat.data_ptr())


class StepTest(unittest.TestCase):
    def test_a_step_has_its_own_sums_on_the_device_whatever_the_core_writes_after_the_reply(self) -> None:
        model = nn.Linear(2, 1, bias=False).to(PLACE)
        kept = Kept()
        kept.keep(model=model, optimizer=optim.SGD(model.parameters(), 1.0))
        with torch.no_grad():
            model.weight.zero_()
        kept.guard()
        sums, used, last = torch.zeros(2), torch.ones(1), LastStep()
        last.begin((), ((),), False, 10)
        memory = Memory(sums.data_ptr(), 0, used.data_ptr(), [0], [], 2, 0, 2)
        buffers = Buffers([])
        step = Step(kept, Phases(kept), Gradients(kept.parameters), buffers, memory, None, last, ON)
        for number in (0, 1):
            sums.fill_(1 + number)
            with mock.patch.object(Sums, "give_back", autospec=True, side_effect=Sums.give_back) as waits_for:
                step.answer(Order(kind=APPLY, step=number, task=Task(step=number)))
            waits_for.assert_called_once()
            sums.fill_(-9)
        self.assertEqual([[-3.0, -3.0]], model.weight.tolist())


class SlotTest(unittest.TestCase):
    def test_backward_begins_before_the_host_waits_for_the_loss_or_a_metric(self) -> None:
        model = nn.Linear(2, 1).to(PLACE)
        kept = Kept()
        kept.keep(model=model, optimizer=optim.SGD(model.parameters(), 0.1))
        core, taken, seen = mock.Mock(), [], []
        core.backward_begins.return_value = True
        staging = Staging(ON, lambda index, grad: taken.append(grad.clone()))
        buffers = Buffers(kept.buffers)
        buffers.settle()
        parts = SlotParts(core, Gradients(kept.parameters), buffers, None, Phases(kept),
                          (Seen(("m",), (), False),), ("m",), staging)
        x = torch.ones(3, 2, device=PLACE)
        loss = model(x).square().mean()
        loss.register_hook(lambda _: seen.append(waits()))
        begun = waits()
        slot = Slot(parts, Task(begin=0, end=3, step_samples=6))
        slot.backward(loss, None, {"m": loss.detach() * 2})
        self.assertEqual([begun], seen)
        reply = slot.finish()
        self.assertAlmostEqual(float(loss.detach()), reply.loss, places=6)
        self.assertAlmostEqual(2 * reply.loss, reply.metrics[0], places=6)
        whole = torch.autograd.grad(model(x).square().mean(), list(model.parameters()))
        self.assertTrue(all(torch.equal(a, b.cpu() / 2) for a, b in
                            zip(sorted(taken, key=torch.numel), sorted(whole, key=torch.numel))))


class AheadTest(unittest.TestCase):
    def setUp(self) -> None:
        self.core, self.feed, self.ready = mock.Mock(), mock.Mock(), True
        self.core.indices.side_effect = lambda task: [task.begin]
        batch = lambda task: Batch({"x": torch.full((2,), float(task.step)), "name": "a"}, task.indices)
        self.feed.take.side_effect = batch
        self.feed.take_ready.side_effect = lambda task: batch(task) if self.ready else None
        self.ahead = Ahead(self.core, self.feed, 4, None, 1, Sender(ON))

    def take(self, step: int) -> Any:
        task = Task(step=step, slot=0, begin=step, end=step + 1)
        found = self.ahead.take(task, is_trial=False)
        self.core.has_samples.assert_called_with([step])
        self.assertEqual(("a", PLACE), (found["name"], found["x"].device))
        return found["x"].tolist()

    def ask(self, generation: int, *steps: int) -> None:
        self.core.upcoming.side_effect = [[Task(step=s, slot=0, begin=s, end=s + 1) for s in steps], []]
        self.ahead.ask(generation)

    def test_the_batch_after_this_one_is_sent_meanwhile(self) -> None:
        self.ask(1, 0, 1, 2)
        self.assertEqual([0.0, 0.0], self.take(0))
        self.ready = False
        self.assertEqual([1.0, 1.0], self.take(1), "it was sent before it was asked for")
        self.assertEqual([2.0, 2.0], self.take(2))
        self.assertEqual(2, self.feed.take.call_count)

    def test_what_was_sent_in_an_earlier_generation_is_not_used(self) -> None:
        self.ask(1, 0, 1)
        self.take(0)
        self.ask(2, 5)
        self.assertEqual([5.0, 5.0], self.take(5))

    def test_the_job_s_own_batches_keep_their_fields(self) -> None:
        x, y = torch.ones(2), torch.zeros(2)
        batch = JobBatch((x, {"a": y, "b": x}))
        batch.fields, batch.weight = {"a": y, "b": x}, None
        sender = Sender(ON)
        moved = sender.arrived(sender.send(batch))
        self.assertEqual((PLACE, [0.0, 0.0]), (moved.x.device, moved.y["a"].tolist()))
        self.assertIs(moved.fields["b"], moved.y["b"])
        self.assertIsNone(moved.weight)

    def test_what_lies_there_already_stays(self) -> None:
        there, sender = torch.arange(4.0).to(PLACE), Sender(ON)
        moved = sender.arrived(sender.send((there, torch.ones(2))))
        self.assertEqual(moved[0].data_ptr(), there.data_ptr())
        self.assertEqual(moved[1].device, PLACE)

    def test_another_device_than_the_run_s_is_refused(self) -> None:
        self.assertIsNone(sender_to(HOST, "cpu"))
        self.assertIsNone(sender_to(ON, None))
        self.assertIsNotNone(sender_to(ON, PLACE.type))
        for device, wanted in ((HOST, PLACE), (ON, "cpu")):
            with self.assertRaisesRegex(Misuse, "give it run.device"):
                sender_to(device, wanted)


class StateTest(unittest.TestCase):
    @staticmethod
    def made(place: torch.device, steps: int) -> tuple[Kept, nn.Module]:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).to(place,
                                                                     memory_format=torch.channels_last)
        optimizer = optim.AdamW(model.parameters(), 0.1)
        for _ in range(steps):
            model(torch.ones(2, 2, 2, 2, device=place)).square().mean().backward()
            optimizer.step()
        kept = Kept()
        kept.keep(model=model, optimizer=optimizer)
        return kept, model

    def test_a_state_goes_through_the_host_and_comes_back_where_it_was(self) -> None:
        for steps_before in (0, 2):
            (first, _), (second, model) = self.made(PLACE, 1), self.made(PLACE, steps_before)
            entries = first.describe()
            self.assertTrue(all(e.tensor.is_cpu and e.tensor.is_contiguous() for e in entries))
            second.install({(e.section, e.name): e.tensor.clone() for e in entries})
            self.assertEqual(first.hash(), second.hash())
            for values in second.optimizers["optimizer"].state.values():
                self.assertEqual(["standin", "cpu"], [values[k].device.type for k in ("exp_avg", "step")])
            self.assertTrue(all(p.device == PLACE for p in model.parameters()))

    def test_a_state_of_a_device_is_installed_where_the_run_computes_now(self) -> None:
        (first, _), (second, _) = self.made(PLACE, 1), self.made(torch.device("cpu"), 0)
        second.install({(e.section, e.name): e.tensor for e in first.describe()})
        for values in second.optimizers["optimizer"].state.values():
            self.assertTrue(values["exp_avg"].is_cpu)

    def test_bits_are_compared_wherever_they_lie(self) -> None:
        nan = torch.tensor([float("nan"), 0.0])
        self.assertTrue(same_bits(nan.to(PLACE), nan))
        self.assertTrue(same_bits(nan.to(PLACE), nan.to(PLACE)))
        self.assertFalse(same_bits(nan.to(PLACE), torch.tensor([float("nan"), -0.0])))

    def test_what_lies_on_the_wrong_device_is_named(self) -> None:
        weight, mean = ("fc.weight", torch.ones(1)), ("norm.mean", there(1))
        ON.check_kept([mean], [weight])
        HOST.check_kept([weight], [])
        for device, trained, others, words in (
                (ON, [weight], [], "`fc.weight`, which lies on cpu.*run.device"),
                (HOST, [weight], [mean], "`norm.mean`, which lies on standin:0.*cluster.device: cuda")):
            with self.assertRaisesRegex(Misuse, words):
                device.check_kept(trained, others)

    def test_a_device_in_a_text_is_a_name_and_nothing_else(self) -> None:
        for value in (torch.device("cpu"), PLACE):
            self.assertEqual({"at": value}, decode(encode({"at": value}, ""), "there"))
        for text in (b'{"$v":"nothing"}', b'{"$v":"cpu:x"}', b'{"$v":7}', b'{"$v":"cuda:1000"}'):
            with self.assertRaises(StateError):
                decode(text, "there")


class BuffersTest(unittest.TestCase):
    """A step of two slots on the device, as the core takes it: means of floats over the slots."""

    def step(self, buffers: Buffers, slot_does: Any) -> None:
        sent = []
        for slot in range(2):
            buffers.restore()
            slot_does(slot)
            buffers.check_unchanged()
            sent.append([floats.clone().view(-1) for floats in buffers.sent(slot)])
        self.assertTrue(all(floats.is_cpu for of_slot in sent for floats in of_slot))
        buffers.advance([(a + b) / 2 for a, b in zip(*sent)])

    def test_they_are_joined_where_the_core_s_means_are_and_stay_on_the_device(self) -> None:
        model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
        for name, value in (("seen", torch.tensor([5, 7])), ("peak", torch.zeros(2)),
                            ("mean", torch.ones(2))):
            model.register_buffer(name, value)
        model.to(PLACE)
        kept = Kept()
        kept.keep(model=model, optimizer=optim.SGD(model.parameters(), 0.1))
        rules = rules_of({"seen": "sum", "peak": "max", "mean": "mean"}, kept.buffers, 2)
        buffers = Buffers(kept.buffers, 1, rules, 2)

        def slot_does(slot: int) -> None:
            with torch.no_grad():
                model(torch.full((3, 2), float(slot), device=PLACE))
                model.seen += 1 + slot
                model.peak[slot] = 3.0
                if slot:
                    model.mean += 1

        slot_does(1)
        buffers.settle()
        buffers.restore()
        self.step(buffers, slot_does)
        self.assertEqual(([8, 10], [3.0, 3.0], [1.5, 1.5]),
                         (model.seen.tolist(), model.peak.tolist(), model.mean.tolist()))
        self.assertAlmostEqual(0.05, float(model[0].running_mean[0]), places=6)
        self.assertEqual(1, int(model[0].num_batches_tracked))
        self.assertTrue(all(b.get().device == PLACE for b in kept.buffers))


class PlaceTest(unittest.TestCase):
    def name(self, visible: str | None, number: int, uuid: str = "") -> str:
        more = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        with mock.patch.dict(os.environ, more), mock.patch("torch.cuda.device_count", lambda: 4):
            if visible is None:
                os.environ.pop("CUDA_VISIBLE_DEVICES", None)
            return _name_of_gpu(number, uuid)

    def test_a_worker_gets_the_gpu_of_its_place(self) -> None:
        uuid = "0123456789abcdef0123456789abcdef"
        dashed = "01234567-89ab-cdef-0123-456789abcdef"
        self.assertEqual("3", self.name(None, 3))
        self.assertEqual("1", self.name(None, 5), "fewer GPUs than places")
        self.assertEqual("7", self.name("5, 7", 1))
        self.assertEqual(f"GPU-{dashed}", self.name("5,7", 1, uuid), "numbers move")
        self.assertEqual(f"MIG-{dashed}", self.name(f"MIG-x,MIG-{dashed}", 0, uuid))

    def test_exact_takes_no_setting_of_the_site_that_changes_bits(self) -> None:
        given = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "NVIDIA_TF32_OVERRIDE": "1"}
        was = torch.are_deterministic_algorithms_enabled(), torch.backends.cuda.matmul.allow_tf32
        try:
            for device, expected in ((HOST, given), (ON, {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})):
                with mock.patch.dict(os.environ, given):
                    device.prepare(is_exact=False)
                    device.prepare(is_exact=True)
                    self.assertEqual(expected, {k: os.environ[k] for k in given if k in os.environ})
            self.assertTrue(torch.are_deterministic_algorithms_enabled())
            self.assertFalse(torch.is_deterministic_algorithms_warn_only_enabled())
        finally:
            torch.use_deterministic_algorithms(was[0])
            torch.backends.cuda.matmul.allow_tf32 = was[1]

    def test_the_device_draws_by_the_slot_s_seed(self) -> None:
        drawn = []
        for seed in (5, 6, 5):
            seed_all(seed)
            drawn.append(torch.rand(3, device=PLACE).tolist())
        self.assertEqual(drawn[0], drawn[2])
        self.assertNotEqual(drawn[0], drawn[1])


if __name__ == "__main__":
    unittest.main()
