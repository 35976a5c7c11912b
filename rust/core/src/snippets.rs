//! snippets
