"""The lifecycle of one deployment: one class for each state. It begins in ``decision``; pure."""
