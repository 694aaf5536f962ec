"""The value of buffers that a slot changes, and the changes that end a run."""

from __future__ import annotations

import unittest
from typing import Any, Callable

import torch
from torch import nn, optim

from lockstep import Misuse
from lockstep._buffers import Buffers
from lockstep._state import Kept


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("seen", torch.tensor([5, 7]))
        self.register_buffer("small", torch.zeros(4))
        self.register_buffer("bank", torch.zeros(1 << 19))  # 2 MiB
        self.register_buffer("edges", torch.eye(3).to_sparse(), persistent=False)


class BuffersTest(unittest.TestCase):
    def setUp(self) -> None:
        self.model = Model()
        self.optimizer = optim.SGD(self.model.parameters(), 0.1)
        self.kept = Kept()
        self.kept.keep(model=self.model, optimizer=self.optimizer)
        self.buffers = Buffers(self.kept.buffers)

    def settled(self, slot: Callable[[Model], Any]) -> list[str]:
        """Settles the buffers after a trial whose slot is `slot`."""
        slot(self.model)
        names = self.buffers.settle()
        self.buffers.restore()
        return names

    def changed(self, slot: Callable[[Model], Any], is_closely: bool = False) -> str:
        """The complaint about a later slot, or "". The next slot finds all as it should be."""
        if is_closely:
            self.buffers.remember()
        slot(self.model)
        try:
            self.buffers.check_unchanged()
        except Misuse as why:
            return str(why)
        finally:
            self.buffers.adopt()
        return ""

    def test_a_counter_grows_in_a_step_by_what_it_grows_in_a_slot(self) -> None:
        def twice(model: Model) -> None:
            for _ in range(2):
                model.norm(torch.ones(3, 2))
        names = self.settled(twice)
        self.assertEqual({"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"},
                         set(names))
        for step in (1, 2):
            twice(self.model)
            self.buffers.advance([b.get().clone() for b in self.buffers.statistics])
            self.assertEqual(2 * step, int(self.model.norm.num_batches_tracked))

    def test_a_counter_that_another_slot_raises_otherwise_is_named(self) -> None:
        self.settled(lambda model: model.norm(torch.ones(3, 2)))
        self.assertEqual("", self.changed(lambda model: model.norm(torch.ones(3, 2))))
        for times in (0, 2):
            self.assertIn("the buffer norm.num_batches_tracked", self.changed(
                lambda model: [model.norm(torch.ones(3, 2)) for _ in range(times)]))

    def test_a_norm_that_rests_may_not_be_counted_behind_its_back(self) -> None:
        self.settled(lambda model: model.norm(torch.ones(3, 2)))
        self.model.norm.eval()
        self.assertEqual("", self.changed(lambda model: model.norm(torch.ones(3, 2))))
        before = self.model.norm.running_mean.tolist()
        self.buffers.advance([b.get() + 1e-3 for b in self.buffers.statistics])
        self.assertEqual(before, self.model.norm.running_mean.tolist(), "a mean of equals may be another")
        self.assertIn("norm.num_batches_tracked",
                      self.changed(lambda model: model.norm.num_batches_tracked.add_(1)))

    def test_spectral_norms_vectors_may_have_converged_in_the_trial(self) -> None:
        for norm in (nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm):
            layer = norm(nn.Linear(3, 2))
            with torch.no_grad():
                for _ in range(200):
                    layer(torch.ones(1, 3))
            kept = Kept()
            kept.keep(model=layer, optimizer=optim.SGD(layer.parameters(), 0.1))
            buffers = Buffers(kept.buffers)
            layer(torch.ones(1, 3))
            buffers.settle()
            self.assertEqual(2, len(buffers.alike))
            buffers.restore()
            with torch.no_grad():
                kept.parameters[-1].tensor.add_(torch.rand_like(kept.parameters[-1].tensor))
            layer(torch.ones(1, 3))
            buffers.check_unchanged()

    def test_what_every_slot_makes_alike_is_taken(self) -> None:
        def power(model: Model) -> None:
            model.small.add_(1).div_(2)
        self.settled(power)
        self.assertEqual(["small"], [b.name for b in self.buffers.alike])
        for _ in range(2):
            power(self.model)
            self.buffers.check_unchanged()
            self.buffers.advance([self.model.small.clone() * (1 + 1e-7)])
        self.assertEqual("", self.changed(power))

    def test_a_float_that_depends_on_the_batch_is_named_in_the_trial(self) -> None:
        self.model.small.add_(1)
        self.buffers.settle()
        self.buffers.check_alike(is_other=False)
        self.buffers.restore()
        self.model.small.add_(2)  # for other samples
        with self.assertRaisesRegex(Misuse, r"the buffer small .*buffers=\{\"small\": \"mean\"\}"):
            self.buffers.check_alike(is_other=True)

    def test_a_float_that_another_slot_makes_otherwise_is_named_here_or_by_the_mean(self) -> None:
        self.settled(lambda model: model.small.add_(1))
        self.model.small.add_(1)
        self.buffers.check_unchanged()
        self.buffers.restore()
        self.model.small.add_(2)
        with self.assertRaisesRegex(Misuse, "the buffer small"):
            self.buffers.check_unchanged()
        self.buffers.restore()
        self.buffers.forget_alike()
        self.model.small.add_(1)
        self.buffers.check_unchanged()
        self.buffers.advance([torch.full((4,), 1.5)])  # slots elsewhere added 2
        self.model.small.add_(1)
        with self.assertRaisesRegex(Misuse, "the buffer small"):
            self.buffers.check_unchanged()

    def test_what_a_slot_made_before_an_install_says_nothing_of_those_after_it(self) -> None:
        self.settled(lambda model: model.small.add_(1))
        self.model.small.add_(1)
        self.buffers.check_unchanged()
        self.model.small.fill_(9)
        self.buffers.adopt()
        self.assertEqual("", self.changed(lambda model: model.small.add_(1)))

    def test_one_slot_a_step_decides_alone(self) -> None:
        self.settled(lambda model: model.small.add_(1))
        self.buffers.has_one_slot()
        self.assertEqual("", self.changed(lambda model: model.small.add_(7)))

    def test_a_body_may_set_train_for_itself(self) -> None:
        def slot(model: Model) -> None:
            model.train()
            model.norm(torch.ones(3, 2))
            model.eval()
        self.model.eval()
        self.settled(slot)
        slot(self.model)
        self.buffers.advance([b.get().clone() for b in self.buffers.statistics])
        self.assertEqual(1, int(self.model.norm.num_batches_tracked))

    def test_a_slot_that_was_broken_off_says_nothing_of_the_next(self) -> None:
        self.settled(lambda m: None)
        self.buffers.remember()
        self.model.bank.add_(1)  # by an install, or after_step=
        self.buffers.adopt()
        self.assertEqual("", self.changed(lambda m: None))

    def test_what_can_neither_be_averaged_nor_counted_is_named(self) -> None:
        for name, change in (("seen", lambda m: m.seen.copy_(torch.tensor([6, 9]))),
                             ("seen", lambda m: m.seen.add_(3)),  # as a counter, but no norm's
                             ("seen", lambda m: m.seen.sub_(1)),
                             ("seen", lambda m: setattr(m, "seen", m.seen.double() + 1)),
                             ("edges", lambda m: m.edges.mul_(2))):
            self.setUp()
            with self.assertRaisesRegex(Misuse, f"a slot changes the buffer {name} .*after_step="):
                self.settled(change)

    def test_a_later_change_is_named_however_large_the_buffer(self) -> None:
        self.assertEqual([], self.settled(lambda m: None))
        self.assertEqual("", self.changed(lambda m: None, is_closely=True))
        for name, change in (("small", lambda m: m.small.data.add_(1)),
                             ("bank", lambda m: m.bank[7:9].fill_(3)),
                             ("bank", lambda m: setattr(m, "bank", m.bank * 2)),
                             ("edges", lambda m: setattr(m, "edges", m.edges * 2))):
            self.assertIn(f"a slot changed the buffer {name}, which the trial's slot did not",
                          self.changed(change))
        behind = lambda m: m.bank.data.add_(1)  # noqa: E731
        self.assertEqual("", self.changed(behind), "it moves no version")
        self.assertIn("the buffer bank", self.changed(behind, is_closely=True))

    def test_a_large_buffer_that_is_written_with_what_it_was_is_compared_by_its_bits(self) -> None:
        self.assertEqual([], self.settled(lambda m: m.bank.copy_(m.bank.clone())))
        self.assertEqual("", self.changed(lambda m: m.bank.mul_(1), is_closely=True))
        self.assertIn("the buffer bank", self.changed(lambda m: m.bank.add_(1), is_closely=True))


if __name__ == "__main__":
    unittest.main()
