"""Damaged files of the zone database: refused before Python's reader, which they can end the process by."""

import importlib.resources
import struct
import subprocess
import sys

import pytest

from waypost.model import zones
from waypost.model.tzif import LARGEST, whole

BERLIN = importlib.resources.files("tzdata.zoneinfo.Europe").joinpath("Berlin").read_bytes()
HEAD = BERLIN.index(b"TZif", 4)
UT, STANDARD, LEAPS, TIMES, TYPES, LETTERS = struct.unpack_from(">6I", BERLIN, HEAD + 20)
DATA = HEAD + 44
INDICES = DATA + TIMES * 8
KINDS = INDICES + TIMES
NAMES = KINDS + TYPES * 6
END = BERLIN.rindex(b"\n", 0, -1)


def put(at: int, *bytes_: int) -> bytes:
    """Berlin's file with these bytes at a place: as long as it was."""
    return BERLIN[:at] + bytes(bytes_) + BERLIN[at + len(bytes_) :]


def footer(text: bytes) -> bytes:
    """Berlin's file with another last line."""
    return BERLIN[:END] + b"\n" + text + b"\n"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(put(HEAD + 4, ord("1")), id="an unknown version"),
        pytest.param(put(HEAD + 23, 1), id="indicators for some local times only"),
        pytest.param(put(HEAD + 36, 0, 0, 0, 0), id="no local time"),
        pytest.param(put(HEAD + 32, 255, 255, 255, 255), id="more instants than bytes"),
        pytest.param(put(DATA + 8, 0x7F), id="an instant that is later than the next"),
        pytest.param(put(DATA, 0x80, 0, 0, 0, 0, 0, 0, 0), id="an instant before the Big Bang"),
        pytest.param(put(INDICES + 3, TYPES), id="an index past the local times"),
        pytest.param(put(KINDS, 0x7F), id="centuries from UTC"),
        pytest.param(put(KINDS + 4, 2), id="neither summer nor not"),
        pytest.param(put(KINDS + 5, LETTERS), id="a name past the letters"),
        pytest.param(put(NAMES + LETTERS - 1, ord("x")), id="a name without an end"),
        pytest.param(put(NAMES, 0xFF), id="a name that isn't ASCII"),
        pytest.param(footer(b"CET-1CEST,M3.5.0"), id="summer that never ends"),
        pytest.param(footer(b"CET-1CEST,M13.5.0,M10.5.0/3"), id="a thirteenth month"),
        pytest.param(footer(b"CET-1CEST,M3.5.0,J366"), id="a day past the year"),
        pytest.param(footer(b"CET-25"), id="more than a day from UTC"),
        pytest.param(footer(b"CET-24"), id="a day from UTC, by the rules"),
        pytest.param(footer(b"CET0CEST-24,M3.5.0,M10.5.0"), id="summer time a day from UTC"),
        pytest.param(footer(b"CET-23CEST,M3.5.0,M10.5.0"), id="summer time an hour ahead, and so a day from UTC"),
        pytest.param(footer(b"CET-1CEST,M3.5.0/168,M10.5.0"), id="an hour past the week"),
        pytest.param(footer(b"C\0T-1"), id="a zero byte in the rules"),
        pytest.param(footer(b"<" + b"9" * 10_000), id="a name of ten thousand letters"),
        pytest.param(BERLIN + b"\n", id="a line too many"),
        pytest.param(footer(b" " * LARGEST), id="larger than any"),
    ],
)
def test_a_file_that_leads_its_reader_astray_is_none(raw: bytes) -> None:
    """Its length is right, so that nothing else would tell: counts, indices, instants and rules must hold, too."""
    assert whole(BERLIN)
    assert not whole(raw)


def test_summer_time_that_nothing_tells_the_saving_of_is_none() -> None:
    """Where the last change is to it, Python's reader looks for a change behind that, and reads what isn't its own."""
    last_but_one = INDICES + TIMES - 2
    untold = bytearray(put(last_but_one, 1, 0))  # from summer time to the first local time,
    untold[KINDS + 4] = 1  # which is summer time as well
    assert not whole(bytes(untold))
    untold[last_but_one] = 2  # from standard time: the difference is told
    assert whole(bytes(untold))
    untold[last_but_one], untold[INDICES + 4 : INDICES + 6] = 1, bytes((0, 2))  # or at an earlier change, from behind
    assert whole(bytes(untold))


@pytest.mark.parametrize(
    "rules",
    [
        b"",
        b"UTC0",
        b"<+0330>-3:30",
        b"EST5EDT,0/0,J365/25",
        b"IST-2IDT,M3.4.4/26,M10.5.0",
        b"<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
    ],
)
def test_rules_of_every_form_are_taken(rules: bytes) -> None:
    """No zone may be lost to a check that is narrower than what the database may say."""
    assert whole(footer(rules))


def test_a_file_counts_only_where_it_has_its_end() -> None:
    """Python's own reader reads for ever where the last line is cut: so would a deployment's writer."""
    assert [cut for cut in range(len(BERLIN)) if whole(BERLIN[:cut])] == []
    assert not whole(BERLIN.replace(b"TZif", b"tzif", 1))


def test_every_file_of_the_database_is_whole() -> None:
    """As it is installed; the next release may use what this one doesn't, and the test of forms above is for that."""
    for name in zones.names():
        *folders, last = name.split("/")
        raw = importlib.resources.files(".".join(("tzdata", "zoneinfo", *folders))).joinpath(last).read_bytes()
        assert whole(raw), name


READ = """
import io, random, sys
from datetime import datetime
from zoneinfo import ZoneInfo
from waypost.model import zones
from waypost.model.schedule import next_after, schedule
from waypost.model.tzif import whole

berlin, chance, taken = sys.stdin.buffer.read(), random.Random(5), 0
made = schedule("30 2 * * *", tz="Europe/Berlin", repeat="both")
for _ in range(6000):
    raw = bytearray(berlin)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(berlin.index(b"TZif", 4), len(raw))
        raw[at] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
    if not whole(bytes(raw)):
        continue
    taken += 1
    zone = ZoneInfo.from_file(io.BytesIO(bytes(raw)), key="x")
    for second in (-(10**10), -1, 0, 10**9, 1_790_000_000, 10**11):
        shown = datetime.fromtimestamp(second, zone)
        shown.utcoffset(), shown.tzname(), shown.dst(), shown.replace(fold=1).utcoffset()
    zones.zone = lambda name: zone
    if taken % 20 == 0:
        at = next_after(made, 1_790_000_000_000)
        assert at is None or at > 1_790_000_000_000
print(taken)
"""


def test_whatever_passes_can_be_read_and_reckoned_with() -> None:
    """By the reader as it is, in a process of its own: what ends a process can't be caught in it."""
    done = subprocess.run([sys.executable, "-c", READ], input=BERLIN, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) > 100
