//! The comments by which the host labels entries in Markdown, one to a line.

use crate::normalise::trim;

/// What the comment on a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comment<'a> {
    /// `<!-- openclaw-memory-promotion:KEY -->`: the entry with that key follows.
    Promotion(&'a [u8]),
    /// `<!-- openclaw-memory-lineage:KEY -->`: what the entry that follows was consolidated from.
    Lineage(&'a [u8]),
    /// `<!-- openclaw:...`: a fence of a block that the host manages.
    Managed,
}

/// Reads the comment that fills `line`; None for any other line.
///
/// White space (the ECMAScript set, BOM included) may stand around the comment and inside it. A key
/// may contain ` --> `; an empty one makes no marker. Case matters.
pub fn comment(line: &[u8]) -> Option<Comment<'_>> {
    let opened = trim(line).strip_prefix(b"<!--")?;
    let text = trim(opened);
    if text.starts_with(b"openclaw:") {
        return Some(Comment::Managed);
    }
    let text = trim(opened.strip_suffix(b"-->")?);
    if let Some(key) = text.strip_prefix(b"openclaw-memory-promotion:") {
        return keyed(key).map(Comment::Promotion);
    }
    let key = text.strip_prefix(b"openclaw-memory-lineage:")?;
    keyed(key).map(Comment::Lineage)
}

fn keyed(key: &[u8]) -> Option<&[u8]> {
    let key = trim(key);
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promotion(line: &str) -> Option<&[u8]> {
        match comment(line.as_bytes()) {
            Some(Comment::Promotion(key)) => Some(key),
            _ => None,
        }
    }

    #[test]
    fn key_is_trimmed_and_blanks_are_free() {
        for line in [
            "<!-- openclaw-memory-promotion:k1 -->",
            "<!--openclaw-memory-promotion:k1-->\n",
            "  \t<!--   openclaw-memory-promotion:   k1   -->  \r\n",
            "\u{feff}<!-- openclaw-memory-promotion:k1 -->",
            "\u{a0}<!--\u{2028}openclaw-memory-promotion:\u{3000}k1\u{b}-->\u{c}",
        ] {
            assert_eq!(promotion(line), Some(b"k1".as_slice()), "{line:?}");
        }
    }

    #[test]
    fn key_may_hold_the_end_of_a_comment() {
        assert_eq!(
            promotion("<!-- openclaw-memory-promotion:a --> b -->"),
            Some(b"a --> b".as_slice())
        );
    }

    #[test]
    fn other_lines_are_no_markers() {
        for line in [
            "<!-- openclaw-memory-promotion: -->",
            "<!-- openclaw-memory-promotion:k1 --> text",
            "text <!-- openclaw-memory-promotion:k1 -->",
            "<!-- OPENCLAW-MEMORY-PROMOTION:k1 -->",
            "<!-- openclaw-memory-promotion :k1 -->",
            "<!-->",
            "<!-- openclaw-memory-promotion:k1",
            "",
        ] {
            assert_eq!(promotion(line), None, "{line:?}");
        }
    }

    #[test]
    fn lineage_and_managed_comments_are_told_apart() {
        assert_eq!(
            comment(b"<!-- openclaw-memory-lineage:l1 -->"),
            Some(Comment::Lineage(b"l1"))
        );
        assert_eq!(
            comment(b"  <!-- openclaw:dreaming:diary:end -->\n"),
            Some(Comment::Managed)
        );
        assert_eq!(comment(b"<!-- trigger: pump -->"), None);
    }
}
