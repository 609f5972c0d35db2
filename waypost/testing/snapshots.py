"""What a power cut would leave at chosen flushes of a play that goes on: copies, each of one moment.

Copied is the folder that the data directory lies in, and of each journal only as far as a sync has returned. What lies
beside the data directory is the outside: as it is when the disk has hung for a while, in the middle of the flush. So
one play has as many power cuts as it has flushes, and whoever doesn't wait for the disk is seen in the copy.
"""

import shutil
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from waypost.testing.disks import power_cut

HANG = 0.1
"""Seconds that the disk hangs before the copy: what doesn't wait for it gets out meanwhile."""
_MOMENT = "moment"


class Snapshots:
    """Copies of ``scene`` in ``folder``, named by number of flush; ``flushes`` empty: of each."""

    def __init__(self, scene: Path, folder: Path, flushes: Collection[int] = (), texts: Collection[bytes] = ()) -> None:
        self._scene, self._folder = scene, folder
        self._flushes, self._texts = flushes, list(texts)
        self._each = not flushes and not texts

    def before(self, flush: int, brought: bytes, record: Path) -> None:
        """Copy, where this flush is a chosen one: by number, or as the first that brings one of the texts."""
        texts = [text for text in self._texts if text in brought]
        if not (self._each or flush in self._flushes or texts):
            return
        self._texts = [text for text in self._texts if text not in texts]
        threading.Event().wait(HANG)
        target, now = self._folder / f"{flush}", time.monotonic()
        shutil.copytree(
            self._scene,
            target,
            ignore=shutil.ignore_patterns("host.sock", "*.git"),
            copy_function=_copy_what_is_there,
            symlinks=True,
        )
        for repository in self._scene.glob("*/repos/*.git"):
            power_cut(repository, record, target / repository.relative_to(self._scene))
        (target / _MOMENT).write_text(f"{now!r}", encoding="utf-8")


def taken(folder: Path) -> list[tuple[int, float, Path]]:
    """The copies: of which flush, when (``time.monotonic``), and the folder."""
    moments = ((int(file.parent.name), file) for file in folder.glob(f"*/{_MOMENT}"))
    return sorted((flush, float(file.read_text(encoding="utf-8")), file.parent) for flush, file in moments)


def _copy_what_is_there(source: str, target: str) -> str:
    with suppress(FileNotFoundError):  # somebody has finished with it meanwhile
        shutil.copy2(source, target)
    return target
