"""A host whose observer fails, or is stopped, at any moment: its runs don't notice, and whoever looks is told."""

from pathlib import Path
from typing import Any

import pykka
import pytest
from prometheus_client.parser import text_string_to_metric_families

from waypost.host.answers.top import Top
from waypost.host.watching import observer as module
from waypost.host.watching.observer import ObserverActor
from waypost.host.watching.observer_logic import advance
from waypost.testing.host_here import HostHere

MAIL = b"From: a@example.com\r\nSubject: x\r\nMessage-ID: <%d@x>\r\n\r\nhello\r\n"


def observed(counting: Path, data: Path) -> list[str]:
    """Two mails' whole way on a host in this process, and what is told of it afterwards, in short."""
    with HostHere(counting, data=data) as host:
        client = host.client
        for number in (1, 2):
            host.send("counting@example.com", MAIL % number)
            host.wait_for("completed: 6")
        seen = client.get(Top, "top")
        page = {family.name: family for family in text_string_to_metric_families(client.text("metrics"))}
        row = seen.deployments[0]
        up = page["waypost_observer_up"].samples[0].value
        assert up == seen.observed == bool(pykka.ActorRegistry.get_by_class(ObserverActor))
        assert seen.observed or row.queued is None
        return [row.state, "observed" if seen.observed else "not observed"]


@pytest.mark.torture
@pytest.mark.parametrize("number", [1, 3, 6, 9])
def test_a_host_works_on_when_its_observer_fails_at_a_message(
    tmp_path: Path, counting: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    """Whichever it is: a mark, a count, the question of somebody who looks."""
    count = 0

    def failing(state: Any, message: Any, now: Any) -> Any:
        nonlocal count
        count += 1
        if count == number:
            raise SystemExit(3)
        return advance(state, message, now)

    monkeypatch.setattr(module, "advance", failing)
    assert observed(counting, tmp_path) == ["running", "observed"]
    assert caplog.text.count("observer failed") == 1
    assert caplog.text.count("the observer has failed; another one takes its place") == 1


@pytest.mark.torture
def test_a_host_works_on_when_no_observer_can_stand_what_it_hears(
    tmp_path: Path, counting: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then nobody counts any more, and whoever looks is told so."""

    def failing(state: Any, message: Any, now: Any) -> Any:
        raise SystemExit(3)

    monkeypatch.setattr(module, "advance", failing)
    assert observed(counting, tmp_path) == ["running", "not observed"]
    assert caplog.text.count("the host goes on without it") == 1


@pytest.mark.torture
def test_a_host_that_is_observed_says_so(tmp_path: Path, counting: Path) -> None:
    """The same without a failure."""
    assert observed(counting, tmp_path) == ["running", "observed"]
