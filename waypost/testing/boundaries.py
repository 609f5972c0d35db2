"""The boundaries between commits that a play has met so far, whichever of its hosts was there, in one file.

A boundary is what a commit says, numbers of attempts and generations left aside, and what the last other commit of the
same run said: the start of a step is another one where it is a retry, but not where somebody has died on the way to its
body. Each is new only once, so a host that dies at every new one gets on from life to life.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_SUBJECT = re.compile(rb"\ncommitter [^\n]*\n(?:[a-z]+ [^\n]*\n(?: [^\n]*\n)*)*\n([^\n]+)")
_RUN = re.compile(r"\b(run_\d+)_[0-9a-f]{16}\b")
_COUNTED = re.compile(r"\b(generation|attempt) \d+")
_AFTER = ", after "
_OF_A_RESTART = ("begin generation", "append RunResumed", "count the end of generation")
"""What such commits say comes between any two others where somebody has died, so nothing is new after them."""
_PASSED, _AGAIN, _STRUCK = "passed", "again", "struck"


def named(subject: str) -> str:
    """What a commit says, as it says it in every play."""
    return _COUNTED.sub(r"\1", _RUN.sub(r"\1", subject))


def subject_of(boundary: str) -> str:
    """What the commit says that it comes after."""
    return boundary.partition(_AFTER)[0]


class Boundaries:
    """Says after a flush whether it is time to strike: at the ``every``-th new boundary since somebody was struck."""

    def __init__(self, file: Path, every: int) -> None:
        self._file, self._every = file, every
        self._last: dict[str, str] = {}
        """By run, what its last commit said."""
        self._known: set[str] = set()
        self._new: list[str] = []
        self._since = 0
        """New ones since somebody was struck."""
        for mark, boundary in _read(file):
            self._take(mark, boundary)

    def reached(self, brought: bytes) -> bool:
        """Note what a flush has brought; whether to strike now."""
        self._new = []
        for raw in _SUBJECT.findall(brought):
            subject = named(raw.decode())
            last = self._last.get(_run(subject), "nothing")
            if subject != last:
                boundary = subject if subject.startswith(_OF_A_RESTART) else f"{subject}{_AFTER}{last}"
                self._note(_AGAIN if boundary in self._known else _PASSED, boundary)
        return bool(self._new) and self._since >= self._every

    def struck(self) -> None:
        """Note that somebody dies at what was reached."""
        for boundary in self._new:
            self._note(_STRUCK, boundary)

    def _note(self, mark: str, boundary: str) -> None:
        self._take(mark, boundary)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{mark}\t{boundary}\n")

    def _take(self, mark: str, boundary: str) -> None:
        if mark == _STRUCK:
            self._since = 0
            return
        if mark == _PASSED:
            self._known.add(boundary)
            self._new.append(boundary)
            self._since += 1
        subject, after, _ = boundary.partition(_AFTER)
        if after:
            self._last[_run(subject)] = subject


def met(file: Path) -> dict[str, bool]:
    """By boundary that was passed, whether somebody died there."""
    struck = {boundary for mark, boundary in _read(file) if mark == _STRUCK}
    return {boundary: boundary in struck for mark, boundary in _read(file) if mark == _PASSED}


def _read(file: Path) -> Iterator[tuple[str, str]]:
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        mark, _, boundary = line.partition("\t")
        yield mark, boundary


def _run(words: str) -> str:
    """The first run that is named; those of whole deployments are one, too."""
    found = re.search(r"\brun_\d+\b", words.partition(_AFTER)[0])
    return found[0] if found else ""
