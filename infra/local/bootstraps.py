"""Lists what `sam build` made, as Lambda takes it, and refuses what Amazon Linux 2023 would not start, or would start
late: a larger zip file takes longer to fetch and to load.

Usage: bootstraps.py [--quick] (built for tests, without the optimisation that makes it small)
"""

import re
import sys
import zlib
from pathlib import Path

BUILT = Path(".aws-sam/build")
# The C library of provided.al2023.
GLIBC = (2, 34)
# At most, zipped: with AWS' client for queues or sockets in it, and without. A bound against growth.
MB_WITH_CLIENT, MB_WITHOUT_CLIENT = 7.0, 3.6
# Lambda's own limit for a zip file that is uploaded.
MB_UPLOADED = 50
# A variable that the client alone reads.
CLIENT = re.compile(rb"AWS_ENDPOINT_URL")


def zipped_mb(binary):
    """As `sam package` packs it, but for a hundred bytes of names."""
    return len(zlib.compress(binary, level=6)) / 1_000_000


def glibc(binary):
    """The newest version that a binary asks for; (0, 0) where it asks for none."""
    versions = {tuple(int(part) for part in version.split(b".")) for version in re.findall(rb"GLIBC_(\d+\.\d+)", binary)}
    return max(versions, default=(0, 0))


def limit_mb(binary, quick=False):
    """How large a binary may be, zipped."""
    if quick:
        return MB_UPLOADED
    return MB_WITH_CLIENT if CLIENT.search(binary) else MB_WITHOUT_CLIENT


def faults(binary, quick=False):
    """What is wrong with a binary."""
    if not binary.startswith(b"\x7fELF"):
        yield "is no program"
    version, zipped, limit = glibc(binary), zipped_mb(binary), limit_mb(binary, quick)
    if version > GLIBC:
        yield f"asks for glibc {version[0]}.{version[1]}, and Amazon Linux 2023 has {GLIBC[0]}.{GLIBC[1]}"
    if zipped > limit:
        yield f"is {zipped:.2f} MB zipped, and may be {limit}"


def main(built=BUILT, quick=False):
    bootstraps = sorted(built.glob("*/bootstrap"))
    if not bootstraps:
        sys.exit("bootstraps: nothing is built")
    bad = []
    print(f"{'function':<12}{'MB':>8}{'zipped MB':>11}{'at most':>9}  glibc")
    for path in bootstraps:
        name, binary = path.parent.name, path.read_bytes()
        version = ".".join(str(part) for part in glibc(binary))
        mb, zipped = len(binary) / 1_000_000, zipped_mb(binary)
        print(f"{name:<12}{mb:>8.1f}{zipped:>11.2f}{limit_mb(binary, quick):>9.1f}  {version}")
        bad += [f"{name} {fault}" for fault in faults(binary, quick)]
    if bad:
        sys.exit("bootstraps: " + "; ".join(bad))


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
