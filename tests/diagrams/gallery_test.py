"""Usage: gallery_test.py BATON ROOT: a part of the gallery, drawn again, is the same."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

baton, root = sys.argv[1], Path(sys.argv[2])
gallery = root / "diagrams" / "gallery"
PART = ["all_reduce_ring_4", "all_reduce_double_tree_8", "broadcast_binomial_5",
        "all_to_all_bruck_4", "all_gather_hierarchical_8", "all_reduce_ring_8_critical_path",
        "all_to_all_split_assemble_4", "all_reduce_ring_8_hosts_recorded",
        "transformer_tensor_parallel_2_recorded", "README"]


class Gallery(unittest.TestCase):
    def test_a_part_drawn_again(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, root / "scripts" / "gallery.py", baton, folder, *PART],
                           check=True)
            made = sorted(Path(folder).iterdir())
            # What rsvg-convert makes differs from version to version.
            same = [file for file in made if file.suffix not in (".png", ".pdf")]
            self.assertEqual(len(made), len(same) + 2)
            self.assertGreaterEqual(len(same), len(PART))
            for file in same:
                with self.subTest(file=file.name):
                    self.assertTrue(file.read_bytes() == (gallery / file.name).read_bytes(),
                                    f"expected {file.name} as it is in the gallery, found another; "
                                    "scripts/gallery draws it anew")

    def test_every_algorithm_is_there_and_the_index_names_what_is(self):
        listed = subprocess.run([baton, "list", "--json"], capture_output=True, text=True,
                                check=True).stdout
        algorithms = [f"{row['collective']}_{row['algorithm']}_4.svg" for row in json.loads(listed)]
        self.assertGreater(len(algorithms), 50)
        index = (gallery / "README.md").read_text()
        files = {file.name for file in gallery.iterdir()} - {"README.md"}
        self.assertEqual(sorted(set(algorithms) - files), [], "scripts/gallery draws them")
        linked = re.findall(r"\]\(([^)]*)\)", index)
        self.assertEqual(sorted(set(linked) - files), [], "the index names what is not there")
        for file in files:
            self.assertIn(f"({file})", index)
            most = 300_000 if "_recorded" in file else 130_000  # two panels in one
            self.assertLess((gallery / file).stat().st_size, most)


unittest.main(argv=sys.argv[:1], verbosity=2)
