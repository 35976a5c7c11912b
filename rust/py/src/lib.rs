//! The module cenotaph._core.
