"""What an answer of ours says it answers: the header fields by which a reader's program finds the thread."""

import pytest

from substrate.operations.answering import THREAD_DEPTH, answering
from waypost.model import mail
from waypost.testing.desk import message


def thread(count: int) -> list[str]:
    return [f"<t{number}@x>" for number in range(count)]


@pytest.mark.parametrize("earlier", [0, 1, THREAD_DEPTH - 2, THREAD_DEPTH - 1, THREAD_DEPTH, 100])
def test_a_long_thread_is_named_by_its_first_mail_and_its_newest(earlier: int) -> None:
    """A header may not grow with every reply; the first id is what programs thread by when all else is gone."""
    ids = [*thread(earlier), "<m1@x>"]
    answered, references = answering(mail.scan(message("m1@x", references=" ".join(thread(earlier)))))
    assert answered == "<m1@x>"
    assert len(references) == min(len(ids), THREAD_DEPTH)
    assert (references[0], references[-1]) == (ids[0], "<m1@x>")
    assert references[1:] == ids[len(ids) - len(references) + 1 :]


@pytest.mark.parametrize(
    "unfit", [b"", b"no angles", b"<a b@x>", b"<\xff@x>", "<ä@x>".encode(), b"<" + b"x" * 900 + b"@x>"]
)
def test_an_id_that_our_header_could_not_carry_is_left_out_and_the_rest_stands(unfit: bytes) -> None:
    """Whoever wrote it can't keep our answer from being written, nor put anything of theirs into its header."""
    gist = mail.scan(message("m1@x", references="<t0@x>").replace(b"<m1@x>", unfit))
    assert answering(gist) == (None, ["<t0@x>"])
