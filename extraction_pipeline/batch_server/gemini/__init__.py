"""Google's Gemini batches.

routes             `batchGenerateContent` and `/v1beta/batches`
files              `/v1beta/files`: resumable uploads, and the download of results
wire               their bodies
translation        a request as a chat completion body, a result in their words
openapi_schema     their subset of OpenAPI as JSON Schema
"""
