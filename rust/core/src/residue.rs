//! What is left of forgotten texts in the bytes of files: the search behind `verify`.
//!
//! The purge is other code, so that an error in one is not an error in both; only what earlier runs removed it knows by
//! these hashes, too. It decides by lines, rows and rules; this looks at every byte of every file for a list of
//! [`Needle`]s, each in all [`spellings`](Needle).

use std::path::PathBuf;

mod anchor;
mod attribute;
mod engine;
mod files;
mod member;
pub mod naive;
mod needles;
mod page;
mod pattern;
mod rows;
mod search;
mod shingle;
mod spelling;
mod stream;
mod wire;

pub use files::files_below;
pub use needles::{Hit, Needles};
pub use search::find_residue;
pub use spelling::Class;

/// Something that must not be left, in the form in which the caller knows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Needle {
    /// UTF-8 text of 12 bytes or more, without a newline. Looked for as UTF-8, UTF-16 of both byte orders, JSON string
    /// (with and without `\u....` for what is not ASCII, and as a JSON string inside a JSON string), Markdown with
    /// escaped punctuation, and base64 in its three alignments and two alphabets. Where no live content is, pieces of
    /// 32 bytes of texts of 48 bytes or more count, too.
    Text(Vec<u8>),
    /// A full-text term of 8 bytes or more, in lower case. Segments of full-text indexes leave out what a term shares
    /// with the one before it, so its last 8 bytes are looked for; they count in full-text tables and where no live
    /// content is.
    Word(Vec<u8>),
    /// 16 bytes or more, looked for as they are.
    Raw(Vec<u8>),
    /// An embedding. Looked for by its middle, as little-endian float32 and float64 (64 bytes, all if it is shorter,
    /// not if it is below 16 bytes or all zero) and as int8, `round(x * 127)` (32 bytes, of which 24 must not be 0 and
    /// at least 4 differ).
    Vector(Vec<f32>),
}

/// Where in a file something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A file that is no database, its log or its journal.
    File,
    /// Inside a gzip or zstd file, or inside a compressed value of a database.
    Member,
    /// Live content of a table or of one of its indexes.
    Row,
    /// Bytes that no live content takes, of a page that belongs to a table.
    Slack,
    /// A page that belongs to no table.
    Free,
    /// A write-ahead log.
    Log,
    /// A rollback journal.
    Journal,
}

impl Part {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Member => "member",
            Self::Row => "row",
            Self::Slack => "slack",
            Self::Free => "free",
            Self::Log => "log",
            Self::Journal => "journal",
        }
    }
}

/// A place that holds needles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Where in the file.
    pub part: Part,
    /// Table of a database, for rows and slack, and for members in its values. `None` for live content when the pages
    /// could not be attributed; a failure says why.
    pub table: Option<String>,
    /// Distinct needles found there; shingles count each for itself.
    pub needles: u64,
    /// First hit in the file. For a member of a file: in what was unpacked. For a value that was read through its table:
    /// where the b-tree of the table begins.
    pub offset: u64,
}

/// What a search came to.
#[derive(Debug, Default)]
pub struct Found {
    /// Places with needles, in the order of the files that were given, then of part and table.
    pub places: Vec<Place>,
    /// Files that could not be searched to their end, with the reason; they may hold anything.
    pub failures: Vec<(PathBuf, String)>,
    /// Bytes of files that were looked at, unpacked bytes and values not counted.
    pub bytes: u64,
}
