"""What this child was trusted with: credentials by handle, which step may read which, and the model sources.

Read by the threads of step bodies, replaced as a whole by the workflow's thread: whoever reads sees one delivery, never
parts of two. Of two deliveries the one with the higher serial holds, in whichever order they come.

Promise: what isn't granted to a step isn't given to it here, although only the host's word counts (it delivers what
some step of the deployment may read, and nothing else); and a value that was delivered leaves in no result, no error
and no progress, as far as `ipc.masking` can tell.
"""

import msgspec
from msgspec import UNSET, Raw

from ipc.deliveries import CredentialsUpdated, Source, SourcesUpdated
from ipc.masking import NOTHING
from waypost.authoring.errors import SecretRefused
from waypost.authoring.requests import CallChild, Quit, Send
from waypost.child.faults import of_run
from waypost.model.errors import Invalid
from waypost.model.events import AnyEvent, Fault, RunCancelled, RunCompleted, RunFailed, proposed
from waypost.model.grants import GrantsSnapshot, may_read
from waypost.model.grants import handle as checked
from waypost.model.values import ValueNotStorable

_KEPT = "holds the secret {}, which would be kept in the history for ever"
_NO_CREDENTIALS = CredentialsUpdated(serial=0, bindings={}, materials={})
_NO_SOURCES = SourcesUpdated(serial=0, sources=())


class Vault:
    """The one of a child; ``deployment`` is for its words."""

    def __init__(self, deployment: str = "") -> None:
        self._deployment = deployment
        self._credentials = _NO_CREDENTIALS
        self._sources = _NO_SOURCES
        self._mask = NOTHING
        self._granted: GrantsSnapshot | None = None

    def told(self, granted: GrantsSnapshot) -> None:
        """What is granted now: what was taken back is given to no step any more, whatever was delivered before."""
        self._granted = granted

    def take(self, delivery: CredentialsUpdated | SourcesUpdated) -> None:
        """Keep a delivery, unless a newer one is here."""
        match delivery:
            case SourcesUpdated() if delivery.serial > self._sources.serial:
                self._sources = delivery
            case CredentialsUpdated() if delivery.serial > self._credentials.serial:
                # First what hides them: a step may read them the moment that they are here.
                self._mask = self._mask.learned(delivery.materials)
                self._credentials = delivery
            case _:
                pass

    def secret(self, step: str, handle: str) -> str:
        """The credential of a handle, for a step. Raises SecretRefused."""
        try:
            checked(handle)
        except Invalid:
            # Not repeated: what somebody takes for a handle may be the secret itself.
            raise SecretRefused("", "that is no handle of a credential") from None
        held, granted = self._credentials, self._granted
        if handle not in held.bindings.get(step, ()) or (granted is not None and not may_read(granted, step, handle)):
            grant = f"waypost grants set {self._deployment} {step} --secret {handle}"
            raise SecretRefused(handle, f"step {step} may not read the secret {handle}", hint=f"`{grant}` lets it")
        value = held.materials.get(handle)
        if value is None:
            raise SecretRefused(handle, f"the secret {handle} wasn't delivered", hint="`waypost credentials list`")
        return value.decode()

    def sources(self) -> tuple[Source, ...]:
        """The model sources, the default first."""
        return self._sources.sources

    # --- what leaves -----------------------------------------------------------------------------------------------

    def check(self, raw: bytes) -> None:
        """Refuse a result that has a delivered value in it. Raises ValueNotStorable."""
        found = self._mask.found(raw)
        if found:
            raise ValueNotStorable("$", _KEPT.format(found))

    def held_by(self, request: Send | CallChild | Quit) -> str:
        """The handle of a secret that a mail, or a child's arguments, have in them; empty where they have none."""
        match request:
            case Send():
                return self._held_by_mail(request)
            case CallChild(input=raw):
                return self.held_in(raw)
            case Quit():
                return ""  # its reason goes out without them

    def _held_by_mail(self, mail: Send) -> str:
        parts = mail.attachments
        named = (text for part in parts for text in (part.name, part.content_type))
        texts = (text.encode("utf-8", "surrogatepass") for text in (mail.subject, mail.text, *mail.to, *named))
        return next(filter(None, map(self._mask.found, (*texts, *(part.content for part in parts)))), "")

    def held_by_any(self, events: tuple[AnyEvent, ...]) -> str:
        """The same of events, as they would be recorded: an approval's title or snapshot, say."""
        if self._mask is NOTHING:
            return ""
        return next(filter(None, (self._mask.found(proposed(self.clean(event))) for event in events)), "")

    def held_in(self, raw: bytes) -> str:
        """The same of a large value."""
        return self._mask.found(raw)

    def clean(self, event: AnyEvent) -> AnyEvent:
        """The end of a run without delivered values: a result that has one is none, and the run fails."""
        if self._mask is NOTHING:
            return event
        match event:
            case RunCompleted() if event.result.inline is not UNSET and (
                held := self.held_in(bytes(event.result.inline))
            ):
                refused = ValueNotStorable("$", _KEPT.format(held))
                return RunFailed(error=of_run(refused), unread=event.unread)
            case RunFailed() | RunCancelled() if isinstance(event.error, Fault):
                return msgspec.structs.replace(event, error=self.hidden_fault(event.error))
            case _:
                return event

    def hidden(self, text: str) -> str:
        """A line of progress, or why a run is to end, without delivered values."""
        return self._mask.hidden_text(text)

    def hidden_fault(self, fault: Fault) -> Fault:
        """What a step raised, without delivered values; args that have one go as a whole."""
        if self._mask is NOTHING:
            return fault
        leaks = isinstance(fault.args, Raw) and bool(self._mask.found(bytes(fault.args)))
        return msgspec.structs.replace(
            fault,
            type=self._mask.hidden_text(fault.type),
            message=self._mask.hidden_text(fault.message),
            traceback=self._mask.hidden_text(fault.traceback),
            args=UNSET if leaks else fault.args,
        )
