"""What `waypost --help` lists: the verbs in the groups in which they are looked for, each with a whole sentence.

Promise: a verb that no group names is listed all the same, at the end.
"""

from typing import Any

from typer.core import TyperGroup

GROUPS: dict[str, tuple[str, ...]] = {
    "Host a workflow": ("run", "deploy", "send"),
    "Look": ("runs", "why", "show", "log", "tail", "top", "schedule", "metrics"),
    "Answer and steer runs": ("approvals", "approve", "reject", "signal", "cancel", "resume", "queue"),
    "Look after a deployment": ("drain", "recycle", "reset", "grants", "credentials"),
    "Prove it, keep it, move it": (
        "verify",
        "fsck",
        "receipt",
        "backup",
        "restore",
        "rotate-key",
        "accept-rollback",
        "import",
    ),
}
_WHOLE = 200  # characters: longer than any first sentence; what doesn't fit into the line is wrapped, and not cut


class Whole(TyperGroup):
    """A verb of several, whose help has the whole sentence of each."""

    def sections(self, ctx: Any) -> dict[str, list[str]]:  # click's, which typer keeps where its version says
        """What is listed below which heading."""
        return {"Commands": list(self.list_commands(ctx))}

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # click's, as above
        """Write the sections."""
        widest = max(len(name) for name in self.commands)
        for heading, names in self.sections(ctx).items():
            rows = [(name.ljust(widest), self.commands[name].get_short_help_str(_WHOLE)) for name in names]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class Verbs(Whole):
    """The group of all verbs, whose help has a section for each of ``GROUPS``, and one for what is in none."""

    def sections(self, ctx: Any) -> dict[str, list[str]]:  # click's, as above
        """By ``GROUPS``."""
        sections = {heading: [name for name in names if name in self.commands] for heading, names in GROUPS.items()}
        grouped = {name for names in sections.values() for name in names}
        return {**sections, "Others": [name for name in self.list_commands(ctx) if name not in grouped]}
