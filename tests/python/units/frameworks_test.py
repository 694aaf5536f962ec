"""lockstep.fit() and lockstep.Trainer refuse by name and in one sentence. Also the forms of
configure_optimizers()."""
import functools
import importlib.util
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import torch
from torch.optim.lr_scheduler import ExponentialLR, ReduceLROnPlateau
from torchmetrics import Accuracy, MeanMetric, MetricCollection
from transformers import TrainingArguments

import lockstep
from lockstep import Misuse, _start
from lockstep._device import HOST
from lockstep._frameworks import _hf_arguments, _module_hooks, _options
from lockstep._frameworks._common import Length
from lockstep._frameworks._configured import Configured
from lockstep._frameworks._epoch_metrics import EpochMetrics
from lockstep._frameworks._module_loop import ModuleLoop
from lockstep._frameworks._stand_in import StandIn
from lockstep._frameworks._validation import score_of, validation_data

JOB = {"global_batch": "24", "slots": "4", "epochs": "2", "max_steps": "0"}
RUN = types.SimpleNamespace(seed=7, device=torch.device("cpu"), _device=HOST, _job=JOB,
                            request_stop=mock.Mock(), log=mock.Mock(), is_writer=False)


class Module(torch.nn.Linear):
    def __init__(self):
        super().__init__(2, 2)

    def training_step(self, batch, batch_idx):
        return self(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Case(unittest.TestCase):
    def assert_refused(self, said, function, *args, **named):
        with self.assertRaises(Misuse) as caught:
            function(*args, **named)
        self.assertIn(said, str(caught.exception))
        self.assertNotIn(". ", str(caught.exception), "one sentence")


class Names(unittest.TestCase):
    """The names that `from lockstep import *` takes."""

    def names(self):
        spec = importlib.util.spec_from_file_location("lockstep", lockstep.__file__)
        again = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(again)
        return again.__all__

    def test_trainer_is_one_where_transformers_is_installed(self):
        self.assertIn("Trainer", self.names())
        with mock.patch.dict(sys.modules), mock.patch("importlib.util.find_spec", return_value=None):
            del sys.modules["transformers"]
            self.assertEqual(set(self.names()), set(lockstep.__all__) - {"Trainer"})
        for name in lockstep.__all__:
            self.assertTrue(hasattr(lockstep, name), name)


class Lightning(Case):
    def test_modules(self):
        def of(**members):
            return type("Mine", (Module,), members)()

        _module_hooks.check_module(Module())
        check = _module_hooks.check_module
        self.assert_refused("Linear has no training_step()", check, torch.nn.Linear(2, 2))
        self.assert_refused("automatic_optimization = False", check, of(automatic_optimization=False))
        self.assert_refused("on_before_zero_grad()", check, of(on_train_batch_end=lambda *_: None))
        for hook in ("backward", "optimizer_zero_grad", "configure_callbacks"):
            self.assert_refused(f"Mine overrides {hook}()", check, of(**{hook: lambda *_: None}))
        self.assert_refused("takes optimizer_idx", check,
                            of(training_step=lambda self, batch, batch_idx, optimizer_idx: 0))
        self.assertTrue(_module_hooks.takes_batch_idx(Module().training_step))
        self.assertFalse(_module_hooks.takes_batch_idx(lambda batch: 0))

    def test_options(self):
        cpu, cuda = torch.device("cpu"), torch.device("cuda", 0)
        _options.check_options({"max_epochs": 2, "accelerator": "cpu", "devices": 1, "logger": False,
                                "enable_progress_bar": True}, cpu)
        _options.check_options({"accelerator": "gpu"}, cuda)
        self.assert_refused("cluster.device", _options.check_options, {"accelerator": "cpu"}, cuda)
        for name, value, said in (("strategy", "ddp", "sums the gradients"),
                                  ("devices", 4, "--workers N"), ("devices", True, "--workers N"),
                                  ("accumulate_grad_batches", 2, "train.global_batch"),
                                  ("callbacks", [], "hooks"), ("overfit_batches", 3, "once an epoch"),
                                  ("accelerator", "gpu", "cluster.device"), ("max_time", "00:01:00:00", "job"),
                                  ("val_check_interval", 5, "eval.every_steps"),
                                  ("limit_val_batches", 3, "every sample once")):
            self.assert_refused(f"({name}={value!r})", _options.check_options, {name: value}, cpu)
            self.assert_refused(said, _options.check_options, {name: value}, cpu)
        with self.assertRaisesRegex(TypeError, "max_epoch'"):
            _options.check_options({"max_epoch": 2}, cpu)
        self.assertEqual(_options.precision_of("bf16"), "bf16-mixed")
        self.assert_refused("precision='16-mixed'", _options.precision_of, "16-mixed")

    def test_length(self):
        data = torch.utils.data.TensorDataset(torch.zeros(50, 2))
        length = Length.of(RUN, data)
        self.assertEqual((length.steps_per_epoch, length.steps), (3, 6))
        limited = types.SimpleNamespace(_job={**JOB, "max_steps": "4"})
        self.assertEqual(Length.of(limited, data).steps, 4)
        limited._job["epochs"] = "0"
        self.assertEqual(Length.of(limited, data).steps, 4)
        length.check(_options.steps_of({"max_epochs": 2, "max_steps": -1}, 3), "fit")
        length.check(_options.steps_of({"max_epochs": 9, "max_steps": 6}, 3), "fit")
        self.assert_refused("9 steps, and the job makes 6 of 3 in an epoch", length.check,
                            _options.steps_of({"max_epochs": 3}, 3), "fit")

    def test_configure_optimizers(self):
        optimizer = Module().configure_optimizers()
        schedule = ExponentialLR(optimizer, 0.5)
        stepwise = {"scheduler": schedule, "interval": "step", "frequency": 2}
        for returned, found in (
                (optimizer, []), ([optimizer], []), ((optimizer,), []), ({"optimizer": optimizer}, []),
                (([optimizer], [schedule]), [("epoch", 1)]), (([optimizer], []), []),
                ([[optimizer], [stepwise, schedule]], [("step", 2), ("epoch", 1)]),
                ({"optimizer": optimizer, "lr_scheduler": schedule}, [("epoch", 1)]),
                ([{"optimizer": optimizer, "lr_scheduler": stepwise}], [("step", 2)])):
            configured = Configured.of(returned, False)
            self.assertIs(configured.optimizer, optimizer)
            self.assertEqual([(s.interval, s.frequency) for s in configured.schedules], found)
        second, epoch = Configured.of(([optimizer], [stepwise, schedule]), False).schedules
        self.assertEqual([second.is_due(i, 0, i == 4) for i in range(5)], [False, True] * 2 + [False])
        self.assertEqual([epoch.is_due(i, 0, i == 4) for i in range(5)], [False] * 4 + [True])

    def test_configure_optimizers_that_cannot_be(self):
        optimizer, other = Module().configure_optimizers(), Module().configure_optimizers()
        of = lambda returned: Configured.of(returned, False)  # noqa: E731
        scheduled = lambda config: of({"optimizer": optimizer, "lr_scheduler": config})  # noqa: E731
        schedule = ExponentialLR(optimizer, 0.5)
        plateau = ReduceLROnPlateau(optimizer)
        self.assert_refused("2 optimizers", of, [optimizer, other])
        self.assert_refused("None", of, None)
        self.assert_refused("a str", of, "adam")
        self.assert_refused("'frequncy'", scheduled, {"scheduler": schedule, "frequncy": 2})
        self.assert_refused("interval='batch'", scheduled, {"scheduler": schedule, "interval": "batch"})
        self.assert_refused("frequency=0", scheduled, {"scheduler": schedule, "frequency": 0})
        self.assert_refused("ReduceLROnPlateau", scheduled, {"scheduler": plateau, "monitor": "loss"})
        self.assert_refused("another optimizer", scheduled, ExponentialLR(other, 0.5))
        self.assert_refused("lr_scheduler_step()", scheduled, types.SimpleNamespace(step=print))

    def test_logs_and_the_trainer(self):
        trainer = StandIn(RUN)
        loop = ModuleLoop(RUN, Module(), trainer)
        loop.log("norm", 2.0, prog_bar=True)
        RUN.log.assert_called_once_with({"norm": 2.0})
        loop._logged = {}
        loop.log("loss", 1.0, True, on_epoch=True, sync_dist=True)
        loop.log_dict({"a": 2, "b": 3}, prog_bar=True)
        self.assertEqual(loop._logged, {"loss": 1.0, "a": 2, "b": 3})
        self.assert_refused("reduce_fx='max'", loop.log, "a", 1.0, reduce_fx="max")
        self.assert_refused("rank_zero_only", loop.log, "a", 1.0, rank_zero_only=True)
        metric = types.SimpleNamespace(update=print, compute=print)
        self.assert_refused("lockstep.fit(metrics=[…])", loop.log, "a", metric)
        self.assert_refused("rank", getattr, trainer, "global_rank")
        self.assert_refused("configure_optimizers()", getattr, trainer, "max_epochs")
        self.assertFalse(hasattr(trainer, "anything_else"))
        trainer.should_stop = True
        RUN.request_stop.assert_called_once()

    def test_a_metric_that_fit_was_told_of_counts_over_an_epoch(self):
        module = Module()
        module.seen = Accuracy(task="multiclass", num_classes=2)
        module.parts = MetricCollection([MeanMetric()], prefix="of_", compute_groups=False)
        metrics = EpochMetrics(module, ["seen", "parts"])
        self.assertEqual(metrics.kept(), {"metric_seen": module.seen, "metric_parts": module.parts})
        run = types.SimpleNamespace(**{**vars(RUN), "keep": mock.Mock(), "log": mock.Mock()})
        loop = ModuleLoop(run, module, StandIn(run))
        loop.keep(metrics, Configured.of(module.configure_optimizers(), False))
        self.assertIs(run.keep.call_args.kwargs["metric_seen"], module.seen)
        loop._logged = {}
        module.seen.update(torch.tensor([0, 1]), torch.tensor([0, 0]))
        self.assert_refused("on_step=False", loop.log, "seen", module.seen)
        loop.log("seen", module.seen, on_step=False, on_epoch=True)
        self.assertEqual(loop._logged, {})
        module.seen(torch.tensor([1, 1]), torch.tensor([1, 1]))
        module.parts(torch.tensor([2.0, 4.0]))
        loop.log("both", module.seen, on_epoch=True)
        loop.log_dict(module.parts)
        self.assertEqual({k: float(v) for k, v in loop._logged.items()},
                         {"both_step": 1.0, "of_MeanMetric": 3.0})
        loop._logged = None
        loop.log("now", module.seen)
        run.log.assert_called_once_with({"now": 0.75})
        self.assertEqual(metrics.end_epoch(), {"seen": 0.75, "both_epoch": 0.75})
        self.assertEqual(module.seen._update_count + module.parts["MeanMetric"]._update_count, 0)
        loop._trainer.validating = True
        self.assert_refused("as in a validation", loop.log, "seen", module.seen)

    def test_a_metric_that_fit_cannot_count(self):
        module = Module()
        module.many = Accuracy(task="multiclass", num_classes=2, average="none")
        for name in ("seen", "weight", "many.tp"):
            self.assert_refused("has no metric of this name", EpochMetrics, module, [name])
        metrics = EpochMetrics(module, "many")
        metrics.log("a", module.many, False, True)
        module.many.update(torch.tensor([0, 1]), torch.tensor([0, 0]))
        self.assert_refused("compute() gives no number", metrics.end_epoch)

    def test_what_a_module_draws_at_the_start_of_an_epoch_depends_on_the_epoch(self):
        class Drawing(Module):
            def on_train_epoch_start(self):
                drawn.append((torch.rand(()).item(), random.random()))

        drawn, after = [], []
        for slot in (1, 2):  # each worker begins the epoch before another slot
            trainer = StandIn(RUN)
            trainer.measure(Length(3, 6))
            loop = ModuleLoop(RUN, Drawing(), trainer)
            for step in (0, 3):
                torch.manual_seed(slot)
                random.seed(slot)
                loop._at(step)
                after.append(random.random())
        self.assertEqual(drawn[:2], drawn[2:])
        self.assertNotEqual(drawn[0], drawn[1])
        self.assertEqual(after, [random.Random(slot).random() for slot in (1, 1, 2, 2)])

    def test_validation(self):
        held_out = torch.utils.data.TensorDataset(torch.zeros(50, 2))

        def of(**members):
            return type("Mine", (Module,), {"validation_step": lambda *_: None,
                                            "val_dataloader": lambda self: [held_out], **members})()

        self.assertEqual(validation_data(of(), None, {}), [held_out])
        self.assertEqual(validation_data(of(), of(val_dataloader=lambda self: JOB), {}), [JOB])
        self.assertEqual(validation_data(of(), None, {"val_dataloaders": JOB}), [JOB])
        self.assertEqual(validation_data(Module(), None, {"val_dataloaders": held_out}), [])
        self.assertEqual(validation_data(of(), None, {"limit_val_batches": 0}), [])
        self.assertEqual(validation_data(of(), None, {"val_dataloaders": []}), [])
        two = {"val_dataloaders": [held_out, JOB]}
        for takes in (lambda self, batch, batch_idx, dataloader_idx=0: None, lambda self, *_: None,
                      lambda self, batch, batch_idx, number: None):
            self.assertEqual(validation_data(of(validation_step=takes), None, two), [held_out, JOB])
        self.assert_refused("does not take dataloader_idx", validation_data,
                            of(validation_step=lambda self, batch, batch_idx: None), None, two)
        self.assert_refused("Mine overrides on_validation_epoch_end()", validation_data,
                            of(on_validation_epoch_end=print), None, {})

        loop = mock.Mock()
        for output, logged, found in (
                (None, {"val_loss": 2, "a": 3}, {"loss": 2, "a": 3}),
                ({"loss": 4}, {"val_loss": 2}, {"loss": 4, "val_loss": 2}), (5, {}, {"loss": 5}),
                (None, {"my_loss": 2, "loss": 1}, {"loss": 1, "my_loss": 2})):
            loop.validate.return_value = output, dict(logged)
            self.assertEqual(score_of(loop, 1, None), found)
            loop.validate.assert_called_with(None, 1)
        loop.validate.return_value = None, {"a": 3}
        self.assert_refused("no loss", score_of, loop, None, None)

    def test_without_a_run(self):
        with mock.patch.object(_start, "_started", None):
            self.assert_refused("before lockstep.start()", lockstep.fit, Module())
            self.assert_refused("before lockstep.start()", lockstep.Trainer)


class HuggingFace(Case):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.make = lambda **named: TrainingArguments(directory.name, **{"seed": 7, **named})

    def test_arguments(self):
        check = lambda **named: _hf_arguments.check_arguments(self.make(**named), RUN)  # noqa: E731
        check()
        check(eval_strategy="epoch")
        check(per_device_train_batch_size=6, max_grad_norm=0, save_steps=3, weight_decay=0.1,
              bf16=True, use_cpu=True, dataloader_num_workers=2, activation_checkpointing=True)
        for name, value, said in (
                ("seed", 42, "the job's seed is 7"), ("data_seed", 1, "the job's seed is 7"),
                ("per_device_train_batch_size", 16, "a slot has 6 samples"),
                ("gradient_accumulation_steps", 2, "train.global_batch"),
                ("dataloader_drop_last", True, "once an epoch"),
                ("train_sampling_strategy", "group_by_length", "the job's seed"),
                ("torch_compile", True, "compiled"), ("optim", "lion_32bit", "optimizers="),
                ("eval_strategy", "steps", "eval.every_steps"), ("push_to_hub", True, "every worker"),
                ("auto_find_batch_size", True, "train.global_batch")):
            with self.subTest(name):
                self.assert_refused(f"TrainingArguments({name}={value!r})", check, **{name: value})
                self.assert_refused(said, check, **{name: value})
        for name, value in (("fsdp", "full_shard"), ("deepspeed", {"stage": 2}), ("fp16", True)):
            arguments = self.make()
            setattr(arguments, name, value)  # transformers itself needs packages or a GPU for it
            self.assert_refused(f"({name}={value!r})", _hf_arguments.check_arguments, arguments, RUN)

    def test_length(self):
        length = Length(3, 6)
        check = lambda **named: _hf_arguments.check_length(self.make(**named), length)  # noqa: E731
        check(num_train_epochs=2)
        check(max_steps=6)
        self.assert_refused("would make 9 steps, and the job makes 6", check)
        self.assert_refused("would make 5 steps", check, max_steps=5)

    def test_trainers(self):
        class Mine(lockstep.Trainer):
            def get_train_dataloader(self):
                return []

        elsewhere = types.SimpleNamespace(**{**vars(RUN), "device": torch.device("cuda")})
        with mock.patch.object(_start, "_started", elsewhere):
            self.assert_refused("cluster.device", lockstep.Trainer, Module(),
                                self.make(num_train_epochs=2, use_cpu=True))
        with mock.patch.object(_start, "_started", RUN):
            self.assert_refused("Mine overrides get_train_dataloader()", Mine, Module(), self.make())
            with_ = functools.partial(lockstep.Trainer, Module(), self.make(num_train_epochs=2))
            trainer = with_()
            self.assert_refused("--resume", trainer.train, resume_from_checkpoint=True)
            self.assert_refused("no train_dataset=", trainer.train)
            self.assertEqual(with_()._eval_data(), {})
            evaluates = functools.partial(lockstep.Trainer, Module(), self.make(
                num_train_epochs=2, eval_strategy="epoch"))
            self.assert_refused("compute_metrics=", evaluates(compute_metrics=print,
                                                              eval_dataset=[1])._eval_data)
            self.assert_refused("empty dict", evaluates(eval_dataset={})._eval_data)
            self.assertEqual([(name, data) for name, (data, _) in
                              evaluates(eval_dataset={"a": [1], "b": [2]})._eval_data().items()],
                             [("a", [1]), ("b", [2])])
            self.assertEqual(list(evaluates(eval_dataset=[1])._eval_data()), [None])
            trainer.train_dataset = torch.utils.data.TensorDataset(torch.zeros(50, 2))
            plateau = ReduceLROnPlateau(torch.optim.SGD(trainer.model.parameters(), 0.1))
            trainer.optimizer, trainer.lr_scheduler = plateau.optimizer, plateau
            self.assert_refused("ReduceLROnPlateau", trainer.train)

    def test_the_package_is_imported_lazily(self):
        code = "import sys, lockstep; print(sorted({'torch', 'transformers'} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "[]\n")
        self.assertTrue((pathlib.Path(lockstep.__file__).parent / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
