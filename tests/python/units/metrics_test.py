"""torchmetrics' metrics that are kept: a step adds its slots' counts, as one metric that saw all
slots would. Lockstep refuses by name metrics that it cannot join."""

from __future__ import annotations

import unittest
import warnings
from typing import Any

import torch
import torchmetrics
from torch import nn
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC

from lockstep import Misuse
from lockstep._buffers import Buffers, rules_of
from lockstep._state import Kept, MisuseError

from buffer_steps import SLOTS, Step, kept_of

CLASSES = 4


def metrics() -> dict[str, Any]:
    return {"accuracy": MulticlassAccuracy(CLASSES, average="micro"), "peak": torchmetrics.MaxMetric(),
            "low": torchmetrics.MinMetric(), "mean": torchmetrics.MeanMetric(),
            "auroc": MulticlassAUROC(CLASSES, thresholds=9),
            "errors": torchmetrics.MetricCollection(
                [torchmetrics.MeanSquaredError(), torchmetrics.MeanAbsoluteError()], compute_groups=False)}


def feed(found: dict[str, Any], seed: int, by_call: bool = False) -> None:
    """Feeds one batch of whole numbers, whose sums are exact."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(-8, 8, (5, CLASSES), generator=generator).float()
    labels = torch.randint(CLASSES, (5,), generator=generator)
    for name, metric in found.items():
        words = {"accuracy": (scores, labels), "auroc": (scores.softmax(-1), labels),
                 "errors": (scores[:, 0], labels.float())}.get(name, (scores[:, 0],))
        metric(*words) if by_call else metric.update(*words)


def values(found: dict[str, Any]) -> dict[str, Any]:
    return {name: {k: v.item() for k, v in value.items()} if isinstance(value, dict) else value.item()
            for name, value in ((name, metric.compute()) for name, metric in found.items())}


class Steps(Step):
    """Steps whose slots count into the same kept metrics."""

    def __init__(self, kept: Kept):
        self.kept, self.metrics = kept, {name: kept.modules[name] for name in metrics()}
        super().__init__(kept, {}, trial=lambda: feed(self.metrics, 99))
        self.buffers.restore()

    def count(self, step: int, by_call: bool = False) -> None:
        self.take(lambda _, slot: feed(self.metrics, step * SLOTS + slot, by_call))

    def reset(self) -> None:
        """Resets the metrics as after_step= may."""
        for metric in self.metrics.values():
            metric.reset()
        self.buffers.adopt()


class MetricsTest(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore")

    def plain(self, steps: range) -> dict[str, Any]:
        found = metrics()
        for seed in range(steps.start * SLOTS, steps.stop * SLOTS):
            feed(found, seed)
        return values(found)

    def test_steps_count_what_one_metric_would_that_saw_all_slots(self) -> None:
        for by_call in (False, True):
            run = Steps(kept_of(**metrics()))
            for step in range(3):
                run.count(step, by_call)
                self.assertEqual(self.plain(range(step + 1)), values(run.metrics))

    def test_reset_between_two_steps_begins_again(self) -> None:
        run = Steps(kept_of(**metrics()))
        run.count(0)
        run.reset()
        run.count(1)
        run.count(2)
        self.assertEqual(self.plain(range(1, 3)), values(run.metrics))

    def test_who_takes_over_the_state_has_the_values_though_it_has_computed_others(self) -> None:
        run, other = Steps(kept_of(**metrics())), Steps(kept_of(**metrics()))
        run.count(0)
        other.count(5)
        values(other.metrics)
        other.kept.install({(e.section, e.name): e.tensor.clone() for e in run.kept.describe()})
        other.buffers.adopt()
        self.assertEqual(values(run.metrics), values(other.metrics))
        for steps in (run, other):
            steps.count(1)
        self.assertEqual(self.plain(range(2)), values(other.metrics))
        self.assertEqual(run.kept.hash(), other.kept.hash())

    def test_one_that_has_counted_nothing_takes_a_state_without_a_warning(self) -> None:
        run, fresh = Steps(kept_of(**metrics())), kept_of(**metrics())
        run.count(0)
        fresh.install({(e.section, e.name): e.tensor.clone() for e in run.kept.describe()})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(self.plain(range(1)), values({name: fresh.modules[name] for name in metrics()}))

    def test_a_slot_that_resets_one_is_refused(self) -> None:
        """The step would add what all slots have counted less than the step before."""
        for order in (("reset", "count"), ("count", "reset")):
            run = Steps(kept_of(**metrics()))
            run.count(0)
            run.buffers.restore()
            for what in order:
                run.metrics["accuracy"].reset() if what == "reset" else feed(run.metrics, 7)
            with self.assertRaisesRegex(Misuse, r"resets the metric of accuracy\.tp.*after_step="):
                run.buffers.check_unchanged()

    def test_what_an_evaluation_counts_is_put_back_inference_or_not(self) -> None:
        for mode in (torch.no_grad, torch.inference_mode):
            run = Steps(kept_of(**metrics()))
            run.count(0)
            with mode():
                for metric in run.metrics.values():
                    metric.reset()
                feed(run.metrics, 50)
                values(run.metrics)
            run.buffers.restore()
            run.count(1)
            self.assertEqual(self.plain(range(2)), values(run.metrics))

    def test_all_in_a_kept_container_count_and_a_wrapped_one_once(self) -> None:
        wrapped = torchmetrics.ClasswiseWrapper(MulticlassAccuracy(CLASSES, average=None))
        kept = kept_of(box=nn.ModuleDict({"peak": torchmetrics.MaxMetric(), "classes": wrapped}))
        self.assertEqual({"box.peak.max_value": "max", **{f"box.classes.metric.{name}": "sum"
                                                          for name in ("tp", "fp", "tn", "fn")}},
                         rules_of({}, kept.buffers, SLOTS))

    def test_what_a_kept_network_has_is_no_state(self) -> None:
        """A metric within a network may count or not: the trial finds one that is not reset."""
        net = nn.Sequential(nn.Linear(2, 2), MulticlassAUROC(CLASSES), metrics()["accuracy"])
        self.assertEqual({}, rules_of({}, kept_of(net=net).buffers, SLOTS))

    def test_one_that_gets_its_shape_from_a_batch_is_named_with_what_helps(self) -> None:
        kept = kept_of(r2=torchmetrics.R2Score())
        kept.guard()
        buffers = Buffers(kept.buffers, 1, rules_of({}, kept.buffers, SLOTS), SLOTS)
        kept.modules["r2"].update(torch.rand(5, 2), torch.rand(5, 2))
        with self.assertRaisesRegex(Misuse, r"r2\..*where it is made \(num_classes="):
            buffers.settle()
        with self.assertRaisesRegex(MisuseError, r"r2\..*where it is made \(num_classes="):
            kept.check_layout()

    def test_rules_of_the_script_are_for_its_own_buffers(self) -> None:
        kept = kept_of(accuracy=metrics()["accuracy"], other=nn.BatchNorm1d(2))
        rules = rules_of({"*": "max"}, kept.buffers, SLOTS)
        self.assertEqual({"sum"}, {rule for name, rule in rules.items() if name.startswith("accuracy.")})
        self.assertEqual("max", rules["other.running_mean"])

    def test_what_cannot_be_joined_is_refused_by_name(self) -> None:
        for metric, words in (
                (MulticlassAUROC(CLASSES), "`metric`.*`preds` is a list.*thresholds="),
                (torchmetrics.CatMetric(), "`metric`, a CatMetric.*is a list.*reset"),
                (torchmetrics.PearsonCorrCoef(), "`mean_x` is joined by no sum"),
                (torchmetrics.MinMaxMetric(MulticlassAccuracy(CLASSES)), "MinMaxMetric.*keep the metric inside"),
                (torchmetrics.MetricTracker(MulticlassAccuracy(CLASSES)), "MetricTracker.*keep the metric inside"),
                (torchmetrics.MetricCollection([torchmetrics.MeanSquaredError()]), "compute_groups=False")):
            with self.assertRaisesRegex(MisuseError, words):
                kept_of(metric=metric)


if __name__ == "__main__":
    unittest.main()
