"""Where step bodies run: ``def`` steps in a pool of threads, ``async def`` steps on an ordinary event loop.

A body starts when it is asked for and says exactly once how it ended, whatever it raises. Both places come to be with
the first step that needs them. Where the system has no thread to spare, a body waits for one that the pool has; where
that has none, the try fails, and no other step is touched.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any

from waypost.authoring.errors import RunCancelled
from waypost.authoring.requests import CallStep
from waypost.authoring.scope import InStep, Recall, enter
from waypost.child import faults
from waypost.child.effects import Body, BodyEnd, Completed, Errored
from waypost.child.mailbox import BodyEnded, Mailbox, Reported, Wearied
from waypost.child.vault import Vault
from waypost.child.voice import or_end
from waypost.model.ids import CallId, RunId
from waypost.model.limits import Limits

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from waypost.child.async_bodies import AsyncBodies

THREADS = 64
"""``def`` steps of one child that run at once, where the system has as many threads; further ones wait for one."""


class Bodies:
    """The bodies of one child; how they end goes into the mailbox."""

    def __init__(self, mailbox: Mailbox, limits: Limits, vault: Vault | None = None) -> None:
        self._mailbox = mailbox
        self._limits = limits
        self._vault = vault or Vault()
        self._pool: ThreadPoolExecutor | None = None
        self._loop: AsyncBodies | None = None
        self._recalls: dict[tuple[RunId, CallId], Recall] = {}
        """Of the bodies that have begun, or wait for a thread; for the workflow's thread alone."""

    def start(self, run: RunId, body: Body) -> None:
        """Run one try of a step."""
        context = Context()  # not the caller's: a step is in no run, and sees no other step's settings
        name, recall = (run, body.step.call), Recall()
        self._recalls[name] = recall
        vault, step = self._vault, body.step.request.spec.name
        scope = InStep(
            body.key,
            lambda text: self._mailbox.put(Reported(run, body.step.call, vault.hidden(text))),
            recall,
            lambda reason: self._mailbox.put(Wearied(vault.hidden(reason))),
            lambda handle: vault.secret(step, handle),
            vault.sources,
        )
        context.run(enter, scope)
        try:
            if body.step.request.spec.asynchronous:
                self._on_loop().start(self._made(run, body, recall), context, name)
            else:
                self._in_pool(context.run, self._call, run, body, recall)
        except (
            RuntimeError,
            OSError,
        ) as error:  # no thread, or no descriptor for a loop: of a limit, or of the machine
            self._mailbox.put(BodyEnded(run, body.step, self._errored(error, body.step.request)))

    def call_off(self, run: RunId, call: CallId) -> None:
        """The run is being cancelled: an ``async def`` body is cancelled, a ``def`` one is told (``cancelled()``)."""
        recall = self._recalls.get((run, call))
        if recall is not None:
            recall.said = True
            if self._loop is not None:
                self._loop.cancel((run, call))

    def ended(self, run: RunId, call: CallId) -> None:
        """How this body ended was taken from the mailbox."""
        self._recalls.pop((run, call), None)

    def close(self) -> None:
        """Start nothing more; bodies under way in threads can't be stopped and are left to the end of the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._loop is not None:
            self._loop.close()

    # --- def -------------------------------------------------------------------------------------------------------

    def _in_pool(self, work: Callable[..., object], *arguments: object) -> None:
        """Have it done by a thread; by the next one that is free where no other can be had. Raises RuntimeError."""
        if self._pool is not None:
            with suppress(RuntimeError):  # it is in the queue all the same, and who has a pool has a thread
                self._pool.submit(work, *arguments)
            return
        from concurrent.futures import ThreadPoolExecutor  # as late as asyncio below, for the same reason

        pool = ThreadPoolExecutor(THREADS, thread_name_prefix="waypost-step")
        try:
            pool.submit(work, *arguments)
        except RuntimeError:
            pool.shutdown(wait=False, cancel_futures=True)  # nothing is done of which is said that it can't be
            raise
        self._pool = pool

    def _call(self, run: RunId, body: Body, recall: Recall) -> None:
        request = body.step.request

        def call() -> object:
            _go_on(recall)
            return request.spec.function(*request.args, **request.kwargs)

        or_end(lambda: self._mailbox.put(BodyEnded(run, body.step, self._ended(request, call))))

    # --- async def -------------------------------------------------------------------------------------------------

    def _on_loop(self) -> "AsyncBodies":
        if self._loop is None:
            from waypost.child.async_bodies import AsyncBodies  # asyncio costs a child that has no use for it

            self._loop = AsyncBodies()
        return self._loop

    def _made(self, run: RunId, body: Body, recall: Recall) -> Callable[[], Coroutine[Any, Any, None]]:
        request = body.step.request

        def said(end: Callable[[], BodyEnd]) -> None:
            or_end(lambda: self._mailbox.put(BodyEnded(run, body.step, end())))

        async def run_it() -> None:
            try:
                _go_on(recall)
                value: object = await request.spec.function(*request.args, **request.kwargs)
            except BaseException as error:  # noqa: BLE001 - SystemExit of a step must not end the loop of all
                said(partial(self._errored, error, request))
            else:
                said(partial(self._ended, request, lambda: value))

        return run_it

    def _ended(self, request: CallStep, call: Callable[[], object]) -> BodyEnd:
        try:
            raw = request.spec.codec.store(call(), limit=self._limits.value).raw
            self._vault.check(raw)
        except BaseException as error:  # noqa: BLE001 - SystemExit of a step is a failed step
            return self._errored(error, request)
        return Completed(raw)

    def _errored(self, error: BaseException, request: CallStep) -> Errored:
        fault = self._vault.hidden_fault(faults.of_step(error, request.spec))
        return Errored(fault, faults.is_answer(error, request.spec))


def _go_on(recall: Recall) -> None:
    if recall.said:
        raise RunCancelled("the run was cancelled before this step began")
