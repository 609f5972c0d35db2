"""The pictures in docs/ show the machines as they are."""

from pathlib import Path

import pytest

from waypost.testing.diagrams import pages

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", sorted(pages()))
def test_a_committed_diagram_is_the_one_that_the_code_draws(page: str) -> None:
    """A change of a state machine shows in the review as a changed picture."""
    drawn = pages()[page]
    assert (DOCS / page).read_text(encoding="utf-8") == drawn, "draw anew: python -m waypost.testing.diagrams docs"
