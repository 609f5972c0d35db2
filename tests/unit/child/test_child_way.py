"""A child's descriptors to its host: out of the way of code that takes low numbers, and watched all the same."""

import os
import socket
from collections.abc import Callable, Iterator

import pytest

from ipc.errors import ChannelTaken
from waypost.child.sending import Way


@pytest.fixture
def way() -> Iterator[tuple[Way, socket.socket]]:
    """One end of a channel, as a child has it, and the other end."""
    ours, theirs = socket.socketpair()
    lifted = Way.lifted(theirs.detach())
    with ours:
        yield lifted, ours
    try:
        os.close(lifted)
    except OSError:  # the test has closed it
        return


def test_it_goes_where_nobody_takes_a_descriptor_by_chance(way: tuple[Way, socket.socket]) -> None:
    """The number that it had is free, no program that a step starts inherits it, and it still leads to the host."""
    lifted, ours = way
    assert lifted >= 200
    assert not os.get_inheritable(lifted)
    lifted.check()
    os.write(lifted, b"ready")
    assert ours.recv(9) == b"ready"
    taken = os.open(os.devnull, os.O_RDONLY)
    os.close(taken)
    assert taken < lifted


def _replaced(lifted: Way) -> None:
    other = os.open(os.devnull, os.O_RDWR)
    os.dup2(other, lifted)
    os.close(other)


def _another_socket(lifted: Way) -> None:
    with socket.socket() as other:
        os.dup2(other.fileno(), lifted)


@pytest.mark.parametrize("misdeed", [os.close, _replaced, _another_socket])
def test_what_is_done_to_it_is_noticed_before_anything_is_written(
    way: tuple[Way, socket.socket], misdeed: Callable[[Way], None]
) -> None:
    """A write that nobody gets is answered by nobody, and the run would wait for that for ever."""
    lifted, _ = way
    misdeed(lifted)
    with pytest.raises(ChannelTaken, match=f"descriptor {int(lifted)}"):
        lifted.check()
