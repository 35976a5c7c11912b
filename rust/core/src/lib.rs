//! The hot core of Cenotaph: it answers "which lines, rows, bytes" and performs named atomic writes.
//!
//! Nothing here knows Python, selects a session or words a report.

pub mod append;
pub mod block;
pub mod collate;
pub mod corpus;
pub mod entries;
pub mod error;
pub mod fence;
pub mod gather;
pub mod interrupt;
pub mod killpoint;
pub mod line;
pub mod markers;
pub mod normalise;
pub mod refs;
pub mod replace;
pub mod residue;
mod scan;
pub mod scrub;
mod section;
pub mod snippets;
pub mod store;
mod tally;
mod threads;
mod unit;
pub mod walk;
pub mod wipe;
pub mod words;

pub use error::{Error, Result};
