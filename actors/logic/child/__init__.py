"""One child process: launched, heard, fed and ended. It begins in ``decision``; pure."""
