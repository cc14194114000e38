"""The ledger: tables, migrations, and the statements that move every state."""
