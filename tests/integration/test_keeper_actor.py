"""The keeper as an actor: real threads and files, listeners in place of dispatch and supervisor."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from actors.credentials import AssembleCredentials, Assembled, DeliverCredentials, DeliverSources, NotAssembled
from substrate.messages import Done, Outcome
from waypost.acting import Ref
from waypost.host.credentials.errors import BadCredentials
from waypost.host.credentials.file import read
from waypost.host.credentials.keeper import KeeperActor
from waypost.host.credentials.messages import ListCredentials, Reload
from waypost.host.credentials.providers import Surroundings
from waypost.model.ids import Deployment
from waypost.shell import request, tell
from waypost.testing.clock import ManualClock
from waypost.testing.listener import Listener

LISTED = """
[credentials.github]
file = "github"
[[sources]]
id = "main"
provider = "p"
model = "m"
"""


class Stage:
    """A keeper, and who asks it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "credentials.toml"
        self.file.write_text(LISTED)
        self.secret = folder / "github"
        self.secret.write_text("planted-1")
        self.dispatch, self.supervisor = Listener(), Listener()
        around = Surroundings(environment={}, folder=folder)
        self.keeper: Ref = KeeperActor.start(self.file, read(self.file), around, clock=ManualClock())

    def wanted(self) -> Assembled | NotAssembled:
        """What dispatch is answered."""
        asked = AssembleCredentials(
            correlation=1,
            deployment=Deployment("orders"),
            bindings={"pay": ("github",)},
            reply_to=self.dispatch.ref,
            supervisor=self.supervisor.ref,
        )
        tell(self.keeper, asked)
        answer: Assembled | NotAssembled = self.dispatch.next((Assembled, NotAssembled))
        return answer

    def close(self) -> None:
        """End all of it."""
        self.keeper.stop(timeout=5.0)
        self.dispatch.stop()
        self.supervisor.stop()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """One for each test."""
    made = Stage(tmp_path)
    yield made
    made.close()


def test_dispatch_is_given_the_values_and_a_reload_goes_to_the_supervisor(stage: Stage) -> None:
    """By threads that read, and by messages that nobody asks an actor for."""
    first = stage.wanted()
    assert isinstance(first, Assembled)
    assert first.credentials.materials == {"github": b"planted-1"}
    assert first.sources is not None
    stage.secret.write_text("planted-2")
    stage.supervisor.drain()
    # Nobody answers for the supervisor but this thread, which waits for the reload: it is asked from another one.
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(request, stage.keeper, Reload({"orders": stage.supervisor.ref}), timeout=20)
        sources: DeliverSources = stage.supervisor.next(DeliverSources)
        given: DeliverCredentials = stage.supervisor.next(DeliverCredentials)
        assert given.credentials.materials == {"github": b"planted-2"}
        assert [each.id for each in sources.sources.sources] == ["main"]
        tell(given.reply_to, Outcome(given.correlation, Done(0, value=True)))
        assert [(each.deployment, each.state) for each in done.result().delivered] == [("orders", "delivered")]


def test_what_a_deployment_would_get_that_has_just_fallen_asleep_is_kept_for_its_next_process(stage: Stage) -> None:
    """That one asks for it as any does; whoever reloads isn't left waiting, and has nothing to see to."""
    stage.wanted()
    stage.supervisor.stop()
    done = request(stage.keeper, Reload({"orders": stage.supervisor.ref}), timeout=20)
    assert [(each.state, each.why) for each in done.delivered] == [("kept", "")]


def test_a_file_that_was_spoiled_is_told_to_whoever_reloads(stage: Stage) -> None:
    """As an exception of its own; the keeper goes on."""
    stage.file.write_text("[")
    with pytest.raises(BadCredentials):
        request(stage.keeper, Reload({}), timeout=20)
    assert isinstance(stage.wanted(), Assembled)


def test_a_reading_that_fails_in_a_way_that_nobody_thought_of_is_an_answer_without_its_words(tmp_path: Path) -> None:
    """Who waits must be answered; the text of such an error may hold anything."""
    stage = Stage(tmp_path)
    stage.keeper.stop(timeout=5.0)
    around = Surroundings(environment={}, folder=cast("Any", "no path at all: hunter2"))
    stage.keeper = KeeperActor.start(stage.file, read(stage.file), around, clock=ManualClock())
    answer = stage.wanted()
    assert isinstance(answer, NotAssembled)
    assert answer.why == "the secret github can't be had: reading it failed (TypeError)"
    (shown,) = request(stage.keeper, ListCredentials(), timeout=20).credentials
    assert shown.state == "failing"
    stage.close()
