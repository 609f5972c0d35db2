"""A mail made again from what an event recorded of it, where its own bytes are gone.

It is marked as such, and holds what there is: the header fields that tell who wrote what to whom in which thread, and
the text. Its other parts lie with the run, as files. Pure, and the same for the same record.
"""

import json
import re
from collections.abc import Iterator

from substrate.reference.records import Json, clean
from waypost.model.mail_scan import ID_LIMIT

MARK = "X-Waypost-Rebuilt"
"""The field that says that these aren't the bytes that were sent."""

_FIELDS = ("from", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references")
_VALUE = 4000
_TEXT = 8 * 1024 * 1024
_BREAKS = re.compile(r"[\x00-\x1f\x7f]+")


def rebuilt(payload: Json, why: str, *, message_id: str = "") -> bytes:
    """The mail of a recorded payload; of one that is no mail, a message that holds the payload as JSON.

    ``message_id`` is used where the payload names none; ``why`` says in the mail what it is.
    """
    mail = payload if isinstance(payload, dict) else {}
    raw = mail.get("rawHeaders")
    fields = {name: _first(raw, name) for name in _FIELDS} if isinstance(raw, dict) else {}
    given = _one_line(message_id)
    if not fields.get("message-id") and "@" in given and len(given) <= ID_LIMIT:
        fields["message-id"] = given
    lines = [f"{name.title().replace('-Id', '-ID')}: {value}" for name, value in fields.items() if value]
    if not fields.get("subject"):
        lines.append(f"Subject: {_one_line(why)}")
    lines += [f"{MARK}: {_one_line(why)}", "MIME-Version: 1.0"]
    lines += ["Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit"]
    texts = list(_texts(mail)) if fields else [json.dumps(payload, ensure_ascii=True)]
    body = "\n".join(texts).replace("\r\n", "\n").replace("\n", "\r\n")[:_TEXT]
    return "\r\n".join((*lines, "", body, "")).encode("utf-8", "replace")


def _first(headers: dict[str, Json], name: str) -> str:
    values = headers.get(name)
    return _one_line(clean(values[0])) if isinstance(values, list) and values else ""


def _one_line(value: str) -> str:
    return _BREAKS.sub(" ", value).strip()[:_VALUE]


def _texts(mail: dict[str, Json]) -> Iterator[str]:
    parts = mail.get("parts")
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict):
            words = clean(part.get("text"))
            yield (
                words or f"[{clean(part.get('contentType'))}: {clean(part.get('filename')) or clean(part.get('ref'))}]"
            )
