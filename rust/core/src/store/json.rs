//! JSON that is changed in one place and kept byte for byte everywhere else.

use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object as stored: its members in order, each value as raw text.
pub(crate) struct Members<'a>(Vec<(JsonText, &'a RawValue)>);

/// A decoded string. JavaScript strings may hold lone surrogates; they stay as the three bytes that UTF-8 would give.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JsonText(Vec<u8>);

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = JsonText;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonText, E> {
        Ok(JsonText(text.as_bytes().to_vec()))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<JsonText, E> {
        Ok(JsonText(bytes.to_vec()))
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The only way to a string with a lone surrogate in serde_json.
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'a> Members<'a> {
    /// Members of an object, or `None` when `json` is something else.
    pub(crate) fn parse(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Raw value of a member; the last one of that name counts, as in JavaScript.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self
            .0
            .iter()
            .rev()
            .find(|(key, _)| key.0 == name.as_bytes());
        found.map(|(_, value)| value.get())
    }

    /// Members of an object member.
    pub(crate) fn object(&self, name: &str) -> Option<Members<'a>> {
        Members::parse(self.raw(name)?)
    }

    /// Elements of an array member, raw.
    pub(crate) fn array(&self, name: &str) -> Option<Vec<&'a str>> {
        let elements: Vec<&'a RawValue> = serde_json::from_str(self.raw(name)?).ok()?;
        Some(elements.into_iter().map(RawValue::get).collect())
    }

    /// Bytes of a string member.
    pub(crate) fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        unquote(self.raw(name)?)
    }

    /// Text of a string member without lone surrogates.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.bytes(name)?).ok()
    }

    /// A whole number.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// Any number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// The object as compact JSON in which the members named in `changes` have the given raw values.
    pub(crate) fn with(&self, changes: &[(&str, &str)]) -> String {
        let members: Vec<String> = self
            .0
            .iter()
            .map(|(key, value)| {
                let change = changes.iter().find(|(name, _)| key.0 == name.as_bytes());
                format!(
                    "{}:{}",
                    quote(&key.0),
                    change.map_or(value.get(), |(_, raw)| raw)
                )
            })
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

/// Bytes of a JSON string, or `None` when `raw` is no string.
fn unquote(raw: &str) -> Option<Vec<u8>> {
    serde_json::from_str::<JsonText>(raw)
        .ok()
        .map(|text| text.0)
}

/// JSON string as `JSON.stringify` writes it: only quotes, backslashes, control characters and lone surrogates are
/// escaped. Other damaged UTF-8 becomes replacement characters.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(text) => {
                push_escaped(&mut out, text);
                break;
            }
            Err(error) => {
                let (valid, damaged) = rest.split_at(error.valid_up_to());
                push_escaped(&mut out, &String::from_utf8_lossy(valid));
                let (unit, length) = lone_surrogate(damaged).map_or_else(
                    || {
                        (
                            "\u{FFFD}".to_owned(),
                            error.error_len().unwrap_or(damaged.len()),
                        )
                    },
                    |unit| (format!("\\u{unit:04x}"), 3),
                );
                out.push_str(&unit);
                rest = &damaged[length..];
            }
        }
    }
    out.push('"');
    out
}

fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
}

/// The UTF-16 unit whose would-be UTF-8 bytes `bytes` begin with.
fn lone_surrogate(bytes: &[u8]) -> Option<u16> {
    match *bytes {
        [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, ..] => {
            Some(0xD000 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F))
        }
        _ => None,
    }
}

/// What JavaScript hashes for a string: UTF-8 with U+FFFD in place of each lone surrogate.
pub(crate) fn hashed_form(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if lone_surrogate(&bytes[at..]).is_some() {
            out.extend_from_slice("\u{FFFD}".as_bytes());
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_change_leaves_every_other_byte() {
        let json = r#"{"b":1.50,"a":{"z":[1, 2],"y":"\u00e9"},"content":"old","big":12345678901234567890123}"#;
        let members = Members::parse(json).unwrap();
        assert_eq!(
            members.with(&[("content", "\"new\"")]),
            json.replace("old", "new")
        );
    }

    #[test]
    fn writes_strings_as_javascript_does() {
        let text = "é\u{2028}😀\"\\/\u{1}\n\u{7f}";
        assert_eq!(
            quote(text.as_bytes()),
            "\"é\u{2028}😀\\\"\\\\/\\u0001\\n\u{7f}\""
        );
        assert_eq!(unquote(&quote(text.as_bytes())).unwrap(), text.as_bytes());
    }

    #[test]
    fn a_lone_surrogate_survives() {
        let raw = r#""a\ud83db\udc00""#;
        let bytes = unquote(raw).unwrap();
        assert_eq!(quote(&bytes), raw);
        assert_eq!(hashed_form(&bytes), "a\u{FFFD}b\u{FFFD}".as_bytes());
        assert_eq!(unquote(r#""\ud83d\ude00""#).unwrap(), "😀".as_bytes());
    }

    #[test]
    fn the_last_member_of_a_name_counts() {
        let members = Members::parse(r#"{"key":"first","key":"last"}"#).unwrap();
        assert_eq!(members.text("key").unwrap(), "last");
        assert!(Members::parse("[]").is_none());
        assert!(Members::parse("{").is_none());
    }
}
