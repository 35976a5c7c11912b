"""Looking for what a deletion promised to remove, byte for byte, in a process of its own.

It shares no code with the deletion. The search itself is `residue` in the core; here is where it looks and what it
makes of what it finds.
"""
