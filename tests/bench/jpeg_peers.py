"""Peers of `loader.py jpeg`: any part of an image, scaled to 224 x 224 and mirrored or not, to
bytes in (C, H, W); and the images themselves."""
import math
import pathlib
import random

WIDTH, HEIGHT, SIDE, BATCH = 500, 375, 224, 32
CLASSES, EACH = 4, 75


def make_images(directory):
    """Noise with the spectrum of photographs (amplitude falls with frequency), at a quality that
    gives the size of ImageNet's files."""
    import numpy
    from PIL import Image
    rng = numpy.random.default_rng(1)
    for label in range(CLASSES):
        (pathlib.Path(directory) / f"class{label}").mkdir()
        for i in range(EACH):
            total = numpy.zeros((HEIGHT, WIDTH, 3))
            for scale in (1, 2, 4, 8, 16, 32, 64, 128):
                size = (HEIGHT // scale + 2, WIDTH // scale + 2)
                for channel in range(3):
                    noise = Image.fromarray(rng.normal(size=size).astype("f"))
                    wide = noise.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
                    total[..., channel] += numpy.asarray(wide) * scale ** 0.55
            total = (total - total.mean()) / total.std() * 50 + 128
            image = Image.fromarray(total.clip(0, 255).astype("u1"))
            image.save(pathlib.Path(directory) / f"class{label}" / f"{i:03d}.jpg", quality=97)


def make_masks(directory):
    """The same images in images/, and in masks/ for each a palette PNG of 21 classes in large
    regions."""
    import numpy
    from PIL import Image
    for kind in ("images", "masks"):
        (pathlib.Path(directory) / kind).mkdir()
    make_images(pathlib.Path(directory) / "images")
    rng = numpy.random.default_rng(2)
    for path in files_of(pathlib.Path(directory) / "images"):
        coarse = Image.fromarray(rng.integers(0, 21, (6, 8), dtype="u1"))
        mask = coarse.resize((WIDTH, HEIGHT), Image.Resampling.NEAREST).rotate(17)
        mask.putpalette(list(range(63)))
        to = pathlib.Path(str(path.parent).replace("/images/", "/masks/"))
        to.mkdir(exist_ok=True)
        mask.save(to / f"{path.stem}.png")


def files_of(directory):
    return sorted(pathlib.Path(directory).rglob("*.jpg"))


def any_part(width, height):
    """The box of torchvision's RandomResizedCrop."""
    for _ in range(10):
        area = random.uniform(0.08, 1) * width * height
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, x + w, y + h
    return 0, 0, width, height


def varied(image):
    return varied_alike(image)[0]


def varied_alike(image, mask=None):
    """The same part of image and mask, mirrored or not; the mask takes the nearest pixels."""
    from PIL import Image
    box, is_flipped = any_part(*image.size), random.random() < 0.5
    both = [(image, Image.Resampling.BILINEAR)]
    if mask is not None:
        both.append((mask, Image.Resampling.NEAREST))
    made = [one.crop(box).resize((SIDE, SIDE), how) for one, how in both]
    return [one.transpose(Image.Transpose.FLIP_LEFT_RIGHT) for one in made] if is_flipped else made


def torch_epochs(directory, has_masks=False):
    import numpy
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset
    torch.set_num_threads(1)
    files = files_of(directory)

    class Images(Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            image, mask = Image.open(files[i]).convert("RGB"), None
            if has_masks:
                path = str(files[i]).replace("/images/", "/masks/").replace(".jpg", ".png")
                mask = Image.open(path)
            image, *masks = varied_alike(image, mask)
            return (torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous(),
                    torch.from_numpy(numpy.array(masks[0])) if masks else 0)

    loader = DataLoader(Images(), batch_size=BATCH, shuffle=True)
    return lambda: sum(len(batch[1]) for batch in loader)


def webdataset_epochs(directory):
    """The same files in one shard, which webdataset shuffles as they come."""
    import tarfile
    import tempfile

    import numpy
    import webdataset
    place = tempfile.TemporaryDirectory()
    shard = pathlib.Path(place.name) / "images.tar"
    with tarfile.open(shard, "w") as tar:
        for i, path in enumerate(files_of(directory)):
            tar.add(path, f"{i:06d}.jpg")

    def made(sample):
        return numpy.ascontiguousarray(numpy.asarray(varied(sample[0])).transpose(2, 0, 1))

    def epoch(_place=place):  # the default keeps the directory as long as the function
        pipeline = (webdataset.WebDataset(str(shard), shardshuffle=False).shuffle(300)
                    .decode("pil").to_tuple("jpg").map(made))
        return sum(len(batch) for batch in pipeline.batched(BATCH, collation_fn=numpy.stack))
    return epoch


def spdl_epochs(directory):
    """FFmpeg's decoder and filters, one thread. The filter gets its crop before it knows the
    image's size, which here is the same for all."""
    import spdl.io
    files = files_of(directory)

    def frames_of(path):
        left, top, right, bottom = any_part(WIDTH, HEIGHT)
        steps = [f"crop={right - left}:{bottom - top}:{left}:{top}", f"scale={SIDE}:{SIDE}:flags=bilinear"]
        if random.random() < 0.5:
            steps.append("hflip")
        return spdl.io.decode_packets(spdl.io.demux_image(str(path)),
                                      filter_desc=",".join([*steps, "format=rgb24"]))

    def epoch():
        random.shuffle(files)
        for begin in range(0, len(files), BATCH):
            frames = [frames_of(path) for path in files[begin:begin + BATCH]]
            spdl.io.to_numpy(spdl.io.convert_frames(frames)).transpose(0, 3, 1, 2).copy()
        return len(files)
    return epoch


def dali_epochs(directory):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
    def pipe():
        encoded, labels = fn.readers.file(file_root=str(directory), random_shuffle=True,
                                          name="files")
        images = fn.decoders.image_random_crop(encoded, device="cpu", output_type=types.RGB)
        images = fn.resize(images, size=(SIDE, SIDE), interp_type=types.INTERP_LINEAR)
        images = fn.flip(images, horizontal=fn.random.coin_flip())
        return fn.transpose(images, perm=(2, 0, 1)), labels

    made = pipe()
    made.build()
    samples = len(files_of(directory))

    def epoch():
        done = 0
        while done < samples:
            done += len(made.run()[0])
        return done
    return epoch
