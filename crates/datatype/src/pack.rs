// SPDX-License-Identifier: Apache-2.0
//! Between user memory and the packed stream, in pieces of any size, from any place.

use std::ops::Range;

use crate::Datatype;
use crate::error::TypeError;
use crate::layout::{Placed, Rows};
use crate::raw::{ReadMemory, WriteMemory};
use crate::walk::{Mover, walk};

/// Where in the stream of `count` elements we are.
#[derive(Clone, Debug)]
struct Cursor {
    layout: Option<Placed>,
    size: u64,
    position: u64,
}

impl Cursor {
    fn new(datatype: &Datatype, count: u64) -> Result<Self, TypeError> {
        Ok(Self {
            layout: datatype.repeated(count)?,
            size: datatype.bytes(count)?,
            position: 0,
        })
    }

    /// Moves the next bytes, at most `limit`, and says how many.
    fn advance(&mut self, limit: usize, mover: &mut impl Mover) -> usize {
        let take = (limit as u64).min(self.size - self.position);
        if let Some(layout) = &self.layout {
            walk(layout, 0, self.position, take, mover);
        }
        self.position += take;
        take as usize
    }
}

/// Reads elements from memory as a packed stream.
#[derive(Clone, Debug)]
pub struct Packer {
    cursor: Cursor,
    memory: ReadMemory,
}

impl Packer {
    /// `memory` must have the [window](Datatype::window) of `count` elements.
    pub fn new(datatype: &Datatype, count: u64, memory: ReadMemory) -> Result<Self, TypeError> {
        Ok(Self {
            cursor: Cursor::new(datatype, count)?,
            memory,
        })
    }

    /// Fills `out` with the next bytes of the stream; returns how many: less than `out.len()` only at the end.
    pub fn pack(&mut self, out: &mut [u8]) -> usize {
        let mut gather = Gather {
            memory: &self.memory,
            out,
        };
        let limit = gather.out.len();
        self.cursor.advance(limit, &mut gather)
    }

    /// Goes to a byte of the stream; beyond the end means the end.
    pub fn seek(&mut self, offset: u64) {
        self.cursor.position = offset.min(self.cursor.size);
    }

    /// Bytes of the whole stream.
    pub fn size(&self) -> u64 {
        self.cursor.size
    }

    /// Byte of the stream that comes next.
    pub fn position(&self) -> u64 {
        self.cursor.position
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> u64 {
        self.cursor.size - self.cursor.position
    }
}

/// Writes a packed stream to elements in memory.
#[derive(Clone, Debug)]
pub struct Unpacker {
    cursor: Cursor,
    memory: WriteMemory,
}

impl Unpacker {
    /// `memory` must have the [window](Datatype::window) of `count` elements.
    pub fn new(datatype: &Datatype, count: u64, memory: WriteMemory) -> Result<Self, TypeError> {
        Ok(Self {
            cursor: Cursor::new(datatype, count)?,
            memory,
        })
    }

    /// Stores the next bytes of the stream; returns how many were taken: less than `data.len()` only at the end.
    pub fn unpack(&mut self, data: &[u8]) -> usize {
        self.cursor.advance(
            data.len(),
            &mut Scatter {
                memory: &mut self.memory,
                data,
            },
        )
    }

    /// Goes to a byte of the stream; beyond the end means the end.
    pub fn seek(&mut self, offset: u64) {
        self.cursor.position = offset.min(self.cursor.size);
    }

    /// Bytes of the whole stream.
    pub fn size(&self) -> u64 {
        self.cursor.size
    }

    /// Byte of the stream that comes next.
    pub fn position(&self) -> u64 {
        self.cursor.position
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> u64 {
        self.cursor.size - self.cursor.position
    }
}

struct Gather<'a> {
    memory: &'a ReadMemory,
    out: &'a mut [u8],
}

impl Gather<'_> {
    fn take(&mut self, length: usize) -> &mut [u8] {
        let (piece, rest) = std::mem::take(&mut self.out).split_at_mut(length);
        self.out = rest;
        piece
    }
}

impl Mover for Gather<'_> {
    fn run(&mut self, at: i64, length: usize) {
        let memory = self.memory;
        memory.read(at as isize, self.take(length));
    }

    fn strided(&mut self, at: i64, stride: i64, count: usize, length: usize) {
        let memory = self.memory;
        memory.gather(at as isize, stride as isize, count, length, self.take(count * length));
    }

    fn rows(&mut self, at: i64, rows: &Rows, which: Range<usize>) {
        let memory = self.memory;
        let length = (rows.start(which.end) - rows.start(which.start)) as usize;
        memory.gather_rows(at as isize, rows, which, self.take(length));
    }

    fn columns(&mut self, at: i64, stride: i64, count: usize, rows: &Rows) {
        let memory = self.memory;
        let length = rows.start(rows.offsets.len()) as usize * count;
        memory.gather_columns(at as isize, stride as isize, count, rows, self.take(length));
    }
}

struct Scatter<'a> {
    memory: &'a mut WriteMemory,
    data: &'a [u8],
}

impl<'a> Scatter<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (piece, rest) = self.data.split_at(length);
        self.data = rest;
        piece
    }
}

impl Mover for Scatter<'_> {
    fn run(&mut self, at: i64, length: usize) {
        let piece = self.take(length);
        self.memory.write(at as isize, piece);
    }

    fn strided(&mut self, at: i64, stride: i64, count: usize, length: usize) {
        let piece = self.take(count * length);
        self.memory.scatter(at as isize, stride as isize, count, length, piece);
    }

    fn rows(&mut self, at: i64, rows: &Rows, which: Range<usize>) {
        let piece = self.take((rows.start(which.end) - rows.start(which.start)) as usize);
        self.memory.scatter_rows(at as isize, rows, which, piece);
    }

    fn columns(&mut self, at: i64, stride: i64, count: usize, rows: &Rows) {
        let piece = self.take(rows.start(rows.offsets.len()) as usize * count);
        self.memory
            .scatter_columns(at as isize, stride as isize, count, rows, piece);
    }
}
