//! Atomic removal of byte ranges.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cenotaph_core::Error;
use cenotaph_core::replace::{remove_file_if, remove_ranges, stamp, sync_folders};
use cenotaph_core::wipe::Fate;
use proptest::prelude::*;

type Found = (Vec<Range<u64>>, usize);

fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note.md");
    fs::write(&path, content).unwrap();
    (folder, path)
}

/// Removes every `x`, and says how many bytes there were.
fn every_x(content: &mut dyn Read) -> io::Result<Found> {
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes)?;
    let places = (0u64..).zip(&bytes).filter(|(_, byte)| **byte == b'x');
    Ok((places.map(|(at, _)| at..at + 1).collect(), bytes.len()))
}

fn removed(path: &Path, find: impl Fn(&mut dyn Read) -> io::Result<Found>) -> Option<usize> {
    remove_ranges(path, find).unwrap().map(|(value, _)| value)
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn ranges_go_and_the_rest_stays() {
    let (folder, path) = file(b"xa\xffx\0\r\nbx");
    assert_eq!(removed(&path, every_x), Some(9));
    assert_eq!(fs::read(&path).unwrap(), b"a\xff\0\r\nb");
    assert_eq!(entries(folder.path()), ["note.md"]);
    sync_folders(&BTreeSet::from([folder.path().to_path_buf()])).unwrap();
}

#[test]
fn nothing_found_touches_nothing() {
    let (_folder, path) = file(b"abc");
    let before = stamp(&path).unwrap();
    assert_eq!(removed(&path, every_x), None);
    assert_eq!(stamp(&path).unwrap(), before);
}

#[test]
fn an_emptied_file_stays() {
    let (_folder, path) = file(b"xxx");
    assert_eq!(removed(&path, every_x), Some(3));
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn the_finder_need_not_read_to_the_end() {
    let content = vec![b'a'; 300_000];
    let (_folder, path) = file(&content);
    remove_ranges(&path, |_| Ok((vec![1..9, 9..299_999], ())))
        .unwrap()
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"aa");
}

#[test]
fn mode_is_kept() {
    for mode in [0o444, 0o600, 0o664, 0o755] {
        let (_folder, path) = file(b"ax");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        remove_ranges(&path, every_x).unwrap().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        assert_eq!(fs::read(&path).unwrap(), b"a");
    }
}

#[test]
fn owner_is_kept() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root can give a file away.
    }
    let (_folder, path) = file(b"ax");
    std::os::unix::fs::chown(&path, Some(1234), Some(2345)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6750)).unwrap();
    remove_ranges(&path, every_x).unwrap().unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777),
        (1234, 2345, 0o6750)
    );
}

#[test]
fn the_longest_names_work_v9() {
    for length in [243, 255] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(length));
        fs::write(&path, b"ax").unwrap();
        remove_ranges(&path, every_x).unwrap().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"a");
    }
}

#[test]
fn a_file_that_changed_meanwhile_is_judged_again() {
    let (folder, path) = file(b"ax");
    let calls = Cell::new(0);
    let found = remove_ranges(&path, |content| {
        let found = every_x(content)?;
        calls.set(calls.get() + 1);
        match calls.get() {
            1 => fs::write(&path, b"bxb")?,
            2 => {
                // An editor that saves by rename.
                fs::write(folder.path().join("new"), b"cxcx")?;
                fs::rename(folder.path().join("new"), &path)?;
            }
            _ => {}
        }
        Ok(found)
    });
    assert_eq!(found.unwrap().map(|(bytes, _)| bytes), Some(4));
    assert_eq!(fs::read(&path).unwrap(), b"cc");
    assert_eq!(
        (calls.get(), entries(folder.path())),
        (3, vec!["note.md".to_owned()])
    );
}

#[test]
fn a_change_of_the_same_size_and_time_is_seen() {
    let (_folder, path) = file(b"ax");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let calls = Cell::new(0);
    let found = remove_ranges(&path, |content| {
        let found = every_x(content)?;
        if calls.replace(1) == 0 {
            fs::write(&path, b"xb")?;
            fs::File::options()
                .write(true)
                .open(&path)?
                .set_modified(modified)?;
        }
        Ok(found)
    });
    assert_eq!(found.unwrap().map(|(bytes, _)| bytes), Some(2));
    assert_eq!(fs::read(&path).unwrap(), b"b");
}

#[test]
fn a_file_that_never_rests_is_refused() {
    let (folder, path) = file(b"ax");
    let calls = Cell::new(0);
    let result = remove_ranges(&path, |content| {
        let found = every_x(content)?;
        calls.set(calls.get() + 1);
        fs::write(&path, format!("x{}", calls.get()))?;
        Ok(found)
    });
    let Err(Error::Refused(message)) = result else {
        panic!("{result:?}");
    };
    assert!(message.contains("note.md"));
    assert_eq!((calls.get(), fs::read(&path).unwrap()), (8, b"x8".to_vec()));
    assert_eq!(entries(folder.path()), ["note.md"]);
}

fn io_error<T: std::fmt::Debug>(result: Result<T, Error>, path: &Path) -> io::Error {
    match result {
        Err(Error::Io {
            path: named,
            source,
        }) => {
            assert_eq!(named, path);
            source
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failing_reader_leaves_the_file() {
    let (folder, path) = file(b"ax");
    let full = || io::Error::from_raw_os_error(28);
    let error = io_error(remove_ranges::<()>(&path, |_| Err(full())), &path);
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(
        (fs::read(&path).unwrap(), entries(folder.path()).len()),
        (b"ax".to_vec(), 1)
    );
}

#[test]
fn ranges_out_of_order_leave_the_file() {
    let (folder, path) = file(b"abcdef");
    let error = io_error(remove_ranges(&path, |_| Ok((vec![3..5, 1..2], ()))), &path);
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert_eq!(
        (fs::read(&path).unwrap(), entries(folder.path()).len()),
        (b"abcdef".to_vec(), 1)
    );
}

#[test]
fn a_folder_a_link_or_nothing_in_the_files_place() {
    let (folder, path) = file(b"ax");
    let place = folder.path().join("place");
    assert_eq!(
        io_error(remove_ranges(&place, every_x), &place).kind(),
        io::ErrorKind::NotFound
    );
    symlink(&path, &place).unwrap();
    io_error(remove_ranges(&place, every_x), &place);
    assert_eq!(fs::read(&path).unwrap(), b"ax");
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    assert_eq!(
        io_error(remove_ranges(&place, every_x), &place).kind(),
        io::ErrorKind::IsADirectory
    );
}

#[test]
fn a_folder_that_takes_the_files_place_while_it_is_rewritten() {
    let (folder, path) = file(b"ax");
    let result = remove_ranges(&path, |content| {
        let found = every_x(content)?;
        fs::rename(&path, folder.path().join("away"))?;
        fs::create_dir(&path)?;
        Ok(found)
    });
    assert_eq!(io_error(result, &path).kind(), io::ErrorKind::IsADirectory);
    assert_eq!(entries(folder.path()), ["away", "note.md"]);
    assert_eq!(fs::read(folder.path().join("away")).unwrap(), b"ax");
}

#[test]
fn a_folder_that_takes_no_file_is_an_error_and_no_truncation() {
    if rustix::process::geteuid().is_root() {
        return; // Root may write anywhere.
    }
    let (folder, path) = file(b"ax");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let result = remove_ranges(&path, every_x);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        io_error(result, &path).kind(),
        io::ErrorKind::PermissionDenied
    );
    assert_eq!(
        (fs::read(&path).unwrap(), entries(folder.path()).len()),
        (b"ax".to_vec(), 1)
    );
}

#[test]
fn a_hard_link_keeps_its_text() {
    let (folder, path) = file(b"ax");
    fs::hard_link(&path, folder.path().join("other")).unwrap();
    remove_ranges(&path, every_x).unwrap().unwrap();
    assert_eq!(fs::read(folder.path().join("other")).unwrap(), b"ax");
}

fn is_blank(content: &mut dyn Read) -> io::Result<bool> {
    let mut text = String::new();
    content.read_to_string(&mut text)?;
    Ok(text.trim().is_empty())
}

#[test]
fn files_are_unlinked_by_what_they_hold() {
    let (folder, path) = file(b" \n");
    assert!(remove_file_if(&path, is_blank).unwrap().is_some());
    assert!(remove_file_if(&path, is_blank).unwrap().is_none());
    fs::write(&path, "text").unwrap();
    assert!(remove_file_if(&path, is_blank).unwrap().is_none());
    assert_eq!(entries(folder.path()), ["note.md"]);
}

#[test]
fn an_unlink_notices_what_was_appended() {
    let (_folder, path) = file(b"\n");
    let removed = remove_file_if(&path, |content| {
        let blank = is_blank(content)?;
        fs::write(&path, "new text")?;
        Ok(blank)
    });
    assert!(removed.unwrap().is_none());
    assert_eq!(fs::read(&path).unwrap(), b"new text");
}

#[test]
fn the_old_blocks_are_overwritten() {
    let (_folder, path) = file(b"secret x");
    let mut old = fs::File::open(&path).unwrap();
    let (_, done) = remove_ranges(&path, every_x).unwrap().unwrap();
    let expected = if ["btrfs", "zfs", "f2fs", "bcachefs"].contains(&done.file_system) {
        Fate::Unsupported
    } else {
        Fate::Overwritten
    };
    assert_eq!(done.fate, expected);
    let mut content = Vec::new();
    old.read_to_end(&mut content).unwrap();
    assert_eq!(content == [0; 8], expected == Fate::Overwritten);
}

#[test]
fn a_removed_file_is_overwritten_too() {
    let (_folder, path) = file(b" \n ");
    let mut old = fs::File::open(&path).unwrap();
    let done = remove_file_if(&path, is_blank).unwrap().unwrap();
    let mut content = Vec::new();
    old.read_to_end(&mut content).unwrap();
    assert_eq!(content == [0; 3], done.fate == Fate::Overwritten);
}

#[test]
fn a_file_with_another_name_is_left_as_it_is_there() {
    let (folder, path) = file(b"secret x");
    let other = folder.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    let (_, done) = remove_ranges(&path, every_x).unwrap().unwrap();
    assert_eq!(done.fate, Fate::Linked);
    assert_eq!(fs::read(&other).unwrap(), b"secret x");
    assert_eq!(fs::read(&path).unwrap(), b"secret ");
}

#[test]
fn a_file_that_may_only_be_read_is_replaced() {
    let (_folder, path) = file(b"secret x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let (_, done) = remove_ranges(&path, every_x).unwrap().unwrap();
    // Root may write it nevertheless.
    assert!(matches!(
        done.fate,
        Fate::Failed | Fate::Overwritten | Fate::Unsupported
    ));
    assert_eq!(fs::read(&path).unwrap(), b"secret ");
}

#[test]
fn a_folder_that_is_gone_cannot_be_synced() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    io_error(sync_folders(&BTreeSet::from([gone.clone()])), &gone);
    // A file system that syncs no folders.
    sync_folders(&BTreeSet::from([PathBuf::from("/proc")])).unwrap();
}

#[test]
fn stamps_tell_states_apart() {
    let (folder, path) = file(b"a");
    let first = stamp(&path).unwrap();
    assert_eq!(first, stamp(&path).unwrap());
    assert_eq!(first.size, 1);
    fs::write(&path, b"ab").unwrap();
    assert_ne!(first, stamp(&path).unwrap());
    let gone = folder.path().join("gone");
    io_error(stamp(&gone), &gone);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_ranges_go(content in prop::collection::vec(any::<u8>(), 0..400_000), cuts in prop::collection::vec(0..400_000usize, 0..12)) {
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= content.len()).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let ranges: Vec<Range<usize>> = cuts.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        let mut kept = content.clone();
        for range in ranges.iter().rev() {
            kept.drain(range.clone());
        }
        let (_folder, path) = file(&content);
        let ranges: Vec<Range<u64>> = ranges.iter().map(|range| range.start as u64..range.end as u64).collect();
        let found = remove_ranges(&path, |_| Ok((ranges.clone(), ())));
        prop_assert_eq!(found.unwrap().is_some(), !ranges.is_empty());
        prop_assert_eq!(fs::read(&path).unwrap(), kept);
    }
}
