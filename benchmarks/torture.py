"""Everything against everything, for as long as you like: senders, kills, a full disk, stock git and readers at once.

    python -m benchmarks.torture [--seconds N] [--seed S] [--deployments N] [--folder DIR]

A real host takes mail from three senders, while it and its child are killed at random, its disk is full now and then,
after some of its deaths what a power cut would have left is looked at,
git collects, repacks, clones and checks its repositories, an operator drains, recycles, signals and cancels, and
readers look at it from outside. Then it may come to its
end in peace, and what lies on the disk is held against all that was promised. Exit 0: nothing was broken.
"""

import argparse
import random
import shutil
import tempfile
from pathlib import Path

from waypost.testing.torture import Torture
from waypost.testing.torture_check import broken


def main() -> int:
    """Torture, check, and say what was broken; the folder stays if anything was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, metavar="N")
    parser.add_argument("--seed", type=int, default=None, metavar="S")
    parser.add_argument("--deployments", type=int, default=1, metavar="N")
    parser.add_argument("--folder", metavar="DIR", help="where to write; must be on a real disk")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="torture-", dir=options.folder))
    print(f"seed {seed}, {options.seconds:g} s, in {folder}", flush=True)
    world = Torture(folder, seed, options.deployments)
    tally = world.run(options.seconds, lambda line: print(line, flush=True))
    print(f"at its end: {tally}", flush=True)
    found = broken(world)
    print(*found or ["nothing was broken"], sep="\n")
    if not found:
        shutil.rmtree(folder)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
