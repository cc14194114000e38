"""Anthropic's Message Batches.

routes       `/v1/messages/batches`
wire         their bodies
translation  a request as a chat completion body, a result as a line of theirs
"""
