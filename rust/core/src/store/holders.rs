//! Which processes hold a lock on a database, as `/proc/locks` tells.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::store::files;

/// Process ids, other than our own, that hold a lock on the database or its side files; ascending. Empty when unknown.
pub(crate) fn holders(real: &Path) -> Vec<u32> {
    let Ok(text) = std::fs::read_to_string("/proc/locks") else {
        return Vec::new();
    };
    let files: Vec<(u64, u64)> = ["", "-wal", "-shm", "-journal"]
        .iter()
        .filter_map(|suffix| std::fs::metadata(files::beside(real, suffix)).ok())
        .map(|found| (found.dev(), found.ino()))
        .collect();
    let own = std::process::id();
    let mut pids: Vec<u32> = text
        .lines()
        .filter_map(parse)
        .filter(|lock| files.iter().any(|&file| lock.is_on(file)) && lock.pid != own)
        .map(|lock| lock.pid)
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[derive(Debug, PartialEq, Eq)]
struct Lock {
    pid: u32,
    dev: (u32, u32),
    ino: u64,
    start: u64,
}

impl Lock {
    /// The device number that a file system shows in `stat` is not always the one in `/proc/locks` (btrfs, overlayfs):
    /// then the inode and a byte that only SQLite locks decide.
    fn is_on(&self, (dev, ino): (u64, u64)) -> bool {
        let sqlite_byte =
            (0x4000_0000..0x4000_0200).contains(&self.start) || (120..=130).contains(&self.start);
        let same_device = (rustix::fs::major(dev), rustix::fs::minor(dev)) == self.dev;
        self.ino == ino && (same_device || sqlite_byte)
    }
}

/// `1: POSIX  ADVISORY  WRITE 4711 08:01:1234567 1073741826 1073742335`; lines of waiters (`->`) are no holders.
fn parse(line: &str) -> Option<Lock> {
    let mut words = line.split_ascii_whitespace().skip(1);
    if words.next()? == "->" {
        return None;
    }
    let pid = words.nth(2)?.parse().ok().filter(|&pid| pid > 0)?;
    let mut file = words.next()?.split(':');
    let major = u32::from_str_radix(file.next()?, 16).ok()?;
    let minor = u32::from_str_radix(file.next()?, 16).ok()?;
    let ino = file.next()?.parse().ok()?;
    let start = words.next()?.parse().ok()?;
    Some(Lock {
        pid,
        dev: (major, minor),
        ino,
        start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_held_lock_and_skips_waiters() {
        let line = "3: POSIX  ADVISORY  READ  4711 08:01:1234567 1073741826 1073742335";
        let lock = Lock {
            pid: 4711,
            dev: (8, 1),
            ino: 1_234_567,
            start: 0x4000_0002,
        };
        assert_eq!(parse(line), Some(lock));
        assert_eq!(
            parse("3: -> POSIX  ADVISORY  READ 4711 08:01:1234567 0 EOF"),
            None
        );
        assert_eq!(
            parse("4: OFDLCK ADVISORY  READ -1 08:01:1234567 0 EOF"),
            None
        );
        assert_eq!(parse(""), None);
    }
}
