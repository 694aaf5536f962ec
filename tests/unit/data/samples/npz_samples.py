"""Writes npz_samples.h: small archives of NumPy's own making.

  pip install numpy && python3 tests/unit/data/samples/npz_samples.py
"""
import io

import numpy

import samples_header

PIXELS = (numpy.arange(4 * 5 * 6) % 256).astype("uint8").reshape(4, 5, 6)
LABELS = numpy.array([[3], [0], [2], [1]], "u1")
FEWER = {"x_test": PIXELS[:2] + 100, "y_test": LABELS[:2]}


def saved(save=numpy.savez, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


SAMPLES = {
    "mnist": saved(x_train=PIXELS, y_train=LABELS.reshape(-1).astype("<i8"), **FEWER),
    "mnist_compressed": saved(numpy.savez_compressed, x_train=PIXELS,
                              y_train=LABELS.reshape(-1).astype("<i8"), **FEWER),
    "pair": saved(images=PIXELS, labels=LABELS),
    "medmnist": saved(numpy.savez_compressed, train_images=PIXELS, train_labels=LABELS,
                      val_images=PIXELS[:1], val_labels=LABELS[:1], test_images=PIXELS[:2],
                      test_labels=LABELS[:2]),
    "two": saved(images=PIXELS, x=PIXELS, labels=LABELS),
    "unlabelled": saved(images=PIXELS),
    "empty": saved(),
    "bomb": saved(numpy.savez_compressed, images=numpy.zeros((1, 2_000, 1_000), "u1"),
                  labels=LABELS[:1]),
}

if __name__ == "__main__":
    samples_header.write(__file__, f"numpy {numpy.__version__}", "npz", SAMPLES)
