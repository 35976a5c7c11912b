//! normalise
