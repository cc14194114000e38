"""A local HTTP server that speaks batch wire formats and answers by rules or by a relayed model.

app            the ASGI application and the process around it
command        the command line
config         what a server is told at its start
openai_routes  `/v1/files` and `/v1/batches`; a further wire format is a further routes module
openai_wire    their bodies
uploads        multipart uploads, streamed to disk
records, store what was accepted: files and batches, in SQLite
input_lines    the check of an input file, line by line
progress       one batch's answers while it is worked on
processor      takes accepted batches to their end, across restarts
answers        what answers a request: the interface, and the choice by model name
rules, relay   the two that do
"""
