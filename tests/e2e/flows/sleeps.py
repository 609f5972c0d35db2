"""A workflow that rests: between two mails, for a while, for a word, for a signal."""

from waypost import Mail, Workflow, approve, receive, signal, sleep

sleeper = Workflow("sleeper", address="sleeper@example.com", mail_to=["boss@example.com"])


@sleeper.step
def note(text: str) -> str:
    """Something to do."""
    return text


@sleeper.run
async def rest(mail: Mail) -> str:
    """Rest as the mail says, once for each word in it."""
    for word in mail.text.split():
        if word == "mail":
            await note((await receive()).text.strip())
        elif word == "word":
            await note(str((await approve("Go on?", who="boss@example.com")).approved))
        elif word == "signal":
            await note(str(await signal("go")))
        else:
            await sleep(float(word))
            await note("awake")
    return "done"
