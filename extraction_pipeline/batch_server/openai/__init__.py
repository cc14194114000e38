"""OpenAI's files and batches.

routes       `/v1/files` and `/v1/batches`
wire         their bodies
uploads      multipart uploads, streamed to disk
input_lines  the check of an input file, line by line
"""
