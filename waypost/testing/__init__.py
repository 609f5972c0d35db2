"""The test kit: fakes with types and docstrings, and real hosts under a test's hand. Users' tests may import it, too.

time and waiting    clock (stands still until it is turned), patience (the one limit for all waits)
disks               disks (fail on purpose), cuts (what a power cut leaves), stores (repositories in a line)
decisions           supervision, childhood, dispatching, gating, gracing: one of each state and message
without processes   desk, paper (the substrate's rules in memory), dispatch_bench, scheduler_bench, keeping
runs                memory_run, memory_log: a workflow without a host; random_program
one real child      scripted_child, scripted_host, child_stage, boxed
a real host         host_process, host_here, mortal (may be killed), background, verbs, deployment, sleeping
away from others    own_pids (a test's body in a pid namespace), unprivileged (tests as nobody)
crash tests         dying (a command that ends at its n-th point)
                    killing, boundaries, snapshots, nursery: hosts that die at a flush, copies of what the power leaves
                    torture, torture_check, driver, errands, reaper, evidence, corruptions, misdeeds
generated pages     diagrams, lifecycle, doors; histories: recorded runs; cases: hostile inputs

What is made by hand is typed and keeps the real rules; where the real thing can run, it does.
"""
