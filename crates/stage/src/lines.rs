// SPDX-License-Identifier: Apache-2.0
//! Cutting output into whole lines, with a bound on the length of a line.

/// A line longer than this is passed on in pieces, bytes.
pub const MAX_LINE: usize = 64 << 10;

/// Collects bytes and gives whole lines.
#[derive(Debug, Default)]
pub struct LineBuffer(Vec<u8>);

impl LineBuffer {
    /// Adds bytes; returns all whole lines (one piece, each line with its newline) that are now there.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.0.extend_from_slice(bytes);
        let end = match bytes.iter().rposition(|b| *b == b'\n') {
            Some(at) => self.0.len() - bytes.len() + at + 1,
            None if self.0.len() >= MAX_LINE => self.0.len(),
            None => return None,
        };
        let rest = self.0.split_off(end);
        Some(std::mem::replace(&mut self.0, rest))
    }

    /// Whether no line has begun.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What has come of a line that has not ended.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        (!self.0.is_empty()).then(|| std::mem::take(&mut self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_and_binary_data_unchanged() {
        let mut buffer = LineBuffer::default();
        assert_eq!(buffer.feed(b"ab"), None);
        assert_eq!(buffer.feed(b"c\nd\0\xff\ne"), Some(b"abc\nd\0\xff\n".to_vec()));
        assert!(!buffer.is_empty());
        assert_eq!(buffer.finish(), Some(b"e".to_vec()));
        assert!(buffer.is_empty());
        assert_eq!(buffer.finish(), None);
    }

    #[test]
    fn endless_lines_are_bounded() {
        let mut buffer = LineBuffer::default();
        let mut out = 0;
        for _ in 0..40 {
            out += buffer.feed(&[b'x'; 8192]).map_or(0, |l| l.len());
            assert!(buffer.0.len() < MAX_LINE);
        }
        assert_eq!(out + buffer.finish().map_or(0, |l| l.len()), 40 * 8192);
    }
}
