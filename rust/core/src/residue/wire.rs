//! Needles as bytes, for a pipe to another process of the same build: no format to keep.

use super::Needle;
use super::pattern::narrow;
use crate::{Error, Result};

const KNOWN: &[u8; 8] = b"CNEEDLE1";
const HIDDEN: &[u8; 8] = b"CSHINGL1";

/// What a set was made from.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Known(Vec<Needle>),
    Hidden { key: Vec<u8>, shingles: Vec<u8> },
}

impl Message {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Known(needles) => {
                out.extend(KNOWN);
                for needle in needles {
                    let (tag, content) = parts(needle);
                    out.push(tag);
                    push(&mut out, &content);
                }
            }
            Self::Hidden { key, shingles } => {
                out.extend(HIDDEN);
                push(&mut out, key);
                push(&mut out, shingles);
            }
        }
        out
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or_else(|| Error::Refused("the needles are damaged".to_owned()))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        if let Some(mut rest) = bytes.strip_prefix(KNOWN) {
            let mut needles = Vec::new();
            while let Some((&tag, after)) = rest.split_first() {
                let (content, after) = pull(after)?;
                needles.push(needle(tag, content)?);
                rest = after;
            }
            return Some(Self::Known(needles));
        }
        let (key, rest) = pull(bytes.strip_prefix(HIDDEN)?)?;
        let (shingles, rest) = pull(rest)?;
        rest.is_empty().then(|| Self::Hidden {
            key: key.to_vec(),
            shingles: shingles.to_vec(),
        })
    }
}

fn push(out: &mut Vec<u8>, content: &[u8]) {
    out.extend(narrow(content.len()).to_le_bytes());
    out.extend(content);
}

fn pull(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Kind and content of a needle; equal ones are equal needles.
pub(super) fn parts(needle: &Needle) -> (u8, Vec<u8>) {
    match needle {
        Needle::Text(text) => (0, text.clone()),
        Needle::Word(term) => (1, term.clone()),
        Needle::Raw(bytes) => (2, bytes.clone()),
        Needle::Vector(values) => (3, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
    }
}

fn needle(tag: u8, content: &[u8]) -> Option<Needle> {
    Some(match tag {
        0 => Needle::Text(content.to_vec()),
        1 => Needle::Word(content.to_vec()),
        2 => Needle::Raw(content.to_vec()),
        3 => {
            let (values, rest) = content.as_chunks();
            if !rest.is_empty() {
                return None;
            }
            Needle::Vector(values.iter().map(|v| f32::from_le_bytes(*v)).collect())
        }
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let message = Message::Known(vec![
            Needle::Text(b"caf\xc3\xa9 at noon".to_vec()),
            Needle::Word(b"remembering".to_vec()),
            Needle::Raw(vec![0, 255, 7]),
            Needle::Vector(vec![0.25, -1.5]),
        ]);
        let bytes = message.to_bytes();
        assert_eq!(Message::from_bytes(&bytes).unwrap(), message);
        assert!(Message::from_bytes(&bytes[..bytes.len() - 1]).is_err());
        let hidden = Message::Hidden {
            key: b"key".to_vec(),
            shingles: vec![1; 16],
        };
        let bytes = hidden.to_bytes();
        assert_eq!(Message::from_bytes(&bytes).unwrap(), hidden);
        assert!(Message::from_bytes(&[bytes.as_slice(), b"x"].concat()).is_err());
        assert!(Message::from_bytes(b"").is_err());
    }
}
