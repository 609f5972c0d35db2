"""What a type checker makes of users' code. Read by mypy, never run; an ignore that is no longer needed is an error."""

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

from waypost import Mail, Secret, Source, Tick, Verdict, Workflow, approve, receive, secret, send, sleep, sources

flow = Workflow("flow", address="flow@example.com")


class Declined(Exception):
    """An answer."""


@flow.step
def plain(mail: Mail, factor: int = 1) -> int:
    return factor


@flow.step
async def asynchronous(text: str) -> list[str]:
    return [text]


@flow.step(retries=3, raises=(Declined,))
def with_settings(amount: int) -> str:
    return str(amount)


@flow.step(retries=3)
async def asynchronous_with_settings(amount: int) -> bytes:
    return bytes(amount)


@flow.step(secrets=["github"])
def trusted() -> int:
    assert_type(secret("github"), Secret)
    assert_type(secret("github").reveal(), str)
    assert_type(sources(), tuple[Source, ...])
    assert_type(sources()[0].secret(), Secret)
    secret(Secret("github"))  # type: ignore[arg-type]
    secret("github") + "x"  # type: ignore[operator]
    return len(secret("github").reveal())


@flow.child
async def child(amount: int, *, twice: bool = False) -> list[str]:
    return [str(amount)] * (1 + twice)


@flow.child
def plain_child(mail: Mail) -> int:
    return len(mail.text)


@flow.cron("0 9 * * *", tz="Europe/Berlin", catch_up=3)
@flow.run
async def run(mail: Mail) -> str:
    assert_type(await child(1, twice=True), list[str])
    assert_type(await plain_child(mail), int)
    await child("1")  # type: ignore[arg-type]  # a checker must refuse it: the child takes another type
    await plain_child()  # type: ignore[call-arg]  # and this: it takes one argument
    child(1)  # type: ignore[unused-coroutine]
    assert_type(mail.tick, Tick | None)
    assert_type(await plain(mail, factor=2), int)
    assert_type(await asynchronous("x"), list[str])
    assert_type(await with_settings(1), str)
    assert_type(await asynchronous_with_settings(1), bytes)
    plain.function(0)  # type: ignore[arg-type]
    assert_type(await receive(timeout="3d"), Mail)
    assert_type(await approve("?", who="a@example.com"), Verdict)
    assert_type(await send(to="a@example.com", subject="s", text="t"), str)
    await sleep(3)
    await plain("no mail")  # type: ignore[arg-type]
    await asynchronous()  # type: ignore[call-arg]
    plain(mail)  # type: ignore[unused-coroutine]
    return "done"


@flow.step(timeout=3)  # type: ignore[call-overload, untyped-decorator]
def not_yet() -> None: ...


still: Callable[[Mail], Coroutine[Any, Any, str]] = run
flow.cron("0 9 * * *", gap="later")  # type: ignore[arg-type]
flow.cron("0 9 * * *", catch_up="all")  # type: ignore[arg-type]
