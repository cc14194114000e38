"""What providers ask for tokens, as the operator writes it down, and how it is read."""
