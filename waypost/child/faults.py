"""Exceptions across the durable border: to what is recorded, and back to what the workflow sees.

Total: an exception whose ``str`` raises, or whose text is no Unicode, is recorded all the same. What the workflow sees
is made from the record alone, live and in replay.
"""

from types import TracebackType
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from ipc.masking import LEFT_OUT
from waypost.authoring.errors import SecretRefused, StepError
from waypost.authoring.requests import StepSpec
from waypost.model.events import Fault
from waypost.model.values import Codec, ValueNotStorable

MESSAGE = 8_000
"""Characters of a message that are kept."""
TRACEBACK = 32_000
"""Characters of a traceback that are kept: its end, where the error was raised."""

_LINE = 1000
"""Characters of a name: what an event's ``Line`` holds."""
_OURS = __file__.removesuffix("child/faults.py")
_ARGS = Codec(list[Any])


def of_step(error: BaseException, spec: StepSpec) -> Fault:
    """What a step raised. ``args`` are recorded for the types that it declares, where they can be rebuilt."""
    args: Raw | UnsetType = UNSET
    if isinstance(error, spec.raises):
        args = _args(error, spec)
    return _fault(error, args=args, step=spec.name)


def of_run(error: BaseException) -> Fault:
    """What escaped a workflow. A StepError is shown as the step's own error, and names the step."""
    if isinstance(error, StepError):
        return Fault(
            type=_clean(error.type, _LINE),
            message=_clean(error.reason, MESSAGE),
            traceback=_clean(error.traceback, TRACEBACK, end=True),
            step=_clean(error.step, _LINE),
        )
    return _fault(error)


def rebuilt(fault: Fault, spec: StepSpec) -> Exception:
    """What the workflow sees of a recorded fault: a declared type, made anew from its args, or StepError."""
    declared = {kind.__name__: kind for kind in spec.raises}.get(fault.type)
    if declared is not None and fault.args is not UNSET:
        made = _make(declared, fault.args)
        if made is not None:
            return made
    return StepError(step=spec.name, type=fault.type, reason=fault.message, traceback=fault.traceback)


def is_answer(error: BaseException, spec: StepSpec) -> bool:
    """Whether trying again is pointless: the step declares this type, returned what can't be stored, or may not."""
    return isinstance(error, (*spec.raises, ValueNotStorable, SecretRefused))


def _fault(error: BaseException, *, args: Raw | UnsetType = UNSET, step: str = "") -> Fault:
    return Fault(
        type=_clean(type(error).__name__, _LINE),
        message=_clean(_text(error), MESSAGE),
        traceback=_traceback(error),
        args=args,
        step=step,
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as worse:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"(its message can't be shown: {type(worse).__name__})"


def _traceback(error: BaseException) -> str:
    import traceback  # where there is one

    try:
        lines = traceback.TracebackException(type(error), error, _users_own(error.__traceback__)).format()
        text = "".join(lines)
    except BaseException:  # noqa: BLE001 - the same
        return ""
    return _clean(text, TRACEBACK, end=True)


def _users_own(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from where it leaves our code: nobody wants to read how a step was called."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OURS):
        inner = inner.tb_next
    return inner or trace


def _clean(text: str, most: int, *, end: bool = False) -> str:
    """The text as Unicode of at most ``most`` characters, the mark of what was left out among them."""
    text = (text[-most - 1 :] if end else text[: most + 1]).encode("utf-8", "backslashreplace").decode()
    if len(text) <= most:
        return text
    kept = most - len(LEFT_OUT)
    return f"{LEFT_OUT}{text[-kept:]}" if end else f"{text[:kept]}{LEFT_OUT}"


def _args(error: BaseException, spec: StepSpec) -> Raw | UnsetType:
    kind = next((kind for kind in spec.raises if type(error) is kind), None)
    if kind is None:
        return UNSET  # a subclass of a declared type isn't known by name
    try:
        raw = Raw(_ARGS.store(list(error.args), limit=MESSAGE).raw)
    except ValueNotStorable:
        return UNSET
    return UNSET if _make(kind, raw) is None else raw


def _make(kind: type[Exception], raw: Raw) -> Exception | None:
    try:
        args = _ARGS.load(raw)
        assert isinstance(args, list)
        return kind(*args)
    except Exception:  # noqa: BLE001 - a user's __init__ may raise anything
        return None
