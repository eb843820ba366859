"""scripts/images.py writes pictures in the binary format of CIFAR-10.

Usage: images_script_test.py SCRIPT
"""

import gzip
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = sys.argv.pop(1)


def pixel(image, row, column):
    return (image * 13 + row * 29 + column * 3) % 256


def write(folder, name, count):
    images = bytes(pixel(i, r, c) for i in range(count) for r in range(28) for c in range(28))
    labels = bytes(i % 10 for i in range(count))
    files = {"images-idx3": ((count, 28, 28), images), "labels-idx1": ((count,), labels)}
    for kind, (dimensions, content) in files.items():
        head = struct.pack(f">{1 + len(dimensions)}i", 0x800 + len(dimensions), *dimensions)
        (folder / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(head + content))


class ImagesTest(unittest.TestCase):
    def run_script(self, change=None):
        with tempfile.TemporaryDirectory() as source, tempfile.TemporaryDirectory() as to:
            write(Path(source), "train", 15)
            write(Path(source), "t10k", 4)
            if change:
                change(Path(source))
            done = subprocess.run(["/usr/bin/python3", SCRIPT, source, to], capture_output=True, text=True)
            return done, {file.name: file.read_bytes() for file in Path(to).iterdir()}

    def test_every_pixel_and_label(self):
        done, files = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(files), [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"])
        training = b"".join(files[f"data_batch_{i}.bin"] for i in range(1, 6))
        for content, count in ((training, 15), (files["test_batch.bin"], 4)):
            self.assertEqual(len(content), count * 3073)
            for i in range(count):
                record = content[i * 3073:(i + 1) * 3073]
                self.assertEqual(record[0], i % 10)
                plane = bytes(pixel(i, r - 2, c - 2) if 2 <= r < 30 and 2 <= c < 30 else 0
                              for r in range(32) for c in range(32))
                self.assertEqual(record[1:], plane * 3)

    def test_a_torn_file_is_refused(self):
        def tear(source):
            file = source / "train-images-idx3-ubyte.gz"
            file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())[:-1]))

        done, files = self.run_script(tear)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("train-images-idx3-ubyte.gz: expected an IDX file", done.stderr)
        self.assertEqual(files, {})


unittest.main()
