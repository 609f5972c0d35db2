"""``waypost top``: how each deployment is, at a glance; once, or again and again while somebody looks.

At a terminal a line never is wider than that; into a pipe each is as wide as it needs to be, and nothing in it steers a
terminal.
"""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import FrameType

import msgspec

from waypost.cli import words
from waypost.cli.client import Client
from waypost.cli.fitting import cut, padded, width
from waypost.cli.output import err, harmless, out
from waypost.cli.place import existing
from waypost.host.answers.top import Top, TopRow
from waypost.host.exits import Exit
from waypost.host.reading.deployment_why import urgency

HEADINGS = ("deployment", "gen", "state", "waits on", "mail", "p99", "left", "next")
_MOST = (20, 6, 13, 0, 6, 6, 4, 6)
"""Columns of each column at a terminal; what is left over goes to the one with 0, and has ``_LEAST`` at least."""
_LEAST = 8
_RIGHT = frozenset((1, 4, 5, 6, 7))
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_OPEN, _CLOSE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"


def top(data: str | None, *, once: bool, every: float, as_json: bool) -> Exit:
    """Ask, and show; at a terminal again every so many seconds, until Ctrl-C. Raises NoHost, Said, Unanswered."""
    client = Client(existing(data).socket)
    if as_json:
        out(*(msgspec.json.encode(row).decode() for row in client.get(Top, "top").deployments))
    elif once or not sys.stdout.isatty() or os.environ.get("TERM") in {None, "", "dumb"}:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        answer = client.get(Top, "top")
        out(*lines(answer, columns))
        err(*unobserved(answer))
    else:
        _live(client, every)
    return Exit.OK


def _live(client: Client, every: float) -> None:
    """Draw over and over; whatever ends it, the terminal is left as it was."""
    pause = threading.Event()  # nobody sets it: a wait that Ctrl-C ends
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _told_to_end)
    sys.stdout.write(_OPEN)
    try:
        while True:
            answer = client.get(Top, "top")
            size = shutil.get_terminal_size()
            drawn = [*unobserved(answer), *lines(answer, size.columns)]
            drawn = fitted(drawn, size.columns, size.lines)
            sys.stdout.write(_HOME + "".join(f"{line}{_REST_OF_LINE}\r\n" for line in drawn) + _REST)
            sys.stdout.flush()
            pause.wait(every)
    except KeyboardInterrupt:
        return
    finally:
        sys.stdout.write(_CLOSE)
        sys.stdout.flush()


def _told_to_end(number: int, _frame: FrameType | None) -> None:
    """Unwind, for the terminal's sake; the status is what a shell has for the signal."""
    raise SystemExit(128 + number)


def fitted(drawn: list[str], columns: int, rows: int) -> list[str]:
    """As much as a screen of so many rows takes, whose last one stays empty; how many lines more there are is said."""
    room = max(1, rows - 1)
    if len(drawn) <= room:
        return drawn
    shown = drawn[: room - 1]
    return [*shown, cut(f"{len(drawn) - len(shown)} more: waypost top --once", columns)]


def lines(answer: Top, columns: int | None) -> Iterator[str]:
    """The table, with a line above it that sums it up; ``columns``: as wide as it may be, None for any width."""
    now = datetime.fromisoformat(answer.at)
    rows = [HEADINGS, *(_cells(row, now) for row in sorted(answer.deployments, key=_rank))]
    widths = _widths(rows, columns)
    summary = _summary(answer)
    yield summary if columns is None else cut(summary, columns)
    for cells in rows if answer.deployments else ():
        several = zip(cells, widths, strict=True)
        line = " ".join(padded(cell, room, right=at in _RIGHT) for at, (cell, room) in enumerate(several)).rstrip()
        yield line if columns is None else cut(line, columns)


def unobserved(answer: Top) -> Iterator[str]:
    """What to say where nobody counts."""
    if not answer.observed:
        yield "the host's observer has ended: what runs wait on, mail and flushes aren't known until its next start"


def _rank(row: TopRow) -> tuple[int, str]:
    """As `waypost why` has them: those first that need somebody."""
    return urgency(row), row.deployment


def _summary(answer: Top) -> str:
    rows = answer.deployments
    states: dict[str, int] = {}
    for row in rows:
        states[row.state] = states.get(row.state, 0) + 1
    told = ", ".join(
        f"{count} {state}" for state, count in sorted(states.items(), key=lambda each: (-each[1], each[0]))
    )
    live, queued = sum(row.live or 0 for row in rows), sum(row.queued or 0 for row in rows)
    counts = f"{words.count(live, 'live run')}, {words.count(queued, 'mail')}"
    return harmless(f"{words.clock(answer.at)}  {words.count(len(rows), 'deployment')}: {told or 'none'}; {counts}")


def _cells(row: TopRow, now: datetime) -> tuple[str, ...]:
    texts = (
        row.deployment,
        str(row.generation or "-"),
        row.code if row.code == "crash-looping" or (row.state == "running" and row.code) else row.state,
        _waits(row.waiting),
        _number(row.queued),
        "-" if row.flush_p99 is None else duration(row.flush_p99),
        str(row.crash_budget),
        "-" if row.deadline is None else _until(datetime.fromisoformat(row.deadline), now),
    )
    return tuple(map(harmless, texts))


def _waits(waiting: dict[str, int] | None) -> str:
    if waiting is None:
        return "?"
    return ", ".join(f"{count} {kind}" for kind, count in waiting.items()) or "-"


def _number(number: int | None) -> str:
    return "?" if number is None else str(number)


def _until(moment: datetime, now: datetime) -> str:
    seconds = (moment - now).total_seconds()
    return "now" if seconds <= 0 else duration(seconds)


def duration(seconds: float) -> str:
    """A time in at most five characters: ``0.8ms``, ``12ms``, ``3.4s``, ``45s``, ``12m``, ``5h``, ``90d``."""
    milliseconds = seconds * 1000
    if seconds < 1:
        return f"{milliseconds:.1f}ms" if milliseconds < 10 else f"{min(milliseconds, 999):.0f}ms"  # noqa: PLR2004 - two digits
    if seconds < _MINUTE:
        return f"{seconds:.1f}s" if seconds < 10 else f"{min(seconds, 59):.0f}s"  # noqa: PLR2004 - the same
    for unit, length, above in (("m", _MINUTE, _HOUR), ("h", _HOUR, _DAY)):
        if seconds < above:
            return f"{int(seconds // length)}{unit}"
    return f"{int(seconds // _DAY)}d"


def _widths(rows: Sequence[Sequence[str]], columns: int | None) -> list[int]:
    needed = [max(map(width, column)) for column in zip(*rows, strict=True)]
    if columns is None:
        return needed
    chosen = [min(need, most) if most else need for need, most in zip(needed, _MOST, strict=True)]
    flexible = _MOST.index(0)
    others = sum(room for at, room in enumerate(chosen) if at != flexible) + len(chosen) - 1
    chosen[flexible] = min(chosen[flexible], max(_LEAST, columns - others))
    spare = columns - sum(chosen) - (len(chosen) - 1)
    if spare > 0:  # long names first
        chosen[0] = min(needed[0], chosen[0] + spare)
    return chosen
