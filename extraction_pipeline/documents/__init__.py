"""Documents: where they come from, what they are called, and what text is read out of them.

`sources` lists the files of a collection and reads their bytes, `identity` names bytes and texts by
their hash, `reading` turns bytes into text (or into a reason why there is none), `reader_process`
does so where a bad file can do no harm, and `store` keeps bytes under their hash. Nothing here
knows Dagster, the database or a provider.
"""
