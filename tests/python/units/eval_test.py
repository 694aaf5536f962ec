"""The arguments of run.evaluate(), the results of its function, and the state after a batch's
score."""
import unittest
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from lockstep import LockstepError, Misuse
from lockstep import _core
from lockstep._data import DataError, Feed, Task, unpack
from lockstep._eval import Evaluation, check_eval_data, check_name, score_of
from lockstep._buffers import Buffers
from lockstep._state import Kept

SAMPLES, BATCH = 11, 4


class Core:
    def evaluates(self, *told):
        self.told = told


def order(begin, seed=1, share_end=SAMPLES):
    task = _core.Task(begin=begin, end=min(begin + BATCH, SAMPLES), seed=seed)
    return SimpleNamespace(task=task, share_end=share_end)


class EvaluationTest(unittest.TestCase):
    def setUp(self):
        self.model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
        self.model.register_buffer("steady", torch.zeros(1))
        self.model[2].eval()  # as a script may keep it
        self.kept = Kept()
        self.kept.keep(model=self.model, optimizer=torch.optim.SGD(self.model.parameters(), 0.1))
        self.buffers = Buffers(self.kept.buffers)
        self.model(torch.randn(4, 2))  # the trial's slot
        self.buffers.settle()
        self.data = TensorDataset(torch.arange(SAMPLES * 2.0).view(SAMPLES, 2))

    def opened(self, function, data=None, exact="1", **how):
        evaluation = Evaluation(function, self.data if data is None else data, how.pop("workers", None),
                                how.pop("collate", None))
        opened = evaluation.open({"seed": "3", "eval_batch": str(BATCH), "exact": exact})
        opened.__enter__()
        self.addCleanup(opened.__exit__, None, None, None)
        self.core = Core()
        evaluation.try_out(self.core, self.kept, self.buffers)
        return evaluation

    def replies(self, evaluation):
        found = []
        for begin in range(0, SAMPLES, BATCH):
            reply = evaluation.answer(order(begin), self.kept, self.buffers)
            found.append((reply.loss, reply.count, reply.correct, reply.metrics[0]))
        return found

    def test_the_jobs_data_are_read_by_the_core(self):
        evaluation = Evaluation(lambda batch: {"loss": float(sum(batch)), "m": 1.0}, None, None, None)
        self.assertTrue(evaluation.is_of_job)
        with evaluation.open({"seed": "3", "eval_batch": str(BATCH), "exact": "1"}):
            evaluation.read_from(SimpleNamespace(eval_samples=SAMPLES, take_eval=range))
            self.core = Core()
            evaluation.try_out(self.core, self.kept, self.buffers)
        self.assertEqual(self.core.told, ("", SAMPLES, "", ("m",), False))
        self.assertEqual([loss for loss, *_ in self.replies(evaluation)], [6.0, 22.0, 27.0])

    def test_data_are_the_scripts_or_the_jobs(self):
        for has, data in (("named", None), ("found", None), ("found", 3), ("", [1])):
            check_eval_data({"eval_data": has}, data)
        for has, data, says in (("", None, "data.eval.path or data.holdout"),
                                ("named", [1], "leave one of the two out")):
            with self.assertRaisesRegex(Misuse, says):
                check_eval_data({"eval_data": has}, data)
        check_eval_data({"eval_data": "named"}, [1], takes_jobs=True)
        with self.assertRaisesRegex(Misuse, "was called before without data"):
            check_eval_data({"eval_data": "found"}, None, takes_jobs=True)
        for more in ({"workers": 2}, {"collate": list}):
            with self.assertRaisesRegex(Misuse, "data.threads"):
                Evaluation(print, None, more.get("workers"), more.get("collate"))

    def test_all_evaluations_but_the_first_need_a_name_of_their_own(self):
        named = [SimpleNamespace(name=name) for name in ("val", "test")]
        self.assertEqual([check_name(None, []), check_name("val", []), check_name("a-1_.B", named)],
                         ["", "val", "a-1_.B"])
        for name, says in ((None, "give this evaluation a name"), ("val", "another name"),
                           ("test", "another name"), ("a/b", "1 to 32"), ("", "1 to 32"),
                           ("x" * 33, "1 to 32"), (7, "1 to 32")):
            with self.assertRaisesRegex(Misuse, says):
                check_name(name, named)

    def test_messages_name_an_evaluation_that_has_a_name(self):
        evaluation = Evaluation(lambda batch: {}, self.data, None, None, "test", False)
        with evaluation.open({"seed": "3", "eval_batch": str(BATCH), "exact": "1"}):
            with self.assertRaisesRegex(Misuse, 'the evaluation "test" returned no loss'):
                evaluation.try_out(Core(), self.kept, self.buffers)
        for name, is_first, told in (("val", True, ""), ("test", False, "test")):
            evaluation = Evaluation(lambda batch: 1.0, self.data, None, None, name, is_first)
            with evaluation.open({"seed": "3", "eval_batch": str(BATCH), "exact": "1"}):
                self.core = Core()
                evaluation.try_out(self.core, self.kept, self.buffers)
            self.assertEqual(self.core.told[0], told)

    def test_what_a_function_may_return(self):
        self.assertEqual(score_of(torch.tensor([2.0], requires_grad=True), 4), (2.0, 4, None, ()))
        self.assertEqual(score_of({"loss": 1, "count": torch.tensor(3), "correct": 2, "b": 1, "a": 2}, 4),
                         (1.0, 3, 2, (("a", 2.0), ("b", 1.0))))
        self.assertEqual(score_of({"loss": float("nan"), "count": 0}, 4)[:2], (0.0, 0))
        for result, text in (({"a": 1}, "no loss"), (None, "NoneType for loss"),
                             (torch.ones(2), "for loss"), ({"loss": 1, "correct": 5}, "from 0 to 4"),
                             ({"loss": 1, "count": -1}, "for count"), ({"loss": 1, "count": 1.5}, "1.5"),
                             ({"loss": 1, "a": "b"}, "for a")):
            with self.subTest(text), self.assertRaisesRegex(Misuse, text):
                score_of(result, 4)

    def test_the_model_evaluates_without_gradients_and_is_as_it_was(self):
        seen = []

        def score(batch):
            seen.append(([part.training for part in self.model.modules()], torch.is_grad_enabled()))
            return {"loss": self.model(batch[0]).mean(), "drawn": torch.rand(())}

        state = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        expected = {**state, **{name: self.buffers._before[name] for name in state
                                if name in self.buffers._before}}
        evaluation = self.opened(score)
        replies = self.replies(evaluation)
        self.assertEqual(seen, [([False] * 4, False)] * 5)
        self.assertEqual([part.training for part in self.model.modules()], [True, True, True, False])
        self.assertTrue(torch.is_grad_enabled())
        for name, tensor in self.model.state_dict().items():
            self.assertTrue(torch.equal(tensor, expected[name]), name)
        torch.rand(3)
        self.assertEqual(self.replies(evaluation), replies, "the same every time")
        self.assertEqual(self.core.told, ("", SAMPLES, self.core.told[2], ("drawn",), False))

    def test_data_processes_and_loaders_change_no_bit(self):
        def score(batch):
            self.assertEqual(batch[0][:, 0].tolist()[0] % (2 * BATCH), 0)
            return {"loss": batch[0].sum(), "x": batch[0][-1, 1]}

        class Noisy(TensorDataset):
            def __getitem__(self, index):
                return (super().__getitem__(index)[0] + torch.tensor([0.0, torch.rand(()).item()]),)

        data = Noisy(*self.data.tensors)
        plain = self.replies(self.opened(score, data))
        self.assertEqual(plain[0][1:3], (BATCH, 0))
        self.assertEqual(self.replies(self.opened(score, data, workers=2)), plain)
        loader = DataLoader(data, batch_size=3, shuffle=False, num_workers=1)
        with_loader = self.opened(score, loader)
        self.assertEqual(self.replies(with_loader), plain)
        self.assertEqual(self.replies(with_loader)[2], plain[2])
        whole = self.opened(lambda places: {"loss": float(places[0]), "n": len(places)}, SAMPLES)
        self.assertEqual(self.replies(whole), [(0, 4, 0, 4), (4, 4, 0, 4), (8, 3, 0, 3)])

    def test_a_batch_finds_the_buffers_of_the_last_step_and_not_of_a_slot_that_was_broken_off(self):
        found = []
        evaluation = self.opened(lambda places: found.append(self.model[1].running_mean.tolist()) or 0.0,
                                 SAMPLES)
        self.model(torch.randn(4, 2))
        evaluation.answer(order(0), self.kept, self.buffers)
        self.assertEqual([[0.0] * 3] * 3, found)

    def test_it_leaves_the_statistics_of_the_last_step_whatever_its_function_does(self):
        evaluation = self.opened(lambda batch: self.model[1].train()(torch.randn(4, 3)).sum())
        evaluation.answer(order(0), self.kept, self.buffers)
        self.assertEqual([0.0] * 3, self.model[1].running_mean.tolist())

    def test_data_have_their_fingerprint_and_batches_their_own_samples_and_right_predictions(self):
        told = [(self.opened(lambda batch: 0.0, data), self.core.told[2])[1] for data in (
            self.data, self.data, TensorDataset(self.data.tensors[0] + 1))]
        self.assertEqual(told[0], told[1])
        self.assertNotEqual(told[0], told[2])
        right = self.opened(lambda places: {"loss": 0.0, "correct": len(places) - 1}, SAMPLES)
        self.assertEqual([3, 3, 2], [correct for _, _, correct, _ in self.replies(right)])
        sizes = []
        self.opened(lambda places: sizes.append(len(places)) or 0.0, BATCH - 1)
        self.assertEqual([BATCH - 1] * 2, sizes)

    def test_what_a_function_draws_is_the_batches(self):
        evaluation = self.opened(lambda places: torch.rand(()), SAMPLES)
        drawn = [evaluation.answer(order(0, seed), self.kept, self.buffers).loss for seed in (5, 6, 5)]
        self.assertEqual(drawn[0], drawn[2])
        self.assertNotEqual(drawn[0], drawn[1])

    def test_evaluation_data_draw_other_numbers_than_training_data(self):
        class Drawn(torch.utils.data.Dataset):
            def __len__(self):
                return SAMPLES

            def __getitem__(self, index):
                return torch.rand(())

        seen = []
        self.opened(lambda batch: seen.append(batch) or 0.0, Drawn())
        places = list(range(BATCH))
        trained = Feed(unpack(Drawn(), None), seed=3).take(Task(0, 0, 0, places, places)).value
        self.assertFalse(torch.equal(seen[0], trained))

    def test_what_is_no_evaluation_is_said(self):
        for arguments, text in (((1, self.data), "fn takes a batch"), ((len, 0), "1 or more"),
                                ((len, 5, 2), "reads the samples itself"),
                                ((len, DataLoader(self.data, drop_last=True)), "every sample once"),
                                ((len, iter([1])), "run.evaluate")):
            with self.subTest(text), self.assertRaisesRegex((Misuse, DataError), text):
                Evaluation(*arguments[:2], *arguments[2:], *[None] * (4 - len(arguments)))

    def test_what_an_evaluation_may_not_do_is_said(self):
        generator, calls = torch.Generator().manual_seed(1), []
        with self.assertRaisesRegex(LockstepError, "default generators") as failed:
            self.opened(lambda batch: torch.rand((), generator=generator))
        self.assertEqual(failed.exception.code, 78)
        self.opened(lambda batch: torch.rand((), generator=generator), exact="0")

        def moody(batch):
            calls.append(1)
            return {"loss": 1.0, ("a" if len(calls) < 3 else "b"): 1.0}

        evaluation = self.opened(moody)
        with self.assertRaisesRegex(Misuse, "the same for every batch"):
            evaluation.answer(order(0), self.kept, self.buffers)
        self.model.total = torch.zeros(())
        with self.assertRaisesRegex(Misuse, "the evaluation of a batch goes on with .*`total`"):
            self.opened(lambda batch: setattr(self.model, "total", self.model.total + 1) or 0.0)
        with self.assertRaisesRegex(Misuse, "changed the buffer steady"):
            self.opened(lambda batch: self.model.steady.add_(1).sum())


if __name__ == "__main__":
    unittest.main()
