"""What a real child prints of what it was trusted with doesn't reach its log, nor the words that its end is told in."""

from collections.abc import Iterator

import pytest

from actors.messages import ChildReady, Send
from ipc.deliveries import CredentialsUpdated
from waypost.testing.child_stage import ChildStage
from waypost.testing.childhood import CODE
from waypost.testing.scripted_child import scripted

VALUE = "ghp_0123456789abcdef"


@pytest.fixture
def stage() -> Iterator[ChildStage]:
    """A stage, which is empty again afterwards."""
    stage = ChildStage()
    yield stage
    stage.close()


def test_a_value_that_a_child_prints_in_two_pieces_reaches_no_log(stage: ChildStage) -> None:
    """A step that prints a header for debugging; the host hides it, so that a tool that the step starts can't, either.

    The second half comes only when the child is asked to leave: a first half is held back so long, and no longer.
    """
    code = f"""
import os, sys
child.ready({CODE!r})
value = child.hear().materials["github"]
os.write(2, b"Authorization: " + value[:9])
os.write(1, b"half\\n")
child.hear()
os.write(2, value[9:] + b"\\nlast words: " + value[:4])
sys.exit(3)
"""
    ref = stage.child(scripted(code))
    stage.parent.next(ChildReady)
    given = CredentialsUpdated(serial=1, bindings={}, materials={"github": VALUE.encode()})
    ref.tell(Send(given))
    printed = stage.printed(until=b"half\n")
    ref.tell(Send(given))
    exited = stage.exit().reason
    printed += stage.printed(until=b"generation")
    assert b"Authorization: [secret github]\nlast words: ghp_" in printed.replace(b"half\n", b"")
    assert exited.stderr == ("Authorization: [secret github]", "last words: ghp_")
    assert exited.status == 3
