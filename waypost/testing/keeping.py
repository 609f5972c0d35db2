"""A keeper of credentials stepped by hand: what it decides, with readings, deployments and clocks that a test turns."""

from collections.abc import Mapping
from typing import Any

from actors.credentials import AskAgain, AssembleCredentials, Assembled, NotAssembled
from actors.messages import Woken
from ipc.secret import Secret
from substrate.messages import Done, Outcome, Result
from waypost.acting import Asked, Reply, Tell, WakeAt
from waypost.host.credentials.errors import BadCredentials
from waypost.host.credentials.file import Configured, Credential, FromEnvironment, parse
from waypost.host.credentials.logic import advance
from waypost.host.credentials.messages import FileRead, KeeperMessage, Read, Reload, Supply, Warn, WasRead
from waypost.host.credentials.providers import Failed, Had
from waypost.host.credentials.states import Keeper
from waypost.model.ids import Deployment
from waypost.model.times import Now

FILE = b"""
[credentials.github]
env = "GITHUB"
[credentials.db]
env = "DB"
deployments = ["orders"]
refresh = 60
[[sources]]
id = "main"
provider = "p"
model = "m"
credential = "github"
"""
CONFIGURED = parse(FILE, "credentials.toml")


def credential(handle: str, name: str = "X", *, refresh: float | None = None) -> Credential:
    """A credential that is a variable."""
    return Credential(handle, FromEnvironment(name), None, refresh)


class Bench:
    """A keeper; ``deployments`` stand for both dispatch and supervisor, told apart by what they are told."""

    def __init__(self, configured: Configured = CONFIGURED) -> None:
        self.state = Keeper(configured=configured)
        self.now = Now(wall=1_000_000, mono=100.0)
        self.effects: list[Any] = []
        self.asked = 0
        self.refs: dict[str, Any] = {}

    def ref(self, deployment: str) -> Any:
        """Who asks for a deployment. An object: nobody is told anything here but the bench."""
        return self.refs.setdefault(deployment, object())

    def take(self, message: KeeperMessage) -> list[Any]:
        """Step; the effects of this step."""
        following = advance(self.state, message, self.now)
        self.state = following.state
        self.effects += following.effects
        return list(following.effects)

    def want(self, deployment: str = "orders", /, **bindings: tuple[str, ...]) -> list[Any]:
        """A deployment's dispatch asks."""
        self.asked += 1
        ref = self.ref(deployment)
        return self.take(
            AssembleCredentials(
                correlation=self.asked,
                deployment=Deployment(deployment),
                bindings=bindings,
                reply_to=ref,
                supervisor=ref,
            )
        )

    def reload(self, *deployments: str, token: int = 7) -> list[Any]:
        """An operator asks for a reload; the file is still to be read."""
        return self.take(Asked(token, Reload({name: self.ref(name) for name in deployments})))

    def file(self, found: Configured | BadCredentials) -> list[Any]:
        """The file was read."""
        return self.take(FileRead(found))

    def read(self, values: Mapping[str, str | Failed]) -> list[Any]:
        """End every reading that is under way, with these values by handle."""
        effects: list[Any] = []
        for number, purpose in tuple(self.state.reading.items()):
            if number in self.state.reading and purpose.handle in values:
                value = values[purpose.handle]
                reading = value if isinstance(value, Failed) else Had(Secret(value.encode()))
                effects += self.take(WasRead(number, reading))
        return effects

    def answer(self, result: Result | None = None) -> list[Any]:
        """Every supervisor that was told to deliver answers."""
        supplies = [effect for effect in self.effects if isinstance(effect, Supply)]
        effects: list[Any] = []
        for supply in supplies:
            effects += self.take(Outcome(supply.correlation, result or Done(0, value=True)))
        return effects

    def wake(self, seconds: float) -> list[Any]:
        """Let so much time pass, and whoever is due be woken."""
        self.now = Now(wall=self.now.wall + round(seconds * 1000), mono=self.now.mono + seconds)
        due = [e for e in self.effects if isinstance(e, WakeAt) and e.mono is not None and e.mono <= self.now.mono]
        effects: list[Any] = []
        for each in due:
            assert isinstance(each.message, Woken)
            self.effects.remove(each)
            effects += self.take(each.message)
        return effects


def answers(effects: list[Any]) -> list[Assembled | NotAssembled]:
    """What dispatch was answered."""
    return [e.message for e in effects if isinstance(e, Tell) and not isinstance(e.message, AskAgain)]


def values(answer: Any) -> dict[str, str]:
    """The values of a delivery, by handle."""
    assert isinstance(answer, Assembled | Supply), answer
    return {handle: value.decode() for handle, value in answer.credentials.materials.items()}


def supplies(effects: list[Any]) -> list[Supply]:
    """What supervisors are to deliver."""
    return [e for e in effects if isinstance(e, Supply)]


def replies(effects: list[Any]) -> list[Any]:
    """What operators were answered."""
    return [e.value for e in effects if isinstance(e, Reply)]


def readings(effects: list[Any]) -> list[str]:
    """Handles that are to be read."""
    return [e.credential.handle for e in effects if isinstance(e, Read)]


def warnings(effects: list[Any]) -> list[str]:
    """What the host's log says."""
    return [e.text for e in effects if isinstance(e, Warn)]
