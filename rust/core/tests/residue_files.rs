//! Where `verify` finds needles: files, what is packed in them, and every part of a database.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;
use std::path::{Path, PathBuf};

use cenotaph_core::residue::{Found, Needle, Needles, Part, files_below, find_residue};
use flate2::{Compression, write::GzEncoder};
use rusqlite::Connection;

const TEXT: &str = "the secret of the drowned lighthouse keeper, told only once";

fn needles() -> Needles {
    Needles::new(vec![Needle::Text(TEXT.as_bytes().to_vec())])
}

fn search(paths: &[&Path], needles: &Needles) -> Found {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    find_residue(&paths, needles, &[], 2).unwrap()
}

/// Tables with packed values that hold needles.
fn packed(found: &Found) -> Vec<&str> {
    let members = found
        .places
        .iter()
        .filter(|place| place.part == Part::Member);
    members.filter_map(|place| place.table.as_deref()).collect()
}

/// Part, table and number of needles of each place.
fn places(found: &Found) -> Vec<(Part, Option<&str>, u64)> {
    let places = found.places.iter();
    places
        .map(|place| (place.part, place.table.as_deref(), place.needles))
        .collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).unwrap()
}

fn written(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn database(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "PRAGMA page_size = 4096; PRAGMA secure_delete = OFF; PRAGMA cell_size_check = ON",
    )
    .unwrap();
    conn
}

/// Text without the needle that does not compress.
fn filler(length: usize) -> String {
    let mut state = 7_u32;
    let letters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from((state >> 24) % 26).unwrap())
    });
    letters.take(length).collect()
}

#[test]
fn plain_files_and_their_offsets() {
    let folder = tempfile::tempdir().unwrap();
    let holds = written(folder.path(), "a.md", format!("0123456789{TEXT}"));
    let clean = written(folder.path(), "b.md", "nothing to see");
    let gone = folder.path().join("c.md");
    let found = search(&[&holds, &clean, &gone], &needles());
    assert_eq!(places(&found), [(Part::File, None, 1)]);
    assert_eq!((found.places[0].offset, found.bytes), (10, 10 + 59 + 14));
    assert!(found.failures.is_empty());
}

#[test]
fn a_needle_across_the_border_of_two_reads() {
    let folder = tempfile::tempdir().unwrap();
    for before in [(1 << 20) - 1, 1 << 20, (1 << 20) + 30, (2 << 20) + 300] {
        let content = [filler(before).as_bytes(), TEXT.as_bytes()].concat();
        let path = written(folder.path(), "a.md", content);
        let found = search(&[&path], &needles());
        assert_eq!(found.places[0].offset, before as u64);
    }
}

#[test]
fn fragments_count_in_logs_but_not_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let piece = &TEXT[..40];
    let file = written(folder.path(), "a.md", piece);
    let log = written(folder.path(), "a.sqlite-wal", piece);
    let journal = written(folder.path(), "a.sqlite-journal", piece);
    let found = search(&[&file, &log, &journal], &needles());
    let expected = [(Part::Log, None, 1), (Part::Journal, None, 1)];
    assert_eq!(places(&found), expected);
}

#[test]
fn packed_files_with_several_members_and_two_levels() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("{}{TEXT}", filler(3 << 20));
    let members = [gzip(b"first"), gzip(long.as_bytes())].concat();
    let frames = [zstd(b"first"), zstd(long.as_bytes())].concat();
    let twice = zstd(&gzip(long.as_bytes()));
    let thrice = gzip(&zstd(&gzip(TEXT.as_bytes())));
    let names = ["a.gz", "b.zst", "c.zst", "d.gz"];
    let paths: Vec<PathBuf> = names
        .into_iter()
        .zip([members, frames, twice, thrice])
        .map(|(name, content)| written(folder.path(), name, content))
        .collect();
    let found = find_residue(&paths, &needles(), &[], 0).unwrap();
    // What does not compress may stand in a packed file as it is.
    let members = found
        .places
        .iter()
        .filter(|place| place.part == Part::Member);
    let opened: Vec<&PathBuf> = members.map(|place| &place.path).collect();
    assert_eq!(opened, paths[..3].iter().collect::<Vec<_>>());
    assert!(found.failures.is_empty());
}

#[test]
fn a_damaged_member_is_a_failure_and_searched_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("{TEXT}{}", filler(1 << 20));
    for (name, mut content) in [
        ("a.gz", gzip(long.as_bytes())),
        ("a.zst", zstd(long.as_bytes())),
    ] {
        content.truncate(content.len() - 9);
        let path = written(folder.path(), name, content);
        let found = search(&[&path], &needles());
        assert_eq!(places(&found), [(Part::Member, None, 1)], "{name}");
        assert_eq!(found.failures.len(), 1);
        assert!(!found.failures[0].1.contains(&TEXT[..12]));
    }
}

#[test]
fn live_rows_and_indexes_belong_to_their_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("named as you like");
    let conn = database(&path);
    conn.execute_batch(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT); CREATE INDEX by_body ON notes (body);
         CREATE TABLE other (body TEXT PRIMARY KEY) WITHOUT ROWID",
    )
    .unwrap();
    conn.execute("INSERT INTO notes (body) VALUES (?1)", [TEXT])
        .unwrap();
    conn.execute("INSERT INTO other VALUES (?1)", [TEXT])
        .unwrap();
    drop(conn);
    let found = search(&[&path], &needles());
    let expected = [(Part::Row, Some("notes"), 1), (Part::Row, Some("other"), 1)];
    assert_eq!(places(&found), expected);
    assert!(found.failures.is_empty());
}

#[test]
fn careless_deletion_leaves_slack_and_free_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let conn = database(&path);
    conn.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)")
        .unwrap();
    let long = format!("{}{TEXT}", filler(9_000));
    for body in ["one", TEXT, "three", &long] {
        conn.execute("INSERT INTO notes (body) VALUES (?1)", [body])
            .unwrap();
    }
    let found = search(&[&path], &needles());
    assert_eq!(places(&found), [(Part::Row, Some("notes"), 1)]);
    conn.execute("DELETE FROM notes WHERE id IN (2, 4)", [])
        .unwrap();
    drop(conn);
    let found = search(&[&path], &needles());
    let expected = [(Part::Slack, Some("notes"), 1), (Part::Free, None, 1)];
    assert_eq!(places(&found), expected);
}

#[test]
fn slack_behind_the_end_of_an_overflow_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let conn = database(&path);
    conn.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)")
        .unwrap();
    let long = format!("{}{TEXT}", filler(7_000));
    conn.execute("INSERT INTO notes (body) VALUES (?1)", [&long])
        .unwrap();
    conn.execute("DELETE FROM notes", []).unwrap();
    conn.execute("INSERT INTO notes (body) VALUES (?1)", [&long[..4_097]])
        .unwrap();
    drop(conn);
    let found = search(&[&path], &needles());
    assert_eq!(places(&found), [(Part::Slack, Some("notes"), 1)]);
}

#[test]
fn values_cut_by_page_borders_are_searched_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    // Somewhere in this range the border between the local part and the overflow page cuts the needle.
    for before in (3_900..4_300).step_by(7) {
        let path = folder.path().join(format!("{before}.sqlite"));
        let conn = database(&path);
        conn.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT)")
            .unwrap();
        let values = [
            filler(before - 1_000),
            format!("{}{TEXT}{}", filler(1_000), filler(5_000)),
        ];
        conn.execute("INSERT INTO notes (title, body) VALUES (?1, ?2)", values)
            .unwrap();
        drop(conn);
        let found = search(&[&path], &needles());
        assert_eq!(places(&found), [(Part::Row, Some("notes"), 1)], "{before}");
    }
}

#[test]
fn packed_values_are_opened_unless_their_table_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let conn = database(&path);
    conn.execute_batch("CREATE TABLE events (data BLOB); CREATE TABLE archives (data BLOB)")
        .unwrap();
    conn.execute("INSERT INTO events VALUES (?1)", [zstd(TEXT.as_bytes())])
        .unwrap();
    let long = format!("{TEXT}{}", filler(90_000));
    conn.execute("INSERT INTO archives VALUES (?1)", [gzip(long.as_bytes())])
        .unwrap();
    conn.execute(
        "INSERT INTO archives VALUES (?1)",
        [&zstd(long.as_bytes())[..9_000]],
    )
    .unwrap();
    drop(conn);
    let kept = ["events".to_owned()];
    let found = find_residue(std::slice::from_ref(&path), &needles(), &kept, 1).unwrap();
    assert_eq!(packed(&found), ["archives"]);
    let (failed, reason) = &found.failures[0];
    assert_eq!(
        (failed, reason.as_str()),
        (&path, "a compressed value of table archives is damaged")
    );
    let found = search(&[&path], &needles());
    assert_eq!(packed(&found), ["archives", "events"]);
}

#[test]
fn terms_count_in_full_text_tables_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let conn = database(&path);
    conn.execute_batch(
        "CREATE TABLE notes (body TEXT); CREATE VIRTUAL TABLE finder USING fts5(body, content='');
         CREATE TABLE other_data (body TEXT);
         INSERT INTO notes VALUES ('drowned lighthouse'); INSERT INTO other_data VALUES ('lighthouse');
         INSERT INTO finder (rowid, body) VALUES (1, 'lighthouse')",
    )
    .unwrap();
    drop(conn);
    let terms = Needles::new(vec![Needle::Word(b"lighthouse".to_vec())]);
    let found = search(&[&path], &terms);
    assert_eq!(places(&found), [(Part::Row, Some("finder_data"), 1)]);
}

#[test]
fn vectors_inside_a_long_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let conn = database(&path);
    conn.execute_batch("CREATE TABLE chunks (vectors BLOB)")
        .unwrap();
    let vector: Vec<f32> = (0..384_u16).map(|n| f32::from(n) / 1_000.0 - 0.1).collect();
    let bytes: Vec<u8> = vector
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    for before in 0..12 {
        conn.execute("DELETE FROM chunks", []).unwrap();
        let slots = [vec![0; before * 384], bytes.clone(), vec![0; 9_000]].concat();
        conn.execute("INSERT INTO chunks VALUES (?1)", [slots])
            .unwrap();
        let found = search(
            &[&path],
            &Needles::new(vec![Needle::Vector(vector.clone())]),
        );
        assert!(
            places(&found).contains(&(Part::Row, Some("chunks"), 1)),
            "{before}"
        );
    }
}

#[test]
fn a_log_beside_a_database_changes_nothing_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let conn = database(&path);
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE notes (body TEXT)",
    )
    .unwrap();
    let long = format!("{}{TEXT}{}", filler(4_040), filler(5_000));
    conn.execute("INSERT INTO notes VALUES (?1)", [&long])
        .unwrap();
    let copy = tempfile::tempdir().unwrap();
    for name in ["a.sqlite", "a.sqlite-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let (paths, failures) = files_below(&[copy.path().to_path_buf()]).unwrap();
    assert!(failures.is_empty());
    let found = find_residue(&paths, &needles(), &[], 0).unwrap();
    assert!(places(&found).contains(&(Part::Row, Some("notes"), 1)));
    assert!(places(&found).contains(&(Part::Log, None, 1)));
    assert!(found.failures.is_empty());
    assert_eq!(files_below(&[copy.path().to_path_buf()]).unwrap().0, paths);
}

#[test]
fn what_cannot_be_attributed_is_reported_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let conn = database(&path);
    conn.execute_batch("CREATE TABLE notes (body TEXT)")
        .unwrap();
    for _ in 0..100 {
        conn.execute("INSERT INTO notes VALUES (?1)", [TEXT])
            .unwrap();
    }
    drop(conn);
    let mut content = std::fs::read(&path).unwrap();
    content.truncate(content.len() - 4_096);
    std::fs::write(&path, content).unwrap();
    let found = search(&[&path], &needles());
    assert_eq!(places(&found), [(Part::Row, None, 1)]);
    assert_eq!(found.failures.len(), 1);
}

#[test]
fn more_hits_than_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let conn = database(&path);
    conn.execute_batch("CREATE TABLE notes (body TEXT); CREATE TABLE last (body TEXT)")
        .unwrap();
    let short = "twelve bytes";
    conn.execute("INSERT INTO notes VALUES (?1)", [short.repeat(300_000)])
        .unwrap();
    conn.execute("INSERT INTO last VALUES (?1)", [TEXT])
        .unwrap();
    drop(conn);
    let both = Needles::new(vec![
        Needle::Text(short.as_bytes().to_vec()),
        Needle::Text(TEXT.as_bytes().to_vec()),
    ]);
    let found = search(&[&path], &both);
    assert_eq!(
        places(&found),
        [(Part::Row, Some("last"), 1), (Part::Row, Some("notes"), 1)]
    );
    assert_eq!(found.bytes, std::fs::metadata(&path).unwrap().len());
}

#[test]
fn shingles_find_their_places_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "a.md", TEXT);
    let kept = needles().shingles(b"key");
    let found = search(&[&path], &Needles::from_shingles(&[kept], b"key").unwrap());
    assert_eq!(places(&found), [(Part::File, None, 1)]);
}

#[test]
fn files_once_each_and_no_links() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("b/.c")).unwrap();
    let (one, two) = (written(&root, "z", "1"), written(&root, "b/.c/x", "2"));
    std::fs::hard_link(&one, root.join("zz")).unwrap();
    std::os::unix::fs::symlink(&two, root.join("link")).unwrap();
    std::os::unix::fs::symlink(&root, root.join("b/loop")).unwrap();
    let roots = [
        root.clone(),
        root.join("b"),
        root.join("missing"),
        one.clone(),
    ];
    let (files, failures) = files_below(&roots).unwrap();
    assert_eq!(files, [two, one]);
    assert!(failures.is_empty());
}
