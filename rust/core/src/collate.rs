//! collate
