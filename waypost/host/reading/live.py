"""Asking a running host: the actors' answers as records, in words of the API. Called by the API's threads only.

Every call may raise Unanswered: a part of the host has failed, or takes too long.
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pykka

from actors.draining import Recycle
from actors.starting import start_of
from substrate.messages import (
    Accepted,
    Answer,
    Approval,
    Approvals,
    Cancel,
    CancelTaken,
    DrainDeployment,
    GoesOn,
    Kept,
    LogPage,
    Operation,
    Planned,
    Question,
    ReadApprovals,
    ReadHold,
    ReadLog,
    ReadRejected,
    ReadRuns,
    ReadSchedules,
    ReadSealed,
    RejectedPage,
    RejectHeld,
    ReleaseHeld,
    ResetDeployment,
    ResumeDeployment,
    RunLine,
    Signal,
    SignalTaken,
    Unlatched,
    Unpause,
)
from waypost.acting import Ref
from waypost.host.answers.records import (
    Answered,
    CancelAsked,
    DeploymentDraining,
    DeploymentFollowed,
    DeploymentRecycling,
    DeploymentReset,
    DeploymentResumed,
    DeploymentStatus,
    MailTaken,
    Rejected,
    Released,
    Resumed,
    SealedNow,
    Signalled,
)
from waypost.host.errors import NoSuchAddress, NotHosted, NotNow, RefusedByRule
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.mail.bus import MailBusActor
from waypost.host.messages import Deliver, Deployed
from waypost.host.reading.beside import Beside
from waypost.host.reading.explain import LeftOut, Situation
from waypost.host.reading.hosted import TIMEOUT, Hosted
from waypost.host.reading.offline import Offline
from waypost.host.reading.queued import mail_name, named_on_hold
from waypost.host.reading.source import locate
from waypost.host.reading.status import situations_of, status_of
from waypost.model.event_parts import Origin
from waypost.model.events import Decision
from waypost.model.ids import CallId, RunId
from waypost.model.limits import Limits
from waypost.model.mail import BadAddress
from waypost.model.mail import address as normal

_PORTION = 128
"""Runs that the deployment's writer tells of in one turn: some 10 ms."""


class Live:
    """A ``Source``, and the writing verbs, over the root of this process's actors."""

    def __init__(
        self,
        root: Ref,
        limits: Limits,
        resting: Callable[[Collection[str]], Offline],
        out: Path,
        left_out: Iterable[LeftOut] = (),
        timeout: float = TIMEOUT,
    ) -> None:
        """``out``: where mail for others is put."""
        self._hosted, self._limits, self._resting = Hosted(root, timeout), limits, resting
        self._out = out
        self._left_out = {each.name: each for each in left_out}

    def everything(self) -> Beside:
        """A ``Source`` for one request: what is hosted, and what else lies in the data directory."""
        return Beside(self, self._resting, self._left_out)

    # --- reading -----------------------------------------------------------------------------------------------------

    def deployed(self) -> tuple[Deployed, ...]:
        """Every deployment as the root knows it."""
        return self._hosted.deployed()

    def situations(self) -> tuple[Situation, ...]:
        """Every deployment."""
        return situations_of(self.deployed(), self._limits, self._out)

    def statuses(self) -> tuple[DeploymentStatus, ...]:
        """Every deployment, for the host's status."""
        return tuple(status_of(each.description) for each in self.deployed())

    def follow(self, name: str, mark: str) -> DeploymentFollowed:
        """How a deployment is; if that still has this mark, once it has changed, or after a while."""
        return self._hosted.follow(name, mark)

    def runs(self, deployment: str, limit: int, before: RunId | None = None) -> tuple[RunLine, ...]:
        """Runs of a deployment, newest first."""
        found: list[RunLine] = []
        while len(found) < limit:
            # A portion at a time: what else the deployment has to write doesn't wait for the whole list.
            before = found[-1].run if found else before
            question = ReadRuns(limit=min(_PORTION, limit - len(found)), before=before)
            portion: tuple[RunLine, ...] = self._hosted.forward(deployment, question)
            found += portion
            if len(portion) < question.limit:
                break
        return tuple(found)

    def page(self, deployment: str, run: RunId, after: int) -> LogPage | None:
        """Events of a run after a seq."""
        try:
            page: LogPage = self._hosted.forward(deployment, ReadLog(run=run, after=after, limit=self._limits.page))
        except RefusedByRule as refused:
            if refused.rule == "no-run":
                return None
            raise
        return page

    def approvals(self, deployment: str) -> tuple[Approval, ...]:
        """Open approvals, oldest run first."""
        found: list[Approval] = []
        after: RunId | None = None
        while True:
            page: Approvals = self._hosted.forward(deployment, ReadApprovals(after=after, limit=_PORTION))
            found += page.found
            after = page.next
            if after is None:
                return tuple(found)

    def on_hold(self, deployment: str, limit: int) -> tuple[Kept, ...]:
        """Mails on hold, oldest first."""
        found: tuple[Kept, ...] = self._hosted.forward(deployment, ReadHold(limit=limit))
        return found

    def rejected(self, deployment: str, cursor: tuple[int, int] | None) -> RejectedPage:
        """Mails that were rejected, a page."""
        page: RejectedPage = self._hosted.forward(deployment, ReadRejected(cursor=cursor))
        return page

    def schedules(self, deployment: str) -> tuple[Planned, ...]:
        """The cron schedules of a deployment."""
        found: tuple[Planned, ...] = self._hosted.forward(deployment, ReadSchedules())
        return found

    # --- writing -----------------------------------------------------------------------------------------------------

    def deliver(self, address: str, raw: bytes) -> MailTaken:
        """Have the bus accept a mail. Raises NoSuchAddress, NotHosted, MalformedMail, NotNow, RefusedByRule."""
        buses = pykka.ActorRegistry.get_by_class(MailBusActor)
        if not buses:
            raise NotNow("the mail bus is being made anew")
        try:
            taken: MailTaken = self._hosted.ask(buses[0], Deliver(address, raw))
        except NoSuchAddress:
            self._refuse_for_resting(address)
            raise
        return taken

    def cancel(self, text: str, reason: str, origin: Origin, by: str) -> CancelAsked:
        """Ask for a run's end. Raises NoSuchRun, RefusedByRule, NotNow."""
        situation, run = locate(self.everything(), text)
        spec = next((each.spec for each in self.deployed() if each.spec.name == situation.name), None)
        start = None if spec is None else start_of(spec)
        what = Cancel(run=run, reason=reason, origin=origin, by=by, start=start)
        taken: CancelTaken = self._hosted.forward(situation.name, what)
        return CancelAsked(run=run, fresh=taken.fresh, at=taken.at, origin=taken.origin, by=taken.by)

    def signal(self, text: str, name: str, identity: str, raw: bytes) -> Signalled:
        """Send a run a named signal. Raises NoSuchRun, RefusedByRule, NotNow."""
        situation, run = locate(self.everything(), text)
        what = Signal(run=run, name=name, id=identity, payload=raw)
        taken: SignalTaken = self._hosted.forward(situation.name, what)
        return Signalled(run=run, name=name, id=identity, outcome=taken.outcome, call=taken.call)

    def answer(self, text: str, call: str | None, decision: Decision) -> Answered:
        """Answer an open approval of a run. Raises NoSuchRun, RefusedByRule, NotNow."""
        situation, run = locate(self.everything(), text)
        named = None if call is None else CallId(call)
        answered: CallId = self._hosted.forward(situation.name, Answer(run=run, call=named, decision=decision))
        return Answered(run=run, call=answered, approved=decision.approved, by=decision.by)

    def resume(self, text: str, by: str) -> Resumed:
        """Let a paused run go on. Raises NoSuchRun, RefusedByRule, NotNow."""
        situation, run = locate(self.everything(), text)
        self._hosted.forward(situation.name, Unpause(run=run, by=by))
        return Resumed(run=run, by=by)

    def told(self, name: str, what: Operation | Question) -> Any:
        """The value of what a deployment that is hosted is asked. Raises NotHosted, RefusedByRule, NotNow."""
        return self._hosted.forward(name, what)

    def resume_deployment(self, name: str, by: str) -> DeploymentResumed:
        """Let a held deployment go on. Raises NoSuchDeployment, NotHosted, RefusedByRule, NotNow."""
        self._refuse_for_left_out(name)
        came = self._hosted.forward(name, ResumeDeployment(by))
        return DeploymentResumed(deployment=name, by=by, latched=isinstance(came, GoesOn) and came.latched)

    def reset_deployment(self, name: str, by: str) -> DeploymentReset:
        """Let a crash-looping deployment have a child again.

        Raises NoSuchDeployment, NotHosted, RefusedByRule, NotNow.
        """
        self._refuse_for_left_out(name)
        came: Unlatched = self._hosted.forward(name, ResetDeployment(by))
        return DeploymentReset(deployment=name, by=by, held=came.held, ending=came.ending)

    def drain_deployment(self, name: str, by: str, *, end: bool) -> DeploymentDraining:
        """Let what executes come to rest, or ``end``, then hold it; answered when it is durable that it has begun.

        Raises NoSuchDeployment, NotHosted, RefusedByRule, NotNow.
        """
        self._refuse_for_left_out(name)
        self._hosted.forward(name, DrainDeployment(by, end))
        return DeploymentDraining(deployment=name, by=by)

    def recycle_deployment(self, name: str, reason: str) -> DeploymentRecycling:
        """Give it a fresh process; answered at once. Raises NoSuchDeployment, NotHosted, RefusedByRule, NotNow."""
        self._refuse_for_left_out(name)
        return DeploymentRecycling(deployment=name, generation=self._hosted.begun(name, Recycle(reason)))

    def seal(self, name: str) -> SealedNow:
        """Bring all of a deployment onto its branch. Raises NoSuchDeployment, NotNow."""
        self._hosted.deployment(name)
        if self._hosted.deployment(name).description.state != "dormant":  # whoever sleeps has sealed all of it
            self._hosted.forward(name, ReadSealed())
        return SealedNow(deployment=name)

    def release(self, text: str) -> Released:
        """Let a mail in from hold. Raises NotOnHold, AmbiguousMail, RefusedByRule, NotNow."""
        deployment, arrival = named_on_hold(self.everything(), text)
        accepted: Accepted = self._hosted.forward(deployment, ReleaseHeld(arrival))
        return Released(mail=mail_name(deployment, arrival), run=accepted.run)

    def reject(self, text: str) -> Rejected:
        """Reject a mail on hold. Raises NotOnHold, AmbiguousMail, RefusedByRule, NotNow."""
        deployment, arrival = named_on_hold(self.everything(), text)
        self._hosted.forward(deployment, RejectHeld(arrival))
        return Rejected(mail=mail_name(deployment, arrival))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _refuse_for_left_out(self, name: str) -> None:
        """Raises NotHosted of one that lies here and isn't run, NoSuchDeployment of any other that isn't hosted."""
        try:
            self._hosted.deployment(name)
        except NoSuchDeployment:
            if name in (each.name for each in self.everything().situations()):
                raise NotHosted(name) from None
            raise

    def _refuse_for_resting(self, address: str) -> None:
        """Nobody who is hosted has the address. Raises NotHosted where another one here has it, NotNow if it may."""
        try:
            wanted = normal(address)
        except BadAddress:
            return
        resting = [each for each in self.everything().situations() if not each.hosted]
        for each in resting:
            if each.address == wanted:
                raise NotHosted(each.name) from None
        unread = [each.name for each in resting if each.state == "unreadable"]
        if unread:
            raise NotNow(f"the repository of {', '.join(unread)} can't be read (`waypost verify` says why)") from None
