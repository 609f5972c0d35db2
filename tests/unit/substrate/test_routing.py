"""Which run a mail belongs to: every row of storage §5."""

import pytest

from substrate.routing import Route, Runs, Standing, Threads, route
from waypost.model.ids import RunId, message_key

OLD, NEW, OTHER = RunId("run_1_0000000000000001"), RunId("run_2_0000000000000002"), RunId("run_3_0000000000000003")


def threads(**ids: RunId) -> Threads:
    made = Threads()
    for name, run in ids.items():
        made.appears(run, follows=None)
        made.belongs(message_key(f"<{name}>".encode()), run)
    return made


def standing(run: RunId) -> Standing:
    return "ended" if run == OLD else "live"


@pytest.mark.parametrize(
    ("runs", "candidates", "expected"),
    [
        ("thread", (), Route(None)),
        ("thread", (b"<unknown>",), Route(None)),
        ("thread", (b"<new>", b"<other>"), Route(NEW)),
        ("thread", (b"<unknown>", b"<other>"), Route(OTHER)),
        ("thread", (b"<old>", b"<other>"), Route(None, OLD)),
        ("message", (b"<new>",), Route(None)),
        ("deployment", (), Route(OTHER)),
    ],
)
def test_the_first_hit_decides(runs: Runs, candidates: tuple[bytes, ...], expected: Route) -> None:
    """In-Reply-To first, then References from the last: the first known id wins, also when its run has ended."""
    assert route(runs, candidates, threads(old=OLD, new=NEW, other=OTHER), standing) == expected


def test_a_thread_goes_on_in_the_newest_of_its_runs() -> None:
    """Two replies to a finished run that arrive together must become one new run, not two."""
    known = threads(old=OLD)
    known.appears(NEW, follows=OLD)
    assert route("thread", (b"<old>",), known, standing) == Route(NEW)
    known.appears(OTHER, follows=NEW)
    assert known.find(b"<old>") == OTHER
    assert known.before(OTHER) == NEW


def test_a_deployment_with_one_run_starts_the_next_when_that_has_ended() -> None:
    """`runs="deployment"`: one run for the deployment's life; a mail after its end begins one that names it."""
    assert route("deployment", (), threads(), standing) == Route(None)
    assert route("deployment", (), threads(old=OLD), standing) == Route(None, OLD)


def test_a_rejected_mail_starts_no_thread() -> None:
    """Ids count that are queued, taken up or sent; a rejected mail is none of these."""
    known = threads(new=NEW)
    known.forget(message_key(b"<new>"))
    assert known.find(b"<new>") is None
