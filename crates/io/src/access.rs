// SPDX-License-Identifier: Apache-2.0
//! Independent access: a range of the stream of a view, between one file and one memory.
//!
//! What is one piece in the file is one system call. Writes with holes are one call for each run: what lies in the
//! holes is neither read nor written, so nobody needs a lock. Reads with small holes take these along (data sieving:
//! Thakur, Gropp, Lusk, Data sieving and collective I/O in ROMIO, 1999).

use std::cell::Cell;

use crate::disk::{Disk, Moved, read_all, write_all};
use crate::memory::{Source, Target};
use crate::view::View;

/// Bytes of the stream that are packed or listed at once.
const WINDOW: u64 = 4 << 20;

/// Bytes that a thread keeps for its next access: memory of the system costs more than most accesses.
const KEPT: usize = 4 << 20;

thread_local! {
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Gives memory whose content is anything, and that grows as needed.
fn with_room<T>(act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut room = ROOM.take();
    let done = act(&mut room);
    if room.capacity() <= KEPT {
        ROOM.set(room);
    }
    done
}

/// The first `length` bytes of it.
fn room_of(room: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if room.len() < length {
        room.resize(length, 0);
    }
    &mut room[..length]
}

/// How reads treat holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sieve {
    /// Bytes that are read in one go at most (hint `ind_rd_buffer_size`).
    pub buffer: u64,
    /// Holes up to this many bytes are read along. A page: reading it costs less than another system call.
    pub hole: u64,
}

impl Default for Sieve {
    fn default() -> Self {
        Self {
            buffer: 4 << 20,
            hole: 4 << 10,
        }
    }
}

/// One run: byte of the file, byte of the access's stream, length.
#[derive(Clone, Copy)]
struct Run {
    place: u64,
    stream: u64,
    length: u64,
}

fn runs_of(view: &View, at: u64, (from, take): (u64, u64), runs: &mut Vec<Run>) {
    runs.clear();
    let mut stream = from;
    view.runs(at + from, take, &mut |place, length| {
        runs.push(Run { place, stream, length });
        stream += length;
    });
}

/// Writes `source` at byte `at` of the stream of the view.
pub fn write(disk: &dyn Disk, view: &View, at: u64, source: &mut Source) -> Moved {
    let total = source.length();
    if let Some(place) = view.piece(at) {
        if let Some(written) = source.with_piece(0, total, |piece| write_all(disk, piece, place)) {
            return written;
        }
    }
    with_room(|room| write_runs(disk, view, at, source, room))
}

fn write_runs(disk: &dyn Disk, view: &View, at: u64, source: &mut Source, room: &mut Vec<u8>) -> Moved {
    let total = source.length();
    let (mut runs, mut done) = (Vec::new(), 0);
    while done < total {
        let take = WINDOW.min(total - done);
        runs_of(view, at, (done, take), &mut runs);
        let mut window: &[u8] = &[];
        if source.with_piece(done, 0, |_| ()).is_none() {
            let packed = room_of(room, take as usize);
            source.read(done, packed);
            window = packed;
        }
        for run in &runs {
            let put = |piece: &[u8]| write_all(disk, piece, run.place);
            let moved = source
                .with_piece(run.stream, run.length, put)
                .unwrap_or_else(|| put(&window[(run.stream - done) as usize..][..run.length as usize]));
            if moved.error.is_some() {
                return Moved {
                    bytes: run.stream + moved.bytes,
                    ..moved
                };
            }
        }
        done += take;
    }
    Moved {
        bytes: done,
        error: None,
    }
}

/// Reads from byte `at` of the stream of the view. Ends where the file ends.
pub fn read(disk: &dyn Disk, view: &View, at: u64, target: &mut Target, sieve: Sieve) -> Moved {
    let total = target.length();
    if let Some(place) = view.piece(at) {
        if let Some(read) = target.with_piece(0, total, |piece| read_all(disk, piece, place)) {
            return read;
        }
    }
    with_room(|room| read_runs(disk, view, at, target, sieve, room))
}

fn read_runs(disk: &dyn Disk, view: &View, at: u64, target: &mut Target, sieve: Sieve, room: &mut Vec<u8>) -> Moved {
    let total = target.length();
    let (mut runs, mut done) = (Vec::new(), 0);
    while done < total {
        let take = WINDOW.min(total - done);
        runs_of(view, at, (done, take), &mut runs);
        let mut rest = &runs[..];
        while !rest.is_empty() {
            let (group, others) = rest.split_at(group_length(rest, sieve));
            let moved = read_group(disk, group, target, room);
            if moved.error.is_some() || moved.bytes < group.iter().map(|run| run.length).sum() {
                return Moved {
                    bytes: group[0].stream + moved.bytes,
                    ..moved
                };
            }
            rest = others;
        }
        done += take;
    }
    Moved {
        bytes: done,
        error: None,
    }
}

/// How many runs are read in one go.
fn group_length(runs: &[Run], sieve: Sieve) -> usize {
    let first = runs[0].place;
    let mut end = first + runs[0].length;
    let joins = |run: &&Run| {
        let fits = run.place >= end && run.place - end <= sieve.hole && run.place + run.length - first <= sieve.buffer;
        end = run.place + run.length;
        fits
    };
    1 + runs[1..].iter().take_while(joins).count()
}

fn read_group(disk: &dyn Disk, group: &[Run], target: &mut Target, room: &mut Vec<u8>) -> Moved {
    let (first, last) = (group[0], group[group.len() - 1]);
    if group.len() == 1 {
        if let Some(read) = target.with_piece(first.stream, first.length, |piece| read_all(disk, piece, first.place)) {
            return read;
        }
    }
    let span = (last.place + last.length - first.place) as usize;
    let buffer = room_of(room, span);
    let got = read_all(disk, buffer, first.place);
    let mut bytes = 0;
    for run in group {
        let from = run.place - first.place;
        let length = got.bytes.saturating_sub(from).min(run.length);
        target.write(run.stream, &buffer[from as usize..][..length as usize]);
        bytes += length;
    }
    Moved { bytes, ..got }
}
