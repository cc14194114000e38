"""One typed object per document type, the prompt that asks for it, and the checks on an answer.

A new document type is one new module: a model, its instructions and a `DocumentType` that joins
them (see `document_type`). Nothing else has to be touched; `registry` finds it by name.
"""
