"""Pictures for the loops in this folder: Fashion-MNIST's, shapes that are drawn here, and a file that
shows what a model draws."""
import gzip

import torch


def file_of(directory, name, header):
    """The bytes after the header of an IDX file."""
    path = directory / name
    content = path.read_bytes() if path.exists() else gzip.open(f"{path}.gz").read()
    return torch.frombuffer(bytearray(content[header:]), dtype=torch.uint8)


def fashion(directory, part):
    """`part`: train or t10k. Images (N, 1, 28, 28) of bytes, and labels."""
    return (file_of(directory, f"{part}-images-idx3-ubyte", 16).view(-1, 1, 28, 28),
            file_of(directory, f"{part}-labels-idx1-ubyte", 8).long())


def shapes(count, seed):
    """Discs, squares, rings and bars (classes 0 to 3), somewhere in noise. The form of fashion()."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (count,), generator=draw)
    y, x, size = (torch.rand(3, count, 1, 1, generator=draw) * 8 + 10 - 6 *
                  torch.tensor([0.0, 0.0, 1.0])[:, None, None, None])
    down, right = torch.arange(28.)[:, None] - y, torch.arange(28.) - x
    far, wide = (down ** 2 + right ** 2).sqrt(), torch.maximum(down.abs(), right.abs())
    kinds = torch.stack([far < size, wide < size, (far < size) & (far > size - 2.5),
                         (wide < size) & (down.abs() < 2)], 1)
    noise = torch.randint(128, (count, 28, 28), generator=draw)
    images = kinds[torch.arange(count), labels] * 100 + noise
    return images.to(torch.uint8)[:, None], labels


def pixels(directory, samples):
    """Images that train, from -1 to 1: Fashion-MNIST's, or shapes where no directory is given."""
    images, _ = fashion(directory, "train") if directory else shapes(samples, 1)
    return images[:samples].float() / 127.5 - 1


def save_sheet(images, path):
    """Images (8 N, 1, 28, 28) from -1 to 1, eight in a row of a PGM file."""
    sheet = images.view(-1, 8, 28, 28).transpose(1, 2).reshape(-1, 8 * 28).clamp(-1, 1)
    path.write_bytes(b"P5 %d %d 255\n" % (sheet.shape[1], sheet.shape[0])
                     + ((sheet + 1) * 127.5).to(torch.uint8).numpy().tobytes())
