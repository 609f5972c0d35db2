"""What a workflow's author writes with.

workflow.py   Workflow: the declaration, and what the host needs to know of it
steps.py      Step: a declared step, callable in runs, in other steps and outside of both
calls.py      receive, approve, sleep, send; idempotency_key and progress inside a step
requests.py   the durable calls as data            scope.py   where code is running
errors.py     what an author may meet

Imports the model and nothing else of ours; the child runtime fills in scope.Engine. The public door is ``waypost``.
"""
