"""A local HTTP server that speaks batch wire formats and answers by rules or by a relayed model.

One core takes batches to their end; what is about one wire format is in a package of its own, and
translates at the edge: requests into the core's lines when they come in, results out of the core's
lines when they are read.

app            the ASGI application and the process around it
command        the command line
config         what a server is told at its start
gate, calls    the key before every call, and what is known of a call
api_errors     errors in the form of the call's wire format
bodies, json_items   bodies of calls, streamed; large JSON read item by item

faults         what is to go wrong, by a plan

dialects       the wire formats there are
openai, anthropic, gemini, infrai   one package each: routes, wire, translation

records, store, database, statistics   what was accepted: files and batches, in SQLite
state_folder   the folder that is the server's memory
core_lines     requests as the core has them
progress       one batch's answers while it is worked on
processor      takes accepted batches to their end, across restarts
answers        what answers a request: the interface, and the choice by model name
rules, relay   the two that do
questions      which requests ask the same
chat           what the wire formats share of chat completions
result_lines, result_files, results   results: a line, their files, reading them
"""
