//! fts
