"""Short-term recall: what was noticed lately, how often, and where it came from."""
