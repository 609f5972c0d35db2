"""Which mail goes to which run, and which run to the child. It begins in ``decision``; pure."""
