"""Peers of loader.py: one of them reads some epochs and prints what bench_loader prints.

    loader_peers.py torch|torch_batched|grain DIRECTORY     images
    loader_peers.py torch_tokens FILE
    loader_peers.py torch_resume|mosaic_resume SAMPLES
    loader_peers.py make_jpeg|torch_jpeg|webdataset_jpeg|dali_jpeg|spdl_jpeg DIRECTORY
    loader_peers.py make_masks|torch_masks DIRECTORY
                                                            jpeg_peers.py
"""
import json
import pathlib
import sys
import tempfile
import time

import jpeg_peers

BATCH, EPOCHS, SIDE = 128, 3, 32
BLOCK, SEQUENCES = 1024, 16


def images_of(directory):
    """Pixels and labels, as the file's five parts hold them, in memory."""
    import numpy
    parts = [numpy.fromfile(pathlib.Path(directory) / f"data_batch_{i}.bin", dtype=numpy.uint8)
             for i in range(1, 6)]
    records = numpy.concatenate(parts).reshape(-1, 1 + 3 * SIDE * SIDE)
    return (numpy.ascontiguousarray(records[:, 1:]).reshape(-1, 3, SIDE, SIDE),
            records[:, 0].astype(numpy.int64))


def tell(epoch):
    """`epoch()` returns the number of its samples. The first epoch warms up."""
    epoch()
    for _ in range(EPOCHS):
        begin, cpu = time.perf_counter(), time.process_time()
        samples = epoch()
        print(json.dumps({"samples": samples, "wall_s": time.perf_counter() - begin,
                          "cpu_s": time.process_time() - cpu}))


def torch_images(directory, batched):
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset
    torch.set_num_threads(1)
    pixels, labels = images_of(directory)
    dataset = TensorDataset(torch.from_numpy(pixels), torch.from_numpy(labels))
    if batched:  # one indexing per batch, which TensorDataset allows
        sampler = BatchSampler(RandomSampler(dataset), BATCH, drop_last=False)
        loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    else:
        loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)
    tell(lambda: sum(len(batch[1]) for batch in loader))


def grain_images(directory):
    import grain
    pixels, labels = images_of(directory)

    class Source:
        def __len__(self):
            return len(labels)

        def __getitem__(self, i):
            return pixels[i], labels[i]

    seed = 0

    def epoch():
        nonlocal seed
        seed += 1
        return sum(len(batch[1])
                   for batch in grain.MapDataset.source(Source()).shuffle(seed=seed).batch(BATCH))
    tell(epoch)


def torch_tokens(path):
    """The usual loop: windows at random places, so it does not promise each window once."""
    import numpy
    import torch
    torch.set_num_threads(1)
    tokens = numpy.memmap(path, dtype=numpy.uint16, mode="r")
    count = (len(tokens) - 1) // BLOCK

    def epoch():
        for _ in range(count // SEQUENCES):
            at = torch.randint(len(tokens) - BLOCK, (SEQUENCES,))
            torch.stack([torch.from_numpy(tokens[i:i + BLOCK].astype(numpy.int64)) for i in at])
            torch.stack([torch.from_numpy(tokens[i + 1:i + 1 + BLOCK].astype(numpy.int64))
                         for i in at])
        return count // SEQUENCES * SEQUENCES
    tell(epoch)


def torch_resume(samples):
    """RandomSampler draws the whole epoch's order first. Skipping to its middle would come on
    top."""
    from torch.utils.data import RandomSampler
    begin = time.perf_counter()
    next(iter(RandomSampler(range(samples))))
    print(json.dumps({"samples": samples, "wall_s": time.perf_counter() - begin}))


def mosaic_resume(samples):
    """Measures the arrangement of its epoch, which StreamingDataset computes before the first
    sample of a resume. An index promises the shards, which do not exist: StreamingDataset reads
    nothing of them."""
    import resource
    from streaming import StreamingDataset
    from streaming.base.batching import generate_work
    from streaming.base.world import World
    shard = {"version": 2, "format": "mds", "hashes": [], "compression": None, "samples": 100_000,
             "column_names": ["x"], "column_encodings": ["bytes"], "column_sizes": [3072],
             "size_limit": 1 << 30, "zip_data": None}
    with tempfile.TemporaryDirectory() as directory:
        shards = [{**shard, "raw_data": {"basename": f"{i}.mds", "bytes": 1 << 28, "hashes": {}}}
                  for i in range(samples // shard["samples"])]
        (pathlib.Path(directory) / "index.json").write_text(
            json.dumps({"version": 2, "shards": shards}))
        dataset = StreamingDataset(local=directory, shuffle=True, batch_size=BATCH,
                                   num_canonical_nodes=1)
        world = World.detect()
        dataset._set_shuffle_block_size(world)  # as its iterator does first
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        generate_work(dataset.batching_method, dataset, world, 0, samples // 2)
        print(json.dumps({"samples": samples, "wall_s": time.perf_counter() - begin, "growth_kib":
                          resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before}))


def main():
    which, argument = sys.argv[1:]
    {"torch": lambda: torch_images(argument, False),
     "torch_batched": lambda: torch_images(argument, True),
     "grain": lambda: grain_images(argument),
     "torch_tokens": lambda: torch_tokens(argument),
     "torch_resume": lambda: torch_resume(int(argument)),
     "mosaic_resume": lambda: mosaic_resume(int(argument)),
     "make_jpeg": lambda: jpeg_peers.make_images(argument),
     "torch_jpeg": lambda: tell(jpeg_peers.torch_epochs(argument)),
     "make_masks": lambda: jpeg_peers.make_masks(argument),
     "torch_masks": lambda: tell(jpeg_peers.torch_epochs(argument, has_masks=True)),
     "webdataset_jpeg": lambda: tell(jpeg_peers.webdataset_epochs(argument)),
     "spdl_jpeg": lambda: tell(jpeg_peers.spdl_epochs(argument)),
     "dali_jpeg": lambda: tell(jpeg_peers.dali_epochs(argument))}[which]()


if __name__ == "__main__":
    main()
