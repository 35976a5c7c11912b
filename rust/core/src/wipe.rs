//! Overwriting the blocks of a file that has just lost its name: best effort, and honest about what it is worth.
//!
//! On ext4 and xfs the blocks that held the text are written over before they are freed. A file system that writes every
//! change elsewhere keeps the old blocks whatever is done here; so do snapshots and the spare blocks of an SSD.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use crate::interrupt;

static BLANK: [u8; 64 << 10] = [0; 64 << 10];

/// What became of the blocks of a file that was replaced or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Old {
    /// Type of its file system: `ext4`, `xfs`, `tmpfs`, `btrfs`, ..., `other`.
    pub file_system: &'static str,
    /// What was done.
    pub fate: Fate,
}

/// What was done to old blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Zeros were written over them and synced.
    Overwritten,
    /// The file has another name (a hard link), under which the text can still be read.
    Linked,
    /// The file system does not write in place.
    Unsupported,
    /// They could not be written, or not to the end.
    Failed,
}

impl Fate {
    /// As it is reported.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten",
            Self::Linked => "linked",
            Self::Unsupported => "unsupported",
            Self::Failed => "failed",
        }
    }
}

/// Writes zeros over the whole of an open file that has no name any more.
pub(crate) fn overwrite(file: &mut File, writable: bool) -> Old {
    let (file_system, in_place) = file_system(file);
    let fate = match rustix::fs::fstat(&*file) {
        Ok(found) if found.st_nlink > 0 => Fate::Linked,
        _ if !in_place => Fate::Unsupported,
        Ok(found) if writable => {
            let size = u64::try_from(found.st_size).unwrap_or(0);
            match blank(file, size, interrupt::asked) {
                Ok(true) => Fate::Overwritten,
                Ok(false) | Err(_) => Fate::Failed,
            }
        }
        _ => Fate::Failed,
    };
    Old { file_system, fate }
}

/// False when it was stopped before the end.
fn blank(file: &mut File, mut size: u64, stop: impl Fn() -> bool) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    while size > 0 {
        if stop() {
            return Ok(false);
        }
        let part = usize::try_from(size).map_or(BLANK.len(), |size| size.min(BLANK.len()));
        file.write_all(&BLANK[..part])?;
        size -= part as u64;
    }
    file.sync_data()?;
    Ok(true)
}

/// Type of the file system that holds a file, and whether it writes in place. Numbers: `statfs(2)`.
fn file_system(file: &File) -> (&'static str, bool) {
    let Ok(found) = rustix::fs::fstatfs(file) else {
        return ("other", true);
    };
    // The field is 32 bits wide on some machines, and its sign differs.
    match u32::try_from(found.f_type & 0xFFFF_FFFF).unwrap_or(0) {
        0xEF53 => ("ext4", true),
        0x5846_5342 => ("xfs", true),
        0x0102_1994 => ("tmpfs", true),
        0x794C_7630 => ("overlay", true),
        0x6969 => ("nfs", true),
        0x9123_683E => ("btrfs", false),
        0x2FC1_2FC1 => ("zfs", false),
        0xF2F5_2010 => ("f2fs", false),
        0xCA45_1A4E => ("bcachefs", false),
        _ => ("other", true),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_were_not_all_written_are_not_called_overwritten() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"text").unwrap();
        assert!(!blank(&mut file, 4, || true).unwrap());
        assert!(blank(&mut file, 4, || false).unwrap());
        assert!(blank(&mut file, 0, || true).unwrap());
    }
}
