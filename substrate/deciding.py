"""Decisions and answers beside damage: what rests on a file that can't be read is refused, and the others go on.

A damaged run is nobody else's fault. Whoever asks for it is told so each time, as ``verify`` and ``fsck`` will tell;
new mail is withheld, because its sender should try again when somebody has looked.
"""

import logging
from typing import TypeAlias

from substrate import questions
from substrate.errors import Damaged
from substrate.indexing.index import Index
from substrate.messages import Enqueue, Operation, Question, Refused, Withheld
from substrate.operations import Context, Decided, decide
from substrate.questions import Value

_log = logging.getLogger(__name__)
_HINT = "`waypost fsck` looks through the repository; the last backup has what was there before"

Verdict: TypeAlias = Decided | Withheld


def decided(index: Index, operation: Operation, context: Context) -> Verdict:
    """What an operation comes to; Refused with code ``damaged``, or Withheld, where something can't be read for it."""
    try:
        return decide(index, operation, context)
    except Damaged as failure:
        _log.error("%s can't be carried out: %s", type(operation).__name__, failure.message)
        if isinstance(operation, Enqueue):
            return Withheld(failure.message)
        return Refused("damaged", failure.message, _HINT)


def told(index: Index, question: Question) -> Value | Refused:
    """The answer to a question; Refused with code ``damaged`` where something can't be read for it."""
    try:
        return questions.answer(index, question)
    except Damaged as failure:
        _log.error("%s can't be answered: %s", type(question).__name__, failure.message)
        return Refused("damaged", failure.message, _HINT)
