"""Writes Fashion-MNIST (Xiao, Rasul, Vollgraf, 2017) in the binary format of CIFAR-10: one byte, the label,
and the red, green and blue plane of 32 x 32 pixels. Each plane is the grey picture of 28 x 28 pixels with two
black pixels on each side.

Usage: images.py FROM TO
"""

import gzip
import sys
from pathlib import Path

import numpy as np


def content_of(file, dimensions):
    """The bytes of an IDX file: two zeros, the type (8: bytes), the dimensions' number and sizes."""
    content = gzip.decompress(file.read_bytes())
    shape = np.frombuffer(content, ">i4", dimensions, 4)
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) != 4 + 4 * dimensions + shape.prod():
        sys.exit(f"{file}: expected an IDX file of bytes in {dimensions} dimensions, found something else")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def records_of(folder, name):
    images = content_of(folder / f"{name}-images-idx3-ubyte.gz", 3)
    labels = content_of(folder / f"{name}-labels-idx1-ubyte.gz", 1)
    planes = np.repeat(np.pad(images, ((0, 0), (2, 2), (2, 2)))[:, None], 3, axis=1)
    return np.concatenate([labels[:, None], planes.reshape(len(labels), -1)], axis=1)


def main():
    source, to = map(Path, sys.argv[1:])
    training, test = records_of(source, "train"), records_of(source, "t10k")
    for i, records in enumerate(np.split(training, 5), 1):
        (to / f"data_batch_{i}.bin").write_bytes(records.tobytes())
    (to / "test_batch.bin").write_bytes(test.tobytes())


main()
