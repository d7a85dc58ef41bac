// SPDX-License-Identifier: Apache-2.0
//! The bounded reader and writer behind every structured message.
//!
//! A message on a stream is `length: u32` (of what follows), `kind: u8`, fields. Strings and byte
//! arrays are `length: u32` and bytes; lists are `count: u32` and items. A reader never allocates
//! more than the bytes it has been given.

/// Largest structured message (boot and grid), bytes. A place table of 100,000 processes fits.
pub const MAX_MESSAGE: usize = 64 << 20;

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Fewer bytes than the fields need.
    Truncated {
        /// Field that could not be read.
        field: &'static str,
    },
    /// Bytes were left over after the last field.
    Trailing(usize),
    /// A value outside its range.
    Invalid {
        /// Field with the value.
        field: &'static str,
        /// The value.
        value: u64,
    },
    /// Text that is not UTF-8.
    NotText {
        /// Field with the text.
        field: &'static str,
    },
    /// A message above [`MAX_MESSAGE`].
    TooLong(u64),
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated { field } => write!(f, "message ends before field '{field}'"),
            Self::Trailing(n) => write!(f, "{n} bytes after the end of the message"),
            Self::Invalid { field, value } => write!(f, "field '{field}' has the invalid value {value}"),
            Self::NotText { field } => write!(f, "field '{field}' is not UTF-8"),
            Self::TooLong(n) => write!(f, "message of {n} bytes is above the limit of {MAX_MESSAGE}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Appends fields to a buffer.
#[derive(Default, Debug)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Starts a message of this kind.
    pub fn new(kind: u8) -> Self {
        Self(vec![kind])
    }
    /// One byte.
    pub fn u8(&mut self, v: u8) -> &mut Self {
        self.0.push(v);
        self
    }
    /// Two bytes.
    pub fn u16(&mut self, v: u16) -> &mut Self {
        self.0.extend(v.to_le_bytes());
        self
    }
    /// Four bytes.
    pub fn u32(&mut self, v: u32) -> &mut Self {
        self.0.extend(v.to_le_bytes());
        self
    }
    /// Eight bytes.
    pub fn u64(&mut self, v: u64) -> &mut Self {
        self.0.extend(v.to_le_bytes());
        self
    }
    /// A byte array with its length.
    pub fn bytes(&mut self, v: &[u8]) -> &mut Self {
        self.u32(v.len() as u32);
        self.0.extend(v);
        self
    }
    /// A text with its length.
    pub fn text(&mut self, v: &str) -> &mut Self {
        self.bytes(v.as_bytes())
    }
    /// A fixed array.
    pub fn fixed<const N: usize>(&mut self, v: &[u8; N]) -> &mut Self {
        self.0.extend(v);
        self
    }
    /// A list: count and items.
    pub fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.u32(items.len() as u32);
        for item in items {
            each(self, item);
        }
        self
    }
    /// The message without its length prefix: kind and fields.
    pub fn into_body(self) -> Vec<u8> {
        self.0
    }
    /// The message as it goes on a stream: length prefix, kind, fields.
    pub fn into_framed(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() + 4);
        out.extend((self.0.len() as u32).to_le_bytes());
        out.extend(self.0);
        out
    }
}

/// Takes fields from a message body.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads a body: kind and fields.
    pub fn new(body: &'a [u8]) -> Self {
        Self(body)
    }
    fn take(&mut self, n: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        if self.0.len() < n {
            return Err(DecodeError::Truncated { field });
        }
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, field)?);
        Ok(out)
    }
    /// One byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }
    /// Two bytes.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }
    /// Four bytes.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }
    /// Eight bytes.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }
    /// A fixed array.
    pub fn fixed<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        self.array(field)
    }
    /// A byte array with its length.
    pub fn bytes(&mut self, field: &'static str) -> Result<Vec<u8>, DecodeError> {
        let n = self.u32(field)? as usize;
        Ok(self.take(n, field)?.to_vec())
    }
    /// A text with its length.
    pub fn text(&mut self, field: &'static str) -> Result<String, DecodeError> {
        String::from_utf8(self.bytes(field)?).map_err(|_| DecodeError::NotText { field })
    }
    /// A list; every item needs at least one byte, so the count is bounded by what is there.
    pub fn list<T>(
        &mut self,
        field: &'static str,
        mut each: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let n = self.u32(field)? as usize;
        if n > self.0.len() {
            return Err(DecodeError::Truncated { field });
        }
        (0..n).map(|_| each(self)).collect()
    }
    /// Bytes that have not been read.
    pub fn left(&self) -> usize {
        self.0.len()
    }
    /// Ends reading: what is left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
    /// Ends reading: nothing may be left.
    pub fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Trailing(self.0.len()))
        }
    }
}

/// Splits a byte stream into message bodies. Feed what arrived, then take bodies until `None`.
#[derive(Default, Debug)]
pub struct Deframer {
    buffer: Vec<u8>,
    start: usize,
}

impl Deframer {
    /// Adds bytes that arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }
    /// The next whole body, if it is there.
    pub fn next_body(&mut self) -> Result<Option<Vec<u8>>, DecodeError> {
        let Some(prefix) = self.buffer.get(self.start..self.start + 4) else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]) as usize;
        if length == 0 || length > MAX_MESSAGE {
            return Err(DecodeError::TooLong(length as u64));
        }
        let at = self.start + 4;
        let Some(body) = self.buffer.get(at..at + length) else {
            return Ok(None);
        };
        let body = body.to_vec();
        self.start = at + length;
        if self.start > (1 << 20) {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        Ok(Some(body))
    }
}
