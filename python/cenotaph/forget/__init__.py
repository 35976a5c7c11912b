"""Deletion: `select` -> `plan` -> `apply` -> `report`."""
