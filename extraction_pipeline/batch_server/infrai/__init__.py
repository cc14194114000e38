"""Infrai's batches.

routes       `/v1/ai/batch`
discovery    `/v1/discovery`: what the server says of its own API
wire       their bodies, and every choice where the vendor's documents leave one
"""
