"""Transcripts: records, who said a line, what memory may see of it, and which memory files it wrote.

Pure functions over bytes. Redaction of secrets is a matter of ingestion.
"""

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, cast

__all__ = [
    "CuratedWrite",
    "InternalRun",
    "Line",
    "OriginClass",
    "Projection",
    "Record",
    "curated_writes",
    "is_cron_run_key",
    "is_narrative_name",
    "jsonl_events",
    "origin_classes",
    "parse_records",
    "project",
]

type OriginClass = Literal["owner", "agent", "untrusted", "system"]
type InternalRun = Literal["narrative", "cron"]
