"""The receiver of webhooks: a small ASGI application that needs the database and nothing else.

A delivery is a hint to poll now. It is let in by its signature (`standard`, `signed_token`,
`shared_secret`), read for the id of the job that it is about (`event`), and kept
(`ledger.deliveries`).
"""
