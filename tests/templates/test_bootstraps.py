"""What is refused before it is deployed: infra/local/bootstraps.py, against binaries made up for it."""

import contextlib
import io
import random
import sys
import tempfile
import unittest
from pathlib import Path

import stacks

sys.path.insert(0, str(stacks.ROOT / "infra/local"))

import bootstraps

ELF = b"\x7fELF"


def noise(mb):
    """Bytes that cannot be zipped."""
    return random.Random(1).randbytes(int(mb * 1_000_000))


class Bootstraps(unittest.TestCase):
    def test_the_newest_version_counts(self):
        self.assertEqual(bootstraps.glibc(b"GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE"), (2, 34))
        self.assertEqual(bootstraps.glibc(b"nothing"), (0, 0))
        self.assertEqual(list(bootstraps.faults(ELF + b"GLIBC_2.34\0GLIBC_2.4\0")), [])
        for newer in (b"GLIBC_2.35", b"GLIBC_2.100", b"GLIBC_3.0"):
            self.assertEqual(len(list(bootstraps.faults(ELF + newer))), 1, newer)
        self.assertEqual(len(list(bootstraps.faults(b"#!/bin/sh"))), 1)

    def test_a_zip_is_as_large_as_it_may_be(self):
        client = b"AWS_ENDPOINT_URL"
        for binary, quick, count in (
            (ELF + noise(bootstraps.MB_WITHOUT_CLIENT - 0.1), False, 0),
            (ELF + noise(bootstraps.MB_WITHOUT_CLIENT + 0.1), False, 1),
            (ELF + client + noise(bootstraps.MB_WITH_CLIENT - 0.1), False, 0),
            (ELF + client + noise(bootstraps.MB_WITH_CLIENT + 0.1), False, 1),
            (ELF + noise(bootstraps.MB_WITH_CLIENT + 0.1), True, 0),
        ):
            self.assertEqual(len(list(bootstraps.faults(binary, quick))), count, (len(binary), quick))

    def test_one_bad_function_ends_it(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("nothing is built", self.listed(folder)[1])
            for name, binary in (("Join", ELF + b"GLIBC_2.30"), ("Poll", ELF + b"GLIBC_2.35")):
                (Path(folder) / name).mkdir()
                (Path(folder) / name / "bootstrap").write_bytes(binary)
            said, failed = self.listed(folder)
            self.assertIn("2.30", said)
            self.assertIn("Poll asks for glibc 2.35", failed)
            self.assertNotIn("Join", failed)
            (Path(folder) / "Poll/bootstrap").write_bytes(ELF)
            self.assertIsNone(self.listed(folder)[1])

    @staticmethod
    def listed(folder):
        """What it says, and why it failed."""
        with contextlib.redirect_stdout(io.StringIO()) as said:
            try:
                bootstraps.main(Path(folder))
            except SystemExit as failed:
                return said.getvalue(), failed.code
        return said.getvalue(), None


if __name__ == "__main__":
    unittest.main(verbosity=1)
