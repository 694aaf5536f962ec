"""The dataset of a run: what a script may pass, and what Lockstep takes from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch.utils import data as torch_data
from torch.utils.data import default_collate

from ._errors import BAD_DATA, USAGE, DataError
from ._rows import Rows


@dataclass(frozen=True)
class Source:
    """A map-style dataset and how its samples become a batch."""

    dataset: Any
    collate: Callable[[list[Any]], Any]
    samples: int  # len(dataset) when the run began; it may not change.
    name: str  # The class of the dataset.
    whole_slots: bool  # Samples come by one __getitems__ a slot.
    workers: int | None = None  # num_workers of the DataLoader, if there was one.
    batch_size: int | None = None  # batch_size of the DataLoader, if there was one.
    weights: Any = None  # From the DataLoader's WeightedRandomSampler, if it had one.

    @cached_property
    def rows(self) -> Rows | None:
        """None: the samples come one by one, or by __getitems__."""
        return Rows.of(self.dataset, self.collate)

    def about_batch_size(self, global_batch: int, slots: int) -> str | None:
        """A warning if the DataLoader's batch_size is neither of the job's two sizes. 1 is the
        default of a DataLoader that was given none."""
        if self.batch_size in (None, 1, global_batch, global_batch // slots):
            return None
        return (
            f"batch_size={self.batch_size} of the DataLoader does not count: the job's "
            f"train.global_batch is {global_batch}, in {slots} slots of about "
            f"{global_batch // slots} samples"
        )


def _refuse(what: str, instead: str) -> DataError:
    return DataError(USAGE, f"run.batches() does not take {what}; {instead}")


def _has_whole_slots(dataset: Any) -> bool:
    if not callable(getattr(dataset, "__getitems__", None)):
        return False
    if getattr(type(dataset), "__getitems__", None) is torch_data.Subset.__getitems__:
        # Subset has __getitems__ for every dataset. By __getitem__, a sample is seeded by itself.
        return _has_whole_slots(dataset.dataset)
    return True


def _samples_of(dataset: Any, name: str) -> int:
    if isinstance(dataset, torch_data.IterableDataset):
        raise _refuse(
            f"{name}, an IterableDataset",
            "Lockstep asks for samples by number: pass a dataset with __len__ and __getitem__, "
            "or convert the data to shards and name them in data.path",
        )
    if isinstance(dataset, tuple):
        raise _refuse("a tuple", "pass torch.utils.data.TensorDataset(x, y)")
    if isinstance(dataset, (str, bytes, dict)):
        raise _refuse(f"a {name}", "pass a dataset with __len__ and __getitem__")
    for method in ("__len__", "__getitem__"):
        if not hasattr(type(dataset), method):
            raise _refuse(
                f"{name}, which has no {method}",
                "pass a map-style dataset: __len__() and __getitem__(index)",
            )
    try:
        samples = len(dataset)
    except (TypeError, NotImplementedError) as error:
        raise _refuse(f"{name}, whose len() fails ({error})", "give it a __len__") from error
    if samples < 1:
        raise DataError(BAD_DATA, f"{name} has no samples; check the path that it reads")
    return samples


def _check_loader(loader: torch_data.DataLoader[Any]) -> None:
    """Refuses a DataLoader that asks for another order, or another cut, than Lockstep's."""
    if isinstance(loader.dataset, torch_data.IterableDataset):
        return  # _samples_of() has the better sentence.
    rest = "or pass the dataset itself and collate="
    plain = torch_data.DataLoader
    for method in ("__iter__", "_get_iterator"):
        if getattr(type(loader), method) is not getattr(plain, method):
            raise _refuse(
                f"a {type(loader).__name__}, which has its own {method}()",
                f"Lockstep asks for the samples itself: use torch's DataLoader, {rest}",
            )
    if loader.batch_size is None or type(loader.batch_sampler) is not torch_data.BatchSampler:
        raise _refuse(
            "a DataLoader with batch_sampler= or batch_size=None",
            f"the job's global_batch says how samples form batches: set batch_size, {rest}",
        )
    sampler = loader.sampler
    if type(sampler) is torch_data.SequentialSampler:
        raise _refuse(
            "a DataLoader with shuffle=False",
            f"Lockstep shuffles each epoch by the job's seed: set shuffle=True, {rest}",
        )
    if type(sampler) is torch_data.WeightedRandomSampler:
        _check_weighted(sampler, len(loader.dataset))
    elif type(sampler) is not torch_data.RandomSampler:
        raise _refuse(
            f"a DataLoader with sampler={type(sampler).__name__}",
            f"Lockstep gives each sample to one rank, once an epoch: use shuffle=True, {rest} (to "
            "draw by weights: run.batches(dataset, weights=...))",
        )
    # num_samples is a property that falls back on the length; `_num_samples` is what was passed.
    elif sampler.replacement or getattr(sampler, "_num_samples", None) is not None:
        raise _refuse(
            "a RandomSampler with replacement=True or num_samples=",
            f"every sample counts once an epoch: use shuffle=True, {rest} (to draw with replacement: "
            "run.batches(dataset, weights=torch.ones(len(dataset))))",
        )
    if loader.drop_last:
        raise _refuse(
            "a DataLoader with drop_last=True",
            f"the last step of an epoch is a short one: set drop_last=False, {rest}",
        )
    if loader.generator is not None or getattr(sampler, "generator", None) is not None:
        raise _refuse(
            "a DataLoader with generator=",
            f"the job's seed orders the samples: leave generator out, {rest}",
        )
    if loader.worker_init_fn is not None:
        raise _refuse(
            "a DataLoader with worker_init_fn=",
            "Lockstep seeds each sample by its position: leave worker_init_fn out, and open "
            "files in __getitem__ when they are first needed",
        )
    context = loader.multiprocessing_context
    if context is not None and context.get_start_method() != "fork":
        raise _refuse(
            f"a DataLoader with multiprocessing_context={context.get_start_method()!r}",
            f"data processes are forked before the run starts threads: leave it out, {rest}",
        )


def _check_weighted(sampler: torch_data.WeightedRandomSampler, samples: int) -> None:
    """Lockstep draws by its weights, as run.batches(weights=...) does."""
    if not sampler.replacement:
        raise _refuse(
            "a WeightedRandomSampler with replacement=False",
            "Lockstep draws each position by itself: set replacement=True",
        )
    if sampler.num_samples != samples:
        raise _refuse(
            f"a WeightedRandomSampler with num_samples={sampler.num_samples}",
            f"an epoch draws as many samples as the dataset has: set num_samples={samples}, and "
            "say by train.max_steps how long the run is",
        )


def unpack(data: Any, collate: Callable[[list[Any]], Any] | None = None) -> Source:
    """Takes a map-style dataset or a DataLoader apart.

    Lockstep takes `dataset`, `collate_fn`, `num_workers` and the weights of a WeightedRandomSampler
    from a DataLoader; it only compares `batch_size` with the job's. Settings that only affect speed
    (pin_memory, prefetch_factor, persistent_workers, timeout) are ignored. Anything that asks for
    another order of samples raises DataError(64), which names the nearest way.
    """
    workers = None
    batch_size = None
    weights = None
    dataset = data
    if isinstance(data, torch_data.DataLoader):
        _check_loader(data)
        dataset = data.dataset
        workers = data.num_workers
        batch_size = data.batch_size
        weights = getattr(data.sampler, "weights", None)
        collate = collate or data.collate_fn
    if isinstance(dataset, (torch_data.Sampler, torch_data.BatchSampler)):
        raise _refuse(
            f"a sampler ({type(dataset).__name__})",
            "pass the dataset: the job's seed orders the samples",
        )
    name = type(dataset).__name__
    samples = _samples_of(dataset, name)
    if collate is not None and not callable(collate):
        raise _refuse("a collate that cannot be called", "pass a function of a list of samples")
    return Source(
        dataset=dataset,
        collate=collate or default_collate,
        samples=samples,
        name=name,
        whole_slots=_has_whole_slots(dataset),
        workers=workers,
        batch_size=batch_size,
        weights=weights,
    )
