"""The five actors' decisions: pure functions from (state, message, time) to the next state and its effects.

    supervisor     the lifecycle of a deployment
                   _states, _sleep, _books, _effects   its records: states, what all of them keep, what is to be done
                   _child, _crashes                    a process, its exits, the pause after one, the latch
                   _planned, _draining, _retiring, _recycling, _heeding   what is wanted of one that runs
                   _dozing                             nothing to do, and so to sleep
                   _ending, _forwards, _delivering     how a crew ends; what is handed on meanwhile, and to a child
                   _words, _why, _down                 how it is, for people
    child_process  one child: _states; _ears (bytes in), _requests, _outbox, _pace (how fast it may write)
    dispatch       mail to runs, and runs to the child; its first docstring lists the others; _marks: seen from beside
    scheduler      _timers of runs, _ticks of schedules
    terminal       events to watchers
    executing, ordinals   a run at work, in words; a small set of numbers

Each actor's shell is the file of its name in ``actors``.
"""
