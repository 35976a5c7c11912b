//! The databases of a state directory: one SQLite, opened here and nowhere else.
//!
//! One reader serves both kinds of database: those that OpenClaw made and those of our own.
//! Reading changes no file, not even a `-wal`; deleting overwrites what it frees (`secure_delete`).

pub mod beside;
pub mod chunks;
pub mod connection;
mod ddl;
mod files;
mod fts;
mod holders;
mod json;
pub mod lock;
pub mod observed;
pub mod origins;
pub mod pages;
pub mod plugin_state;
mod query;
pub mod receipts;
pub mod registry;
mod scan;
mod schema;
pub mod sessions;
pub mod staging;
mod texts;
pub mod tombstones;
mod vec0;

pub use chunks::{Ask, IndexAsk, IndexCounts, IndexPlan};
pub use connection::{Access, Kind, Store};
pub(crate) use files::is_live;
pub use observed::Observed;
pub use origins::Lineage;
pub use pages::Freed;
pub use plugin_state::{Judgement, StateAsk, StateCounts, StatePlan};
pub use receipts::{Break, Link, Receipt, Stage};
pub use sessions::{Archive, Node, Participant, Window, archive_file_text};
pub use staging::{Origin, StateRow, Workspace};
pub use texts::{ChunkText, Fate, StateText};
