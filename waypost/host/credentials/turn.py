"""One message to the keeper being worked on: the state so far, and the effects that it has gathered.

Local to one call of ``logic.advance``; nobody keeps a turn.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from actors.messages import Woken
from ipc.deliveries import DELIVERY, CredentialsUpdated, SourcesUpdated, handles_of, same
from waypost.acting import Ref, Tell, WakeAt
from waypost.host.credentials.messages import Supply
from waypost.host.credentials.states import Client, Earnest, Entry, Keeper, Kept, Stale, Unread
from waypost.model.ids import Deployment
from waypost.model.times import Now

_UNREAD = Unread()


class Turn:
    """The view and the workbench."""

    def __init__(self, state: Keeper, now: Now) -> None:
        self.state, self.now = state, now
        self.effects: list[Any] = []

    def set(self, **changes: Any) -> None:
        """Go on with another state."""
        self.state = replace(self.state, **changes)

    def number(self) -> int:
        """A number that was never given out."""
        self.set(last=self.state.last + 1)
        return self.state.last

    def tell(self, ref: Ref, message: object) -> None:
        """Send a message."""
        self.effects.append(Tell(ref, message))

    def entry(self, handle: str) -> Entry:
        """How a credential stands."""
        return self.state.entries.get(handle, _UNREAD)

    def client(self, name: Deployment, client: Client) -> None:
        """Note how a deployment stands."""
        self.set(clients={**self.state.clients, name: client})

    def want(self, handle: str) -> None:
        """See to it that it is read."""
        if handle in self.state.configured.credentials and not self.awaited(handle):
            self.set(queued=(*self.state.queued, Earnest(handle)))

    def awaited(self, handle: str) -> bool:
        """Whether it is being read, or will be."""
        return Earnest(handle) in self.state.queued or Earnest(handle) in self.state.reading.values()

    def never(self, deployment: Deployment, handle: str) -> str:
        """Why a deployment can't have this, however often it asks; empty where it can."""
        credential = self.state.configured.credentials.get(handle)
        if credential is None:
            return f"the secret {handle} isn't listed in credentials.toml; list it, then `waypost credentials reload`"
        if not credential.is_for(deployment):
            return f"credentials.toml doesn't let {deployment} have the secret {handle}"
        return ""

    def values(self, name: Deployment, bindings: Mapping[str, tuple[str, ...]]) -> dict[str, bytes]:
        """What there is of that which these steps may read, by handle."""
        return {
            handle: bytes(entry.value.reveal())
            for handle in handles_of(bindings)
            if isinstance(entry := self.entry(handle), Kept | Stale) and not self.never(name, handle)
        }

    def delivery(
        self, name: Deployment, bindings: Mapping[str, tuple[str, ...]]
    ) -> tuple[CredentialsUpdated, SourcesUpdated | None]:
        """What this deployment is given now: as before, number and all, where that is the same."""
        client, values = self.state.clients[name], self.values(name, bindings)
        if size_of(values) > DELIVERY:  # a frame that no channel takes would end the child
            values = {}
        credentials = CredentialsUpdated(serial=self.number(), bindings=dict(bindings), materials=values)
        if client.credentials is not None and same(client.credentials, credentials):
            credentials = client.credentials
        sources: SourcesUpdated | None = SourcesUpdated(
            serial=self.number(), sources=self.state.configured.sources_of(name)
        )
        if client.sources is not None and sources is not None and client.sources.sources == sources.sources:
            sources = client.sources
        elif client.sources is None and sources is not None and not sources.sources:
            sources = None
        client = replace(client, credentials=credentials, sources=sources)
        self.set(clients={**self.state.clients, name: client})
        return credentials, sources

    def patience(self, token: int, seconds: float) -> None:
        """See to it that whoever asked under this token is answered by then, with what there is."""
        number = self.number()
        self.set(deadlines={**self.state.deadlines, number: token})
        self.effects.append(WakeAt(Woken(number), mono=self.now.mono + seconds))

    def supply(self, name: Deployment, client: Client) -> int:
        """Have it deliver to a deployment what holds now; the correlation of the answer."""
        credentials, sources = self.delivery(name, client.bindings)
        number = self.number()
        self.effects.append(Supply(number, client.supervisor, credentials, sources))
        return number


def size_of(values: Mapping[str, bytes]) -> int:
    """Bytes of all of them."""
    return sum(map(len, values.values()))
