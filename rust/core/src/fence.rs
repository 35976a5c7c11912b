//! Fenced code: which lines of a document are code, so that a `#` in it is no heading.

use crate::block::Shape;
use crate::normalise::trim_end;

/// An opened code fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    mark: u8,
    length: usize,
}

/// What a line is to the fenced blocks of its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Not code.
    Outside,
    /// Opens a fenced block.
    Opens,
    /// Code of the fenced block that was opened at this offset.
    Inside(u64),
    /// Closes the fenced block that was opened at this offset.
    Closes(u64),
}

/// Follows a document line by line. List items are followed too, because a fence inside one ends with it.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    open: Option<Open>,
    /// Content columns of the open list items, innermost last.
    items: Vec<usize>,
}

#[derive(Debug)]
struct Open {
    fence: Fence,
    /// A line indented less ends the list item that holds the fence.
    floor: usize,
    start: u64,
}

/// List items nested deeper are not followed: a line of a thousand `- ` is no document.
const DEEPEST: usize = 32;

impl Fence {
    /// The fence that `text` (a line from its first character on) opens.
    pub fn opening(text: &[u8]) -> Option<Self> {
        let mark = *text.first().filter(|&&mark| mark == b'`' || mark == b'~')?;
        let length = run_length(text, mark);
        let is_inline = mark == b'`' && text[length..].contains(&b'`');
        (length >= 3 && !is_inline).then_some(Self { mark, length })
    }

    /// Whether `text` closes this fence.
    pub fn is_closed_by(&self, text: &[u8]) -> bool {
        let length = run_length(text, self.mark);
        length >= self.length && trim_end(&text[length..]).is_empty()
    }
}

impl Fences {
    /// Takes note of an unindented line that begins with a letter: it opens and closes nothing.
    pub fn pass_plain(&mut self) -> Role {
        match &self.open {
            Some(open) if open.floor == 0 => return Role::Inside(open.start),
            Some(_) => self.open = None,
            None => {}
        }
        self.items.clear();
        Role::Outside
    }

    /// Takes note of the next line, which begins at byte `start` of the document.
    pub fn step(&mut self, line: &Shape<'_>, start: u64) -> Role {
        if let Some(open) = &self.open {
            if line.is_blank() {
                return Role::Inside(open.start);
            }
            if line.indent >= open.floor {
                return self.step_inside(line, open.start);
            }
            self.open = None;
        }
        if line.is_blank() {
            return Role::Outside;
        }
        while self
            .items
            .pop_if(|content| *content > line.indent)
            .is_some()
        {}
        self.step_outside(*line, start)
    }

    fn step_inside(&mut self, line: &Shape<'_>, start: u64) -> Role {
        let closed = self
            .open
            .take_if(|open| line.indent < open.floor + 4 && open.fence.is_closed_by(line.text));
        match closed {
            Some(_) => Role::Closes(start),
            None => Role::Inside(start),
        }
    }

    fn step_outside(&mut self, mut line: Shape<'_>, start: u64) -> Role {
        while self.items.len() < DEEPEST {
            let floor = self.items.last().copied().unwrap_or(0);
            if line.indent >= floor + 4 {
                break;
            }
            if let Some(fence) = Fence::opening(line.text) {
                self.open = Some(Open {
                    fence,
                    floor,
                    start,
                });
                return Role::Opens;
            }
            let Some(item) = line.item().filter(|_| !line.is_break()) else {
                break;
            };
            self.items.push(item.content);
            line = Shape {
                indent: item.content,
                text: &line.text[item.skip..],
            };
        }
        Role::Outside
    }
}

fn run_length(text: &[u8], mark: u8) -> usize {
    text.iter().take_while(|&&byte| byte == mark).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(document: &str) -> Vec<Role> {
        let mut fences = Fences::default();
        let mut start = 0;
        let lines = document.split_inclusive('\n');
        lines
            .map(|line| {
                let role = fences.step(&Shape::of(line.as_bytes()), start);
                start += line.len() as u64;
                role
            })
            .collect()
    }

    #[test]
    fn code_between_fences() {
        use Role::{Closes, Inside, Opens, Outside};
        assert_eq!(
            roles("a\n~~~ sh\n```\n~~\n\n~~~~ \nb\n"),
            [
                Outside,
                Opens,
                Inside(2),
                Inside(2),
                Inside(2),
                Closes(2),
                Outside
            ]
        );
        assert_eq!(roles("``` a`b\n```\n"), [Outside, Opens]);
    }

    #[test]
    fn a_fence_ends_with_its_list_item() {
        use Role::{Closes, Inside, Opens, Outside};
        assert_eq!(
            roles("- a\n  ```\n  # code\nb\n"),
            [Outside, Opens, Inside(4), Outside]
        );
        assert_eq!(roles("- ```\n  x\n  ```\n"), [Opens, Inside(0), Closes(0)]);
        assert_eq!(roles("  ```\nx\n```\n"), [Opens, Inside(0), Closes(0)]);
        assert_eq!(
            roles("1. a\n\n   - b\n\n     ```\n"),
            [Outside, Outside, Outside, Outside, Opens]
        );
        assert_eq!(roles("    ```\n"), [Outside]);
    }

    #[test]
    fn plain_lines_take_the_short_way() {
        for document in ["", "```\n", "- a\n", "- a\n  ```\n", "  ```\n"] {
            let mut short = Fences::default();
            let mut long = Fences::default();
            for line in document.split_inclusive('\n') {
                short.step(&Shape::of(line.as_bytes()), 0);
                long.step(&Shape::of(line.as_bytes()), 0);
            }
            assert_eq!(short.pass_plain(), long.step(&Shape::of(b"plain\n"), 0));
            let next = Shape::of(b"   ```\n");
            assert_eq!(short.step(&next, 9), long.step(&next, 9));
        }
    }
}
