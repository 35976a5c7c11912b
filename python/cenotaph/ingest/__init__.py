"""From transcripts and notes to the corpus and the short-term store: `dreaming.md` 1 and 2."""
