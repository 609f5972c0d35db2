"""A frozen set of small numbers: a hundred thousand of them in a few dozen KB, and as cheap to go on from as a dict.

4,096 numbers to a piece, one bit for each; what follows from a set shares with it all pieces but one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_PIECE = 4096


@dataclass(frozen=True, slots=True)
class Ordinals:
    """Numbers from 0 on."""

    pieces: Mapping[int, int] = field(default_factory=dict)
    """Bits by piece; a piece without any isn't here."""

    def __contains__(self, number: int) -> bool:
        """Whether the number is in the set."""
        return bool(self.pieces.get(number // _PIECE, 0) >> number % _PIECE & 1)

    def with_(self, number: int) -> "Ordinals":
        """The same, and this number."""
        piece = number // _PIECE
        bits = self.pieces.get(piece, 0) | 1 << number % _PIECE
        return Ordinals({**self.pieces, piece: bits})

    def without(self, number: int) -> "Ordinals":
        """The same but for this number."""
        if number not in self:
            return self
        piece = number // _PIECE
        bits = self.pieces[piece] & ~(1 << number % _PIECE)
        if bits:
            return Ordinals({**self.pieces, piece: bits})
        return Ordinals({at: other for at, other in self.pieces.items() if at != piece})


NONE = Ordinals()
"""The empty set."""
