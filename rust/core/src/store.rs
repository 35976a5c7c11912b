//! The databases of a state directory: one SQLite, opened here and nowhere else.
//!
//! One reader serves both kinds of database: those that OpenClaw made and those of our own.
//! Reading changes no file, not even a `-wal`; deleting overwrites what it frees (`secure_delete`).

pub mod chunks;
pub mod connection;
pub mod fts;
pub mod json;
pub mod lock;
pub mod origins;
pub mod plugin_state;
pub mod query;
pub mod schema;
pub mod sessions;
pub mod tombstones;
pub mod vec0;

pub use chunks::{IndexAsk, IndexCounts, IndexPlan};
pub use connection::{Access, Kind, Store};
pub use origins::Lineage;
pub use plugin_state::{Observed, StateAsk, StateCounts, StatePlan};
pub use sessions::{Archive, Node, Participant, Window, archive_file_text};
