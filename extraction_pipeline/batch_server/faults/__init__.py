"""Faults on demand: what goes wrong in a server, by a plan.

plan          what a plan can say
in_force      the plan that is in force: which fault is due, and how often each was applied
called        what a call asks for
network       faults of calls: connections, errors, bodies (ASGI middleware)
rewriting     answers with other words in them, in each wire format
answering     a model's answers and result rows that are wrong
routes        `GET` and `PUT /faults`
"""
