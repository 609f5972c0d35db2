"""The barrier under any sequence: no run reaches a child that doesn't hold what is granted, and none waits unheard."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.credentials import Assembled, NotAssembled
from actors.logic.dispatch.barrier import Assembling, Clear, Closed, Deferred, Lingering, TurnedAway
from actors.logic.dispatch.state import Open
from actors.logic.dispatch.turn import Setup
from actors.messages import GenerationDown
from ipc.deliveries import CredentialsUpdated
from ipc.messages import GrantsUpdated, RunStart
from substrate.messages import ChangeGrants
from waypost.model import events as ev
from waypost.model.grants import granted, read_snapshot, readable
from waypost.model.limits import Limits
from waypost.testing.dispatch_bench import START, Bench

ACTIONS = ("up", "down", "mail", "grant", "revoke", "flush", "answer", "yes", "late yes", "passing", "lasting", "wake")
STEPS = ("read", "pay")
DESK = Setup(start=START, limits=Limits(), steps=STEPS, keeper=True)
SECRET = granted(secrets=["github"])
VALUES = CredentialsUpdated(serial=1, bindings={}, materials={})


@dataclass
class Watch:
    """A dispatch with a keeper, and what its present child has been sent."""

    bench: Bench = field(
        default_factory=lambda: Bench(setup=Setup(start=START, limits=Limits(), steps=STEPS, keeper=True))
    )
    mails: int = 0
    seen: int = 0
    since: int = 0
    """What its supervisor had been told before this child came: that is of others."""
    held: str = ""
    answered: bool = False
    """Whether the keeper has brought what it was last asked for, for this child."""

    def act(self, action: str) -> None:
        """One thing happens, and what the child was sent is held against the promise."""
        bench = self.bench
        asked = len(bench.wanted)
        match action:
            case "up" if gate(bench) == Closed():
                self.held, self.answered, self.since = "", False, len(bench.barred)
                bench.up()
            case "down" if gate(bench) != Closed():
                assert isinstance(bench.state, Open)
                bench.tell(GenerationDown(bench.state.child.generation, unexpected=False))  # type: ignore[union-attr]  # one is up
                self.answered = False
            case "mail":
                self.mails += 1
                bench.mail(self.mails)
            case "grant":
                bench.do(ChangeGrants(by="ann", step="read", give=SECRET))
            case "revoke":
                bench.do(ChangeGrants(by="ann", step="read", take=SECRET))
            case "flush":
                bench.flush()
            case "answer" if bench.requests:
                bench.answer()
            case "yes" | "late yes" | "passing" | "lasting" if bench.wanted:
                self._keeper(action)
            case "wake" if isinstance(at := gate(bench), Assembling | Lingering | Deferred | TurnedAway):
                (wake,) = (each for each in bench.wakes if each.message.token == at.token)
                bench.tell(wake.message)
            case _:
                pass
        if len(bench.wanted) > asked:
            self.answered = False
        self._check()

    def _keeper(self, action: str) -> None:
        wanted = self.bench.wanted
        match action:
            case "yes":
                self.answered = isinstance(gate(self.bench), Assembling | Lingering) or self.answered
                self.bench.tell(Assembled(wanted[-1].correlation, VALUES))
            case "late yes" if len(wanted) > 1:
                self.bench.tell(Assembled(wanted[-2].correlation, VALUES))
            case "passing" | "lasting":
                self.bench.tell(NotAssembled(wanted[-1].correlation, action == "passing", "its command ended with 1"))
            case _:
                pass

    def _check(self) -> None:
        for message in self.bench.sent[self.seen :]:
            match message:
                case GrantsUpdated():
                    taken = read_snapshot(message.grants, message.sha256)
                    assert readable(taken, STEPS) in ({}, {"read": ("github",)})
                    self.held = message.sha256
                case CredentialsUpdated():
                    assert self.held, "credentials before grants"
                case RunStart():
                    assert message.grants == self.held, "a run was started under what the child doesn't hold"
                    assert self.answered, "a run was started before the credentials came"
                case _:
                    pass
        self.seen = len(self.bench.sent)
        at = gate(self.bench)
        told = next(reversed(self.bench.barred[self.since :]), "")
        if isinstance(at, Deferred | TurnedAway):
            assert told == at.why
        elif isinstance(at, Lingering):
            assert told
        elif isinstance(at, Clear):
            assert not told


def gate(bench: Bench) -> object:
    """Where the gate stands."""
    assert isinstance(bench.state, Open)
    return bench.state.barrier.gate


@settings(max_examples=25)
@given(st.lists(st.sampled_from(ACTIONS), max_size=40))
def test_no_run_begins_before_its_child_holds_what_it_names_and_every_mail_gets_its_run(actions: list[str]) -> None:
    """Whatever comes in whatever order; and once the keeper answers, nothing is left waiting."""
    watch = Watch()
    for action in actions:
        watch.act(action)
    watch.act("up")
    for _ in range(40):
        for action in ("wake", "yes", "flush", "answer"):
            watch.act(action)
    bench = watch.bench
    assert not bench.requests
    assert not bench.paper.index.queue
    assert len(bench.paper.runs()) == watch.mails
    started = {each.run for each in bench.sent if isinstance(each, RunStart)}
    for run in bench.paper.runs():
        failed = isinstance(last := bench.paper.log(run)[-1], ev.RunFailed)
        assert failed or run in started
        assert not (failed and isinstance(last, ev.RunFailed)) or last.error.type == "CredentialMissing"
