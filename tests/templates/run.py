"""Runs the tests of this folder; the last line is the totals, as make test reads them."""

import logging
import sys
import unittest
from pathlib import Path


def main():
    # The transform tells of its feature toggles, which nobody set.
    logging.disable(logging.WARNING)
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.discover(str(Path(__file__).parent)))
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
