//! Which bytes of a database page are live (<https://www.sqlite.org/fileformat2.html#b_tree_pages>).
//!
//! The page is read as it stands in the file; nothing in it is trusted.

use std::ops::Range;

/// Bytes at the start of the first page that are no b-tree.
const FILE_HEADER: usize = 100;

/// What the header of a database says about all its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) page_size: usize,
    /// Without the bytes that extensions reserve at the end of each page.
    pub(super) usable: usize,
}

impl Shape {
    /// Reads the first 100 bytes of a file; `None` when it is no database.
    pub(super) fn of(header: &[u8]) -> Option<Self> {
        if header.len() < FILE_HEADER || !header.starts_with(b"SQLite format 3\0") {
            return None;
        }
        let page_size = match short(header, 16)? {
            1 => 65_536,
            size => size,
        };
        let usable = page_size.checked_sub(usize::from(header[20]))?;
        let sound = page_size >= 512 && page_size.is_power_of_two() && usable >= 480;
        sound.then_some(Self { page_size, usable })
    }

    /// Most bytes of a row that its page holds without overflow pages.
    pub(super) fn most_in_table(self) -> usize {
        self.usable - 35
    }

    /// The same for an entry of an index, and for a row of a table without row ids.
    pub(super) fn most_in_index(self) -> usize {
        (self.usable - 12) * 64 / 255 - 23
    }

    /// Bytes of a payload that stay on the page.
    fn local(self, payload: usize, most: usize) -> usize {
        if payload <= most {
            return payload;
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let rest = least + (payload - least) % (self.usable - 4);
        if rest <= most { rest } else { least }
    }
}

/// Whether all of `hit` lies in one live cell of the b-tree page `page`, which is the first of the file or not.
pub(super) fn in_cell(page: &[u8], is_first: bool, shape: Shape, hit: &Range<usize>) -> bool {
    let holds = |cell: Range<usize>| cell.start <= hit.start && hit.end <= cell.end;
    let header = if is_first { FILE_HEADER } else { 0 };
    cells(page, header, shape).is_some_and(|mut cells| cells.any(holds))
}

/// Extents of the cells, as far as they can be read.
fn cells(
    page: &[u8],
    header: usize,
    shape: Shape,
) -> Option<impl Iterator<Item = Range<usize>> + '_> {
    let kind = *page.get(header)?;
    let pointers = match kind {
        2 | 5 => header + 12,
        10 | 13 => header + 8,
        _ => return None,
    };
    let count = short(page, header + 3)?;
    let starts = (0..count).map_while(move |cell| short(page, pointers + 2 * cell));
    Some(starts.filter_map(move |start| {
        let length = cell_length(kind, page.get(start..)?, shape)?;
        Some(start..(start + length).min(shape.usable))
    }))
}

fn cell_length(kind: u8, cell: &[u8], shape: Shape) -> Option<usize> {
    let child = if matches!(kind, 2 | 5) { 4 } else { 0 };
    let (number, mut at) = varint(cell, child)?;
    if kind == 5 {
        return Some(at);
    }
    let most = if kind == 13 {
        at = varint(cell, at)?.1;
        shape.most_in_table()
    } else {
        shape.most_in_index()
    };
    let payload = usize::try_from(number).ok()?;
    let local = shape.local(payload, most);
    let link = if local < payload { 4 } else { 0 };
    at.checked_add(local + link)
}

/// A number of 1 to 9 bytes and the offset behind it.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    for step in 0..8 {
        let byte = *bytes.get(at + step)?;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((number, at + step + 1));
        }
    }
    let last = *bytes.get(at + 8)?;
    Some((number << 8 | u64::from(last), at + 9))
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let pair = bytes.get(at..at + 2)?;
    Some(usize::from(u16::from_be_bytes([pair[0], pair[1]])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length() {
        assert_eq!(varint(&[0x7f], 0), Some((127, 1)));
        assert_eq!(varint(&[0x81, 0], 0), Some((128, 2)));
        assert_eq!(varint(&[0xff; 9], 0), Some((u64::MAX, 9)));
        assert_eq!(varint(&[0x81], 0), None);
    }

    #[test]
    fn nonsense_has_no_cells() {
        let shape = Shape {
            page_size: 512,
            usable: 512,
        };
        for kind in 0..=255 {
            let mut page = [0xff; 512];
            page[0] = kind;
            assert!(!in_cell(&page, false, shape, &(100..110)));
        }
        assert!(!in_cell(&[], true, shape, &(0..1)));
    }
}
