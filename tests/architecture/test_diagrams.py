"""The pictures in docs/ show the machines as they are."""

from pathlib import Path

import pytest

from waypost.testing.diagrams import pages

PAGES = pages()
"""Drawn once: it is much work."""
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_committed_diagram_is_the_one_that_the_code_draws(page: str) -> None:
    """A change of a state machine shows in the review as a changed picture."""
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page], (
        "draw anew: python -m waypost.testing.diagrams docs"
    )
