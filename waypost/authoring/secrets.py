"""What a step may be trusted with: a credential by its handle, and the model sources that its host knows.

Both are asked for inside a step, each time they are used, and never kept: whoever asks again after a rotation has the
new value. A `Secret` shows in no repr, no text and no JSON; only ``reveal()`` gives it.
"""

import hmac
from typing import Never

import msgspec

from waypost.authoring.errors import NotReplayable, SecretRefused
from waypost.authoring.scope import InStep, Nowhere, current
from waypost.model.errors import Invalid


class Secret:
    """A text that doesn't show. It has no JSON form, so no step can return it and no mail or event can hold it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the call that needs it."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._text.encode(), other._text.encode())

    __hash__ = None  # type: ignore[assignment]  # a set or a dict of secrets is a store of them

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> Never:
        raise TypeError("a secret is never pickled or copied")


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a model can be had, as the operator has listed it. ``credential``: a handle, or empty."""

    id: str
    provider: str
    model: str
    base_url: str
    credential: str

    def secret(self) -> Secret:
        """What it wants to be asked with. Raises SecretRefused where the step may not read it, or it needs none."""
        if not self.credential:
            raise SecretRefused("", f"source {self.id} needs no credential")
        return secret(self.credential)


def secret(handle: str) -> Secret:
    """The credential of this handle, as it is now. For use in a step that an operator has granted it to.

    Raises SecretRefused where the step may not read it (the step fails for good: trying again doesn't help), and in a
    plain process, where nobody has any; NotReplayable outside of a step; Invalid for what is no text.
    """
    if not isinstance(handle, str):
        raise Invalid(f"secret() takes the handle of a credential, not {handle!r}")
    match current():
        case InStep() as step:
            return Secret(step.secret(handle))
        case Nowhere():
            raise SecretRefused(
                handle,
                f"nobody keeps {handle!r:.80} here: this process was started by no host",
                hint="in a test, put a function in the place of `secret` that returns waypost.Secret('…')",
            )
        case _:
            raise NotReplayable("secret() outside of a step", "call it inside the step's function")


def sources() -> tuple[Source, ...]:
    """The model sources of this deployment as they are now, in the operator's order, the default first.

    For use in a step. Raises SecretRefused where there is none, or in a plain process; NotReplayable outside of a step.
    """
    match current():
        case InStep() as step:
            found = tuple(Source(**msgspec.structs.asdict(each)) for each in step.sources())
        case Nowhere():
            found = ()
        case _:
            raise NotReplayable("sources() outside of a step", "call it inside the step's function")
    if not found:
        raise SecretRefused(
            "", "there is no model source for this deployment", hint="list one under [[sources]] in credentials.toml"
        )
    return found
