"""Collections: documents of one type read from one source, each declared in one YAML file here.

`loader.load_collections` reads a folder of such files, `collection` holds what they mean, and
`recipe` says what an extraction version is made of, so that a change of it can be seen.
"""
