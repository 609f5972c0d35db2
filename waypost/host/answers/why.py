"""What the API answers to "why?": one sentence each for a run, a mail, a deployment, and for all of them.

Every answer has the fields of ``Reason``, which stay as they are: it waits for ``waits_for`` since ``since`` until
``until``; then ``then``; and ``command`` is what would help.
"""

from waypost.host.answers.records import Answer, ChildExit, Reason, WaitingOn


class DeploymentWhy(Reason, frozen=True, kw_only=True):
    """Why a deployment is as it is. ``state`` and ``code`` as in ``DeploymentStatus``; ``no host`` where none runs it.

    ``exited``: the last child that ended unasked, where there is none now. ``isolation`` is empty where no host runs.
    ``outgoing``: the same of the oldest mail of it that can't leave, where there is one.
    """

    name: str
    state: str
    code: str = ""
    isolation: str = ""
    exited: ChildExit | None = None
    outgoing: Reason | None = None


class Why(Reason, frozen=True, kw_only=True):
    """Why a run isn't further: the sentence of what it waits on first, and all of them in ``waiting``.

    ``on``: its deployment. A run that has ended waits on nothing, and its sentence says how it ended.
    ``parent``, ``child``: of a child run, the run that awaits it, and which of the workflow's children it is.
    """

    run: str
    deployment: str
    state: str
    parent: str = ""
    child: str = ""
    waiting: tuple[WaitingOn, ...] = ()
    on: DeploymentWhy


class MailWhy(Reason, frozen=True, kw_only=True):
    """Why a mail that was accepted has no run. ``place``: ``hold`` or ``rejected``; ``why`` as in ``KeptMail``."""

    mail: str
    deployment: str
    place: str
    why: str


class Whys(Answer, frozen=True, kw_only=True):
    """Every deployment, those that need somebody first. ``hosted``: whether a host runs here."""

    hosted: bool
    deployments: tuple[DeploymentWhy, ...]
