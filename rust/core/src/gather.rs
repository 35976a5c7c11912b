//! What a deletion is about to remove, gathered as needles before it does, so that it can be looked for afterwards.
//!
//! A text that stays for good reasons would be found again and prove nothing. So each candidate is looked for in what
//! stays by the rules of the deletion, and dropped when it stands there: a snippet when a surviving session said it too, a
//! removed line or word when it also stands in a line, a chunk or a row that nothing condemns.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use std::path::PathBuf;

use unicode_normalization::UnicodeNormalization;

use crate::line::{LineReader, lines};
use crate::normalise::{trim, utf16_len};
use crate::refs::Refs;
use crate::residue::{Class, Needle, Needles};
use crate::scrub::Scrubber;
use crate::store::{ChunkText, Fate, IndexPlan, Judgement, StatePlan, StateText, Store};
use crate::walk::MemoryFile;
use crate::{Result, interrupt};

/// UTF-16 units that a text must have: shorter ones are said by everybody.
const SHORTEST: usize = 24;
/// Bytes of a text that are looked for; what holds more of it holds these.
const LONGEST: usize = 256;
/// Bytes up to which a snippet is looked for as a whole: a survivor may begin like it. Ingestion cuts snippets to 280
/// UTF-16 units.
const LONGEST_SNIPPET: usize = 1024;
/// Bytes of a full-text term that is looked for.
const WORD: usize = 8;
/// Needles of a kind that are kept in memory. Of more, those with the smallest hashes are taken: a fair sample.
const MOST: usize = 50_000;
/// First letter of the scripts of East Asia.
const UNFOLDED: char = '\u{2E80}';
/// Numbers from the middle of an embedding that are looked for.
const FLOATS: usize = 32;

/// What is asked of [`gather`].
pub struct GatherAsk<'a> {
    /// The selected sessions.
    pub refs: &'a Refs,
    /// What the plan removes from memory files.
    pub scrubber: &'a Scrubber,
    /// Snippets of the corpus lines that go.
    pub snippets: &'a [Vec<u8>],
    /// Memory files.
    pub memory: &'a [MemoryFile],
    /// Corpus files.
    pub corpus: &'a [PathBuf],
    /// What earlier runs for the same sessions removed.
    pub erased: Option<&'a Needles>,
    /// Quoted lines that surviving sessions also said stay in memory files.
    pub keep_shared: bool,
    /// Shows every row of the index and the plugin state, see [`index_rows`] and [`state_rows`]; called twice.
    pub each_row: &'a dyn Fn(Show) -> Result<()>,
}

/// Takes a row, and whether it goes.
pub type Show<'a> = &'a mut dyn FnMut(Fate, Row);

/// What to look for after the deletion.
#[derive(Debug)]
pub struct Gathered {
    /// Texts, words and embeddings.
    pub needles: Vec<Needle>,
    /// Snippets that surviving sessions also said, and that therefore stay somewhere.
    pub shared: u64,
    /// Distinct candidates, before those that stay elsewhere and those above the limit were left out.
    pub candidates: u64,
    /// What earlier runs removed, without what surviving sessions said since.
    pub erased: Option<Needles>,
}

/// Reads everything that goes, then everything that stays. Writes nothing; memory is bounded by the number of needles.
///
/// Files that cannot be read say nothing: the plan has reported them.
pub fn gather(ask: &GatherAsk) -> Result<Gathered> {
    let mut candidates = Candidates::default();
    for snippet in ask.snippets {
        candidates.add_snippet(snippet);
    }
    let mut staying = Staying::default();
    read_memory(ask, |fate, text| match fate {
        Fate::Goes => lines(text).for_each(|line| candidates.add_line(line)),
        Fate::Stays => lines(text).for_each(|line| staying.add_line(line)),
    })?;
    (ask.each_row)(&mut |fate, row| {
        if fate == Fate::Goes {
            candidates.add_row(row);
        }
    })?;
    candidates.drop_known(&staying);
    let mut sieve = Sieve::new(candidates, ask.erased);
    let files = if ask.keep_shared {
        Reach::Everything
    } else {
        Reach::Derived
    };
    read_memory(ask, |fate, line| {
        if fate == Fate::Stays {
            sieve.strike(line, files);
        }
    })?;
    read_corpus(ask.refs, ask.corpus, |line| sieve.strike_said(line))?;
    (ask.each_row)(&mut |fate, row| {
        if fate == Fate::Stays {
            sieve.strike_row(row);
        }
    })?;
    sieve.rest()
}

/// `erased` without what stands in a corpus line of a session that is not selected.
///
/// # Errors
/// Those of [`Needles::without`].
pub fn unsaid(erased: &Needles, refs: &Refs, corpus: &[PathBuf]) -> Result<Needles> {
    let mut marks = Marks::new(erased);
    read_corpus(refs, corpus, |line| marks.mark(line))?;
    marks.rest()
}

/// What one row holds.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A chunk of the index.
    Chunk(ChunkText<'a>),
    /// Path of an indexed file.
    Path(&'a [u8]),
    /// A row of the plugin state.
    State(StateText<'a>),
}

/// Shows the lines of the memory files, those that lie together and share their fate at once.
fn read_memory(ask: &GatherAsk, mut show: impl FnMut(Fate, &[u8])) -> Result<()> {
    for file in ask.memory {
        interrupt::check()?;
        let Ok(opened) = File::open(&file.path) else {
            continue;
        };
        let Ok(found) = ask.scrubber.scan(&opened) else {
            continue;
        };
        let Ok(again) = File::open(&file.path) else {
            continue;
        };
        let mut ranges = Ranges::new(&found.removed);
        let mut reader = LineReader::new(again);
        let mut at = 0;
        while let Ok(Some(block)) = reader.next_block() {
            ranges.split(block, at, &mut show);
            at += block.len() as u64;
        }
    }
    Ok(())
}

/// Shows each corpus line that stays.
fn read_corpus(refs: &Refs, corpus: &[PathBuf], mut show: impl FnMut(&[u8])) -> Result<()> {
    for path in corpus {
        interrupt::check()?;
        let Ok(opened) = File::open(path) else {
            continue;
        };
        let mut reader = LineReader::new(opened);
        while let Ok(Some(block)) = reader.next_block() {
            for line in lines(block) {
                if !refs.in_corpus_prefix(line) {
                    show(line);
                }
            }
        }
    }
    Ok(())
}

/// Shows the chunks of the index and the paths of its sources.
pub fn index_rows(store: &Store, plan: &IndexPlan, show: Show) -> Result<()> {
    store.each_chunk(plan, |fate, chunk| show(fate, Row::Chunk(chunk)))?;
    store.each_source(|path| show(Fate::Stays, Row::Path(path)))
}

/// Shows the rows of the plugin state.
pub fn state_rows(store: &Store, plan: &StatePlan, show: Show) -> Result<()> {
    store.each_state_value(plan, |fate, value| show(fate, Row::State(value)))
}

/// Where a position lies, asked in ascending order.
struct Ranges<'a> {
    rest: &'a [Range<u64>],
}

impl<'a> Ranges<'a> {
    fn new(removed: &'a [Range<u64>]) -> Self {
        Self { rest: removed }
    }

    /// Shows the parts of a block that begins at `at`. Every range ends with a line.
    fn split(&mut self, block: &[u8], at: u64, show: &mut impl FnMut(Fate, &[u8])) {
        let within = |position: u64| {
            let offset = position.saturating_sub(at);
            usize::try_from(offset).map_or(block.len(), |offset| offset.min(block.len()))
        };
        let mut from = 0;
        while let Some(first) = self.rest.first() {
            let (start, end) = (within(first.start).max(from), within(first.end));
            show(Fate::Stays, &block[from..start]);
            show(Fate::Goes, &block[start..end]);
            from = end;
            if first.end > at + block.len() as u64 {
                return;
            }
            self.rest = &self.rest[1..];
        }
        show(Fate::Stays, &block[from..]);
    }
}

/// Distinct texts in order of their hashes, at most [`MOST`].
#[derive(Default)]
struct Sample {
    kept: BTreeMap<u64, Vec<u8>>,
    seen: u64,
}

impl Sample {
    fn add(&mut self, text: &[u8]) {
        let hash = hash_of(text);
        if self.kept.contains_key(&hash) {
            return;
        }
        self.seen += 1;
        self.kept.insert(hash, text.to_vec());
        if self.kept.len() > MOST {
            self.kept.pop_last();
        }
    }
}

fn hash_of(text: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(text)
}

/// What stays in memory files, as hashes of what a candidate would be made of it. Whole files lose their chunks when one
/// line goes, so most of what goes from an index stays in a file: this saves looking for it.
#[derive(Default)]
struct Staying {
    hashes: HashSet<u64>,
}

impl Staying {
    /// Above this number no more are noted; they are found by searching.
    const MOST: usize = 1 << 20;

    fn add_line(&mut self, line: &[u8]) {
        let Some(text) = said_in(line) else {
            return;
        };
        if self.hashes.len() < Self::MOST {
            self.hashes.insert(hash_of(start_of(text)));
            self.hashes
                .extend(words_of(text).map(|word| hash_of(&word)));
        }
    }
}

/// What goes.
#[derive(Default)]
struct Candidates {
    /// What the forgotten sessions said.
    snippets: Sample,
    /// Lines that were made of it.
    derived: Sample,
    words: Sample,
    /// The middle of an embedding as it is stored.
    embeddings: Sample,
}

impl Candidates {
    fn add_snippet(&mut self, snippet: &[u8]) {
        let text = unlabelled(snippet);
        if utf16_len(snippet) >= SHORTEST {
            if text.len() <= LONGEST_SNIPPET {
                self.snippets.add(text);
            } else {
                self.derived.add(start_of(text));
            }
        }
        self.add_words(snippet);
    }

    fn add_line(&mut self, line: &[u8]) {
        let Some(text) = said_in(line) else {
            return;
        };
        if utf16_len(text) >= SHORTEST {
            self.derived.add(start_of(text));
        }
        self.add_words(text);
    }

    fn add_row(&mut self, row: Row) {
        match row {
            Row::Chunk(chunk) => {
                lines(chunk.text).for_each(|line| self.add_line(line));
                if let Some(middle) = middle(chunk.embedding) {
                    self.embeddings.add(middle);
                }
            }
            Row::State(value) => {
                let parsed = serde_json::from_slice::<serde_json::Value>(value.json);
                strings(&parsed.unwrap_or_default(), &mut |text| {
                    if is_prose(text) {
                        lines(text.as_bytes()).for_each(|line| self.add_line(line));
                    }
                });
            }
            Row::Path(_) => {}
        }
    }

    fn add_words(&mut self, text: &[u8]) {
        words_of(text).for_each(|word| self.words.add(&word));
    }

    /// Leaves out what stays.
    fn drop_known(&mut self, staying: &Staying) {
        for sample in [&mut self.derived, &mut self.words] {
            sample.kept.retain(|hash, _| !staying.hashes.contains(hash));
        }
    }
}

/// In which texts a needle that stays may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Snippets, too.
    Everything,
    /// Only what was made of snippets: where a snippet stands, something was forgotten to be removed.
    Derived,
}

/// Candidates that were found in nothing that stays.
struct Sieve<'a> {
    erased: Option<Marks<'a>>,
    texts: Struck,
    words: Struck,
    snippets: usize,
    candidates: u64,
}

/// Needles with a mark for each.
struct Struck {
    needles: Vec<Needle>,
    compiled: Needles,
    found: Vec<bool>,
}

impl<'a> Sieve<'a> {
    fn new(candidates: Candidates, erased: Option<&'a Needles>) -> Self {
        let Candidates {
            snippets,
            derived,
            words,
            embeddings,
        } = candidates;
        let count = snippets.seen + derived.seen + words.seen + embeddings.seen;
        let derived: Vec<Vec<u8>> = derived
            .kept
            .into_iter()
            .filter(|(hash, _)| !snippets.kept.contains_key(hash))
            .map(|(_, text)| text)
            .collect();
        let number = snippets.kept.len();
        let texts = snippets.kept.into_values().chain(derived);
        let needles = texts
            .map(Needle::Text)
            .chain(embeddings.kept.into_values().map(Needle::Raw));
        Self {
            erased: erased.map(Marks::new),
            texts: Struck::new(needles.collect()),
            words: Struck::new(words.kept.into_values().map(Needle::Word).collect()),
            snippets: number,
            candidates: count,
        }
    }

    fn strike(&mut self, text: &[u8], reach: Reach) {
        let from = if reach == Reach::Everything {
            0
        } else {
            self.snippets
        };
        self.texts.strike(text, Class::Whole, from);
        self.words.strike(&folded(text), Class::Word, 0);
    }

    /// The same for what survivors said: earlier runs may have removed it, too.
    fn strike_said(&mut self, text: &[u8]) {
        self.strike(text, Reach::Everything);
        if let Some(erased) = &mut self.erased {
            erased.mark(text);
        }
    }

    fn strike_row(&mut self, row: Row) {
        match row {
            Row::Chunk(chunk) => {
                if chunk.transcript {
                    self.strike_said(chunk.text);
                } else {
                    self.strike(chunk.text, Reach::Derived);
                }
                self.texts.strike(chunk.embedding, Class::Whole, 0);
            }
            Row::Path(path) => self.strike(path, Reach::Derived),
            Row::State(value) => match value.judgement {
                Judgement::Read => self.strike(value.json, Reach::Derived),
                Judgement::Survivors => self.strike_said(value.json),
                Judgement::Unread => self.strike(value.json, Reach::Everything),
            },
        }
    }

    fn rest(self) -> Result<Gathered> {
        let shared = self.texts.found[..self.snippets]
            .iter()
            .filter(|struck| **struck)
            .count();
        let mut needles = self.texts.rest();
        let vectors: Vec<Needle> = needles.iter().filter_map(vector).collect();
        needles.extend(vectors);
        needles.extend(self.words.rest());
        Ok(Gathered {
            needles,
            shared: shared as u64,
            candidates: self.candidates,
            erased: self.erased.map(Marks::rest).transpose()?,
        })
    }
}

/// A compiled set with a mark for each needle.
struct Marks<'a> {
    needles: &'a Needles,
    marked: Vec<bool>,
}

impl<'a> Marks<'a> {
    fn new(needles: &'a Needles) -> Self {
        Self {
            needles,
            marked: vec![false; needles.len()],
        }
    }

    /// Marks the needles that stand in the text.
    fn mark(&mut self, text: &[u8]) {
        for hit in self.needles.hits_in(text) {
            self.marked[hit.needle as usize] = true;
        }
    }

    fn rest(self) -> Result<Needles> {
        self.needles.without(&self.marked)
    }
}

impl Struck {
    fn new(needles: Vec<Needle>) -> Self {
        let compiled = Needles::new(needles.clone());
        // Hits are numbered by what was compiled: nothing may have been left out.
        debug_assert_eq!(compiled.len(), needles.len());
        Self {
            compiled,
            found: vec![false; needles.len()],
            needles,
        }
    }

    /// Marks the needles from the `from`-th on that stand in the text.
    fn strike(&mut self, text: &[u8], class: Class, from: usize) {
        for hit in self.compiled.hits_in(text) {
            let number = hit.needle as usize;
            if hit.class == class && number >= from {
                self.found[number] = true;
            }
        }
    }

    fn rest(self) -> Vec<Needle> {
        let marked = self.needles.into_iter().zip(self.found);
        marked
            .filter_map(|(needle, struck)| (!struck).then_some(needle))
            .collect()
    }
}

/// What a line of Markdown says; a comment or a heading says nothing.
fn said_in(line: &[u8]) -> Option<&[u8]> {
    let text = trim(line);
    let says = !text.starts_with(b"<!--") && !text.starts_with(b"#");
    says.then(|| unlabelled(bare(text)))
}

/// Terms of a full-text index that are long enough.
fn words_of(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    // What stands beside a letter that is not ASCII is part of a longer word.
    let whole = if text.is_ascii() { text } else { &[] };
    let words = whole.split(|byte| !byte.is_ascii_alphanumeric());
    words
        .filter(|word| word.len() >= WORD)
        .map(<[u8]>::to_ascii_lowercase)
}

/// A line without what makes it an item or a quotation.
fn bare(line: &[u8]) -> &[u8] {
    let marks = |byte: &u8| b"-*+> \t".contains(byte);
    let start = line.iter().position(|byte| !marks(byte));
    &line[start.unwrap_or(line.len())..]
}

/// A snippet without the label of its speaker.
fn unlabelled(text: &[u8]) -> &[u8] {
    let labels: [&[u8]; 2] = [b"User: ", b"Assistant: "];
    let found = labels.iter().find_map(|label| text.strip_prefix(*label));
    found.unwrap_or(text)
}

/// The beginning of a text, up to a whole character.
fn start_of(text: &[u8]) -> &[u8] {
    if text.len() <= LONGEST {
        return text;
    }
    let mut end = LONGEST;
    while end > 0 && text[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    &text[..end]
}

/// Numbers from the middle of a stored embedding; None when there are too few to tell it from others.
fn middle(embedding: &[u8]) -> Option<&[u8]> {
    const NUMBER: usize = size_of::<f64>();
    let count = embedding.len() / NUMBER;
    if count < 4 || embedding.iter().all(|byte| *byte == 0) {
        return None;
    }
    let taken = count.min(FLOATS);
    let start = (count - taken) / 2 * NUMBER;
    embedding.get(start..start + taken * NUMBER)
}

/// The same numbers as the vector table has them.
fn vector(needle: &Needle) -> Option<Needle> {
    let Needle::Raw(bytes) = needle else {
        return None;
    };
    #[expect(clippy::cast_possible_truncation, reason = "the table holds float32")]
    let floats = bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|number| f64::from_le_bytes(*number) as f32);
    Some(Needle::Vector(floats.collect()))
}

/// A text as a full-text tokenizer folds it: lower case, without accents.
fn folded(text: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(text.len());
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    for run in text.chunk_by(|one, two| is_letter(one) == is_letter(two)) {
        if run.is_ascii() {
            folded.extend(run.to_ascii_lowercase());
        } else {
            fold_word(&String::from_utf8_lossy(run), &mut folded);
        }
    }
    folded
}

/// Adds a word with letters that are not ASCII. Nothing from [`UNFOLDED`] on becomes an ASCII letter, and those are all
/// that is looked for.
fn fold_word(word: &str, folded: &mut Vec<u8>) {
    if word.chars().all(|letter| letter >= UNFOLDED) {
        folded.extend(word.bytes());
        return;
    }
    let bare = word.nfd().filter(|letter| !is_accent(*letter));
    let lower = bare.flat_map(char::to_lowercase).collect::<String>();
    folded.extend(lower.bytes());
}

fn is_accent(letter: char) -> bool {
    unicode_normalization::char::is_combining_mark(letter)
}

/// Whether a member of a row may say something: ids, hashes, dates and relative paths have no blank, and a folder of
/// somebody's machine, which may have one, stands in many rows that stay.
fn is_prose(text: &str) -> bool {
    !text.starts_with('/')
        && text.contains(|letter: char| letter.is_whitespace() || !letter.is_ascii())
}

fn strings(value: &serde_json::Value, show: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => show(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, show)),
        serde_json::Value::Object(members) => {
            members.values().for_each(|member| strings(member, show));
        }
        _ => {}
    }
}
