"""When something is due: timers of runs, ticks of schedules. It begins in ``decision``; pure."""
