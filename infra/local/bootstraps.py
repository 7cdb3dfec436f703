"""Lists what `sam build` made, as Lambda takes it, and refuses what Amazon Linux 2023 would not start."""

import re
import sys
import zlib
from pathlib import Path

BUILT = Path(".aws-sam/build")
# The C library of provided.al2023.
GLIBC = (2, 34)
# Lambda's limit for a zip file that is uploaded.
ZIPPED_MB = 50


def zipped_mb(binary):
    """As `sam package` packs it, but for a hundred bytes of names."""
    return len(zlib.compress(binary, level=6)) / 1_000_000


def glibc(binary):
    """The newest version that a binary asks for; (0, 0) where it asks for none."""
    versions = {tuple(int(part) for part in version.split(b".")) for version in re.findall(rb"GLIBC_(\d+\.\d+)", binary)}
    return max(versions, default=(0, 0))


def main():
    bootstraps = sorted(BUILT.glob("*/bootstrap"))
    if not bootstraps:
        sys.exit("bootstraps: nothing is built")
    bad = []
    print(f"{'function':<12}{'MB':>8}{'zipped MB':>11}  glibc")
    for path in bootstraps:
        binary = path.read_bytes()
        version, zipped = glibc(binary), zipped_mb(binary)
        print(f"{path.parent.name:<12}{len(binary) / 1_000_000:>8.1f}{zipped:>11.2f}  {version[0]}.{version[1]}")
        if version > GLIBC or zipped > ZIPPED_MB:
            bad.append(path.parent.name)
    if bad:
        sys.exit(f"bootstraps: Lambda would not start {', '.join(bad)}")


if __name__ == "__main__":
    main()
