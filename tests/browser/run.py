"""Runs the browser tests against one system, a class at a time in as many processes as the machine has room for.

    run.py [WORD…]    only tests whose name has one of the words

The last line is the totals.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROCESSES = 3
CLASS_TIMEOUT_S = 220
sys.path.insert(0, str(HERE))


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item.id()


def groups(words):
    """Names of tests by class, the largest class first."""
    found = {}
    for name in tests_of(unittest.defaultTestLoader.discover(HERE)):
        if not words or any(word in name for word in words):
            found.setdefault(name.rpartition(".")[0], []).append(name)
    return sorted(found.values(), key=len, reverse=True)


def run_group(names):
    """In a process of its own; what it printed, and how many passed, failed and were skipped."""
    command = [sys.executable, __file__, "--group", *names]
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=CLASS_TIMEOUT_S)
        lines, counts = done.stdout.strip().splitlines(), []
        if lines and lines[-1].startswith("counts "):
            counts = [int(count) for count in lines.pop().split()[1:]]
        said = "\n".join(lines) + done.stderr
    except subprocess.TimeoutExpired as timeout:
        said, counts = f"{names}: {timeout}\n", []
    return said, counts or [0, len(names), 0]


def whole(test):
    """The test that a subtest is a part of."""
    return getattr(test, "test_case", test)


class Result(unittest.TextTestResult):
    """Says each test's name with the seconds it took."""

    def startTest(self, test):
        test.started = time.monotonic()
        unittest.TestResult.startTest(self, test)

    def stopTest(self, test):
        super().stopTest(test)
        bad = any(test is whole(one) for one, _ in self.failures + self.errors)
        print(f"{'FAILED' if bad else 'passed'} {time.monotonic() - test.started:6.1f} s  {test.id()}", flush=True)


def run_here(names):
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    runner = unittest.TextTestRunner(stream=sys.stderr, verbosity=0, resultclass=Result)
    result = runner.run(suite)
    skipped = len(result.skipped)
    failed = len({whole(test).id() for test, _ in result.failures + result.errors})
    print(f"counts {max(0, len(names) - failed - skipped)} {failed} {skipped}")


def main(words):
    from system import System

    started = time.monotonic()
    system = System.start()
    os.environ["JARI_TEST_DATA"] = str(system.data)
    totals = [0, 0, 0]
    try:
        with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
            for said, counts in pool.map(run_group, groups(words)):
                print(said.strip(), flush=True)
                totals = [total + count for total, count in zip(totals, counts)]
    finally:
        system.stop()
    print(f"{time.monotonic() - started:.0f} s")
    print("{} passed, {} failed, {} skipped".format(*totals))
    return 0 if totals[0] and not totals[1] else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--group"]:
        run_here(sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
