//! How text names a session: the prefix of a corpus line, a path, a `Session ID` row.
//!
//! Rule R of the host: at the start or after white space, `[`, `/` or `:` stands `sessions/<agent>/` or
//! `<agent>:`, then a run of characters that is the session's id or a transcript file named after it;
//! or a word `Session ID:` and then the id.

use std::collections::HashSet;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};
use sha2::{Digest, Sha256};

use crate::line::body;
use crate::normalise::{space_len, trim, trim_end, trim_start};

/// Bytes of an id from which the host names files and paths by its hash.
const LONG_ID: usize = 96;

/// The selected sessions of one agent, as text can name them.
#[derive(Debug)]
pub struct Refs {
    names: HashSet<Box<[u8]>>,
    keys: HashSet<Box<[u8]>>,
    /// `sessions/<agent>/`
    folder: Finder<'static>,
    /// `<agent>:`
    agent: Finder<'static>,
    /// `[<agent>/sessions/<agent>/`, with which nearly every corpus line begins.
    usual: Vec<u8>,
}

/// A metadata row as the session-memory hook writes it (V6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookRow {
    /// What the row tells.
    pub field: HookField,
    /// Its value is one of the selected sessions or keys.
    pub selected: bool,
    /// The name of the field is set in bold; otherwise the row is a plain list row.
    pub bold: bool,
}

/// The fields of a hook note that name a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookField {
    /// `Session ID`
    Id,
    /// `Session Key`
    Key,
}

impl Refs {
    /// The sessions to recognise.
    ///
    /// `ids` are session ids of `agent`; one of over 96 bytes is also known by `session-<sha256>`.
    /// `keys` are session keys whose every generation is selected; only `Session Key` rows ask for them.
    pub fn new(
        agent: &str,
        ids: impl IntoIterator<Item = String>,
        keys: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut names = HashSet::new();
        // An empty id or key would be found wherever a value is missing.
        for id in ids.into_iter().filter(|id| !id.is_empty()) {
            if id.len() > LONG_ID {
                names.insert(hashed_name(&id));
            }
            names.insert(id.into_bytes().into_boxed_slice());
        }
        let boxed = |key: String| key.into_bytes().into_boxed_slice();
        let keys = keys.into_iter().filter(|key| !key.is_empty());
        Self {
            names,
            keys: keys.map(boxed).collect(),
            folder: Finder::new(&format!("sessions/{agent}/")).into_owned(),
            agent: Finder::new(&format!("{agent}:")).into_owned(),
            usual: format!("[{agent}/sessions/{agent}/").into_bytes(),
        }
    }

    /// True when no session and no key is selected.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.keys.is_empty()
    }

    /// Whether the text names a selected session anywhere (rule R).
    pub fn named_in(&self, text: &[u8]) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let in_folder = |rest: &[u8]| self.is_named(run_of(rest));
        let of_agent = |rest: &[u8]| !rest.starts_with(b"sessions/") && self.is_named(run_of(rest));
        any_after(&self.folder, text, in_folder)
            || any_after(&self.agent, text, of_agent)
            || self.named_by_row(text)
    }

    /// Whether the rendered prefix of a corpus line names a selected session (V5).
    ///
    /// The prefix is what stands between a `[`, which only blanks may precede, and the next `]`. What
    /// the line says after it never matters.
    pub fn in_corpus_prefix(&self, line: &[u8]) -> bool {
        if let Some(named) = self.in_usual_prefix(line) {
            return named;
        }
        let Some(inside) = trim_start(line).strip_prefix(b"[") else {
            return false;
        };
        let Some(end) = memchr(b']', inside) else {
            return false;
        };
        self.named_in(&inside[..end])
    }

    /// Whether a transcript or archive file name, the path of one, or a plain id is a selected session.
    pub fn is_run(&self, run: &[u8]) -> bool {
        if self.is_named(run) {
            return true;
        }
        let name = run.rsplit(|&byte| byte == b'/').next();
        name.is_some_and(|name| self.is_named(name))
    }

    /// Reads a metadata row of a hook note (V6); None when the line is none.
    ///
    /// Forms: `- **Session ID**: x`, `**Session ID:** x`, `* Session ID: x`, and the same for
    /// `Session Key`. A row that is neither bold nor in a list is none.
    pub fn hook_row(&self, line: &[u8]) -> Option<HookRow> {
        let text = trim_start(body(line));
        let row = after_list_marker(text);
        let (field, bold, value) = hook_field(row)?;
        if !bold && row.len() == text.len() {
            return None;
        }
        let selected = match field {
            HookField::Id => self.names.contains(row_value(value)),
            HookField::Key => self.keys.contains(row_value(value)),
        };
        Some(HookRow {
            field,
            selected,
            bold,
        })
    }

    fn is_named(&self, run: &[u8]) -> bool {
        !run.is_empty() && (self.names.contains(run) || self.names.contains(session_id_of_run(run)))
    }

    fn named_by_row(&self, text: &[u8]) -> bool {
        session_id_rows(text).any(|colon| {
            let value = trim_start(&text[colon + 1..]);
            self.names.contains(run_until(value, b";"))
        })
    }

    /// The answer for a line that begins as nearly all do; None sends it to the general rule.
    fn in_usual_prefix(&self, line: &[u8]) -> Option<bool> {
        let rest = line.strip_prefix(self.usual.as_slice())?;
        let run = run_of(rest);
        let number = rest[run.len()..].strip_prefix(b"#L")?;
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
        (number.get(digits.count()) == Some(&b']')).then(|| self.is_named(run))
    }
}

/// Snippet of a corpus line: what follows `[..#L<digits>]` at column 0, trimmed. None when it has none.
pub fn corpus_snippet(line: &[u8]) -> Option<&[u8]> {
    let inside = line.strip_prefix(b"[")?;
    let end = memchr(b']', inside)?;
    let digits = inside[..end].iter().rev();
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
    let is_reference = digits > 0 && inside[..end - digits].ends_with(b"#L");
    let text = trim(&inside[end + 1..]);
    (is_reference && !text.is_empty()).then_some(text)
}

/// Reduces a transcript file name to the id of its session; any other run is returned as it is.
///
/// Names: `<id>.jsonl`, and `<id>.jsonl.reset.<stamp>` or `<id>.jsonl.deleted.<stamp>`, where the stamp
/// is a time such as `2026-11-18T09-00-00.000Z`, and a generation (32 hex digits) and `.zst` may follow.
pub fn session_id_of_run(run: &[u8]) -> &[u8] {
    // A plain id is the common case, and setting up a search for `.jsonl.` costs more than the rest of the line.
    if memchr(b'.', run).is_none() {
        return run;
    }
    let id = run.strip_suffix(TRANSCRIPT).or_else(|| id_of_archive(run));
    id.filter(|id| !id.is_empty()).unwrap_or(run)
}

const TRANSCRIPT: &[u8] = b".jsonl";

fn id_of_archive(run: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::rfind(run, b".jsonl.")?;
    let ending = &run[at + TRANSCRIPT.len()..];
    let stamped = ending
        .strip_prefix(b".reset.")
        .or_else(|| ending.strip_prefix(b".deleted."))?;
    let stamped = stamped.strip_suffix(b".zst").unwrap_or(stamped);
    let is_archive = is_stamp(stamped) || stamp_of_generation(stamped).is_some_and(is_stamp);
    is_archive.then(|| &run[..at])
}

/// What stands before a dot and 32 lower-case hex digits.
fn stamp_of_generation(stamped: &[u8]) -> Option<&[u8]> {
    let (stamp, generation) = stamped.split_at_checked(stamped.len().checked_sub(32)?)?;
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    generation
        .iter()
        .all(is_hex)
        .then(|| stamp.strip_suffix(b"."))?
}

/// Whether the text is a time as file names have it, with or without milliseconds.
fn is_stamp(text: &[u8]) -> bool {
    let has_form = |form: &[u8]| {
        text.len() == form.len()
            && text.iter().zip(form).all(|(byte, sign)| match sign {
                b'0' => byte.is_ascii_digit(),
                sign => byte == sign,
            })
    };
    has_form(b"0000-00-00T00-00-00.000Z") || has_form(b"0000-00-00T00-00-00Z")
}

const SESSION_ID: &[u8] = b"session id";
const SESSION_KEY: &[u8] = b"session key";

/// Positions of the colon of every `Session ID:` in the text, whatever the case, that begins a word.
pub(crate) fn session_id_rows(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    memchr_iter(b':', text).filter(|&colon| {
        let name = &text[..colon];
        ends_with_ignoring_case(name, SESSION_ID)
            && !matches!(name[..name.len() - SESSION_ID.len()], [.., before] if is_word_byte(before))
    })
}

/// First position at or after `from` at which a `Session ID` or `Session Key` row may end its name.
///
/// Cheap, and never misses what [`session_id_rows`] or [`Refs::hook_row`] would find.
pub(crate) fn next_session_row(text: &[u8], from: usize) -> Option<usize> {
    let colons = memchr_iter(b':', text.get(from..)?);
    colons.map(|at| from + at).find(|&colon| {
        let mut name = &text[..colon];
        while let [rest @ .., b'*' | b'_'] = name {
            name = rest;
        }
        ends_with_ignoring_case(name, SESSION_ID) || ends_with_ignoring_case(name, SESSION_KEY)
    })
}

fn ends_with_ignoring_case(text: &[u8], ending: &[u8]) -> bool {
    let Some(start) = text.len().checked_sub(ending.len()) else {
        return false;
    };
    text[start..].eq_ignore_ascii_case(ending)
}

fn hashed_name(id: &str) -> Box<[u8]> {
    let mut name = b"session-".to_vec();
    for byte in Sha256::digest(id.as_bytes()) {
        name.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    name.into_boxed_slice()
}

/// Calls `holds` with what follows each occurrence that stands where a reference may begin.
fn any_after(finder: &Finder<'_>, text: &[u8], holds: impl Fn(&[u8]) -> bool) -> bool {
    let mut from = 0;
    while let Some(at) = finder.find(&text[from..]) {
        let start = from + at;
        if may_begin(&text[..start]) && holds(&text[start + finder.needle().len()..]) {
            return true;
        }
        // One byte on, not one occurrence on: an agent called `sessions` overlaps itself.
        from = start + 1;
    }
    false
}

fn may_begin(before: &[u8]) -> bool {
    matches!(before, [] | [.., b'[' | b'/' | b':']) || trim_end(before).len() < before.len()
}

fn run_of(text: &[u8]) -> &[u8] {
    run_until(text, b"]#;:/")
}

fn run_until<'a>(text: &'a [u8], stops: &[u8]) -> &'a [u8] {
    let end = (0..text.len()).find(|&at| stops.contains(&text[at]) || space_len(&text[at..]) > 0);
    &text[..end.unwrap_or(text.len())]
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `text` after a list marker and its blanks; all of it when it has none.
fn after_list_marker(text: &[u8]) -> &[u8] {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = match &text[digits..] {
        [b'-' | b'*' | b'+', rest @ ..] if digits == 0 => rest,
        [b'.' | b')', rest @ ..] if digits > 0 => rest,
        _ => return text,
    };
    if space_len(rest) == 0 {
        return text;
    }
    trim_start(rest)
}

/// Field, bold or not, and everything after the colon.
fn hook_field(row: &[u8]) -> Option<(HookField, bool, &[u8])> {
    let bold = [b"**".as_slice(), b"__"]
        .into_iter()
        .find(|bold| row.starts_with(bold));
    let marks = bold.unwrap_or_default();
    let (field, rest) = field_name(&row[marks.len()..])?;
    let after = rest.strip_prefix(marks);
    let value = after
        .and_then(|rest| rest.strip_prefix(b":"))
        .or_else(|| rest.strip_prefix(b":")?.strip_prefix(marks))?;
    Some((field, bold.is_some(), value))
}

fn field_name(text: &[u8]) -> Option<(HookField, &[u8])> {
    for (name, field) in [(SESSION_ID, HookField::Id), (SESSION_KEY, HookField::Key)] {
        if let Some((start, rest)) = text.split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name)
        {
            return Some((field, rest));
        }
    }
    None
}

/// First word of a row's value, without the backticks of inline code.
fn row_value(value: &[u8]) -> &[u8] {
    let value = trim_start(value);
    let value = value.strip_prefix(b"`").unwrap_or(value);
    run_until(value, b";`")
}
