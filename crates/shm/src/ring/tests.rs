// SPDX-License-Identifier: Apache-2.0
//! The ring on ordinary memory: under the model checker (`--cfg loom`) and with two real threads.

use std::sync::Arc;

use super::*;

#[cfg(loom)]
use loom::{cell::UnsafeCell, thread};
#[cfg(not(loom))]
use std::thread;

/// `std`'s cell with the interface of the model checker's.
#[cfg(not(loom))]
struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A ring's memory, line by line: the model checker sees each word and each rest of a line.
struct Lines {
    control: Control,
    words: Vec<AtomicU64>,
    rests: Vec<UnsafeCell<[u8; LINE - 8]>>,
}

// SAFETY: the cells are only touched by the side that owns them (R1); the model checker verifies that.
unsafe impl Sync for Lines {}
// SAFETY: plain data.
unsafe impl Send for Lines {}

fn ring(lines: usize) -> (Writer<Arc<Lines>>, Reader<Arc<Lines>>) {
    let memory = Arc::new(Lines {
        control: Control::new(),
        words: (0..lines).map(|_| AtomicU64::new(0)).collect(),
        rests: (0..lines).map(|_| UnsafeCell::new([0; LINE - 8])).collect(),
    });
    (Writer::new(Arc::clone(&memory)), Reader::new(memory))
}

impl Memory for Arc<Lines> {
    fn capacity(&self) -> usize {
        self.words.len() * LINE
    }
    fn control(&self) -> &Control {
        &self.control
    }
    unsafe fn word(&self, at: usize) -> &AtomicU64 {
        &self.words[at / LINE]
    }
    fn back(&self, _: usize, _: usize) -> Result<usize, i32> {
        Ok(self.capacity())
    }
    unsafe fn write(&self, at: usize, header: &[u64; HEADER_WORDS], length: usize, fill: impl FnOnce(&mut [u8])) {
        let mut record: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
        record.resize(HEADER + length, 0);
        fill(&mut record[HEADER..]);
        // What was in the rest of the last line is not zero in real life either.
        record.resize(round_up(record.len()), 0xee);
        for (line, bytes) in record.chunks_exact(LINE).enumerate() {
            let (word, rest) = bytes.split_at(8);
            if line > 0 {
                self.words[at / LINE + line].store(u64::from_ne_bytes(word.try_into().unwrap()), Ordering::Relaxed);
            }
            // SAFETY: the caller owns the line.
            self.rests[at / LINE + line].with_mut(|cell| unsafe { cell.write(rest.try_into().unwrap()) });
        }
    }
    unsafe fn read<R>(&self, at: usize, length: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        let mut bytes = Vec::new();
        for line in at / LINE..(at + round_up(length)) / LINE {
            bytes.extend_from_slice(&self.words[line].load(Ordering::Relaxed).to_ne_bytes());
            // SAFETY: the caller owns the line.
            self.rests[line].with(|cell| bytes.extend_from_slice(unsafe { &*cell }));
        }
        f(&bytes[..length])
    }
}

/// A header that says its number and the length of its payload.
fn header(number: u32, length: usize) -> [u64; HEADER_WORDS] {
    let first = (1 + u64::from(number)).wrapping_mul(0x0101);
    [first, length as u64, u64::from(number).to_le(), 0x1111]
}

fn decode(bytes: &[u8; HEADER]) -> Option<(u32, u64)> {
    let length = u64::from_ne_bytes(bytes[8..16].try_into().unwrap());
    Some((u32::from_le_bytes(bytes[16..20].try_into().unwrap()), length))
}

fn payload(number: u32, length: usize) -> Vec<u8> {
    (0..length).map(|i| (number as usize * 31 + i) as u8).collect()
}

/// Takes a record and checks that it is number `number`, whole.
fn take(reader: &mut Reader<Arc<Lines>>, number: u32) -> bool {
    reader
        .pop(decode, |&found, bytes| {
            assert_eq!(found, number);
            assert_eq!(bytes, payload(number, bytes.len()));
        })
        .unwrap()
}

fn push(writer: &mut Writer<Arc<Lines>>, number: u32, length: usize) -> Result<(), PushError> {
    writer.push(&header(number, length), length, |to| {
        to.copy_from_slice(&payload(number, length))
    })
}

/// One thread writes records of these lengths, the other takes them, after `before` records of 32 bytes have gone
/// through.
fn exchange(lines: usize, before: u32, lengths: &'static [usize]) {
    let (mut writer, mut reader) = ring(lines);
    for number in 0..before {
        push(&mut writer, number, 32).unwrap();
        assert!(take(&mut reader, number));
        reader.give_back();
    }
    let sender = thread::spawn(move || {
        for (number, &length) in (before..).zip(lengths) {
            while push(&mut writer, number, length).is_err() {
                thread::yield_now();
            }
            writer.prepare();
        }
    });
    for (number, _) in (before..).zip(lengths) {
        while !take(&mut reader, number) {
            thread::yield_now();
        }
        reader.give_back();
    }
    sender.join().unwrap();
    assert!(!reader.ready());
}

#[cfg(loom)]
mod models {
    use super::*;

    fn model(f: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(f);
    }

    #[test]
    fn records_arrive_whole_and_in_order() {
        model(|| exchange(4, 0, &[0, 32, 8]));
    }

    #[test]
    fn reuse_of_lines_waits_for_the_reader() {
        model(|| exchange(4, 2, &[32, 32, 32]));
    }

    #[test]
    fn skipped_end() {
        model(|| exchange(8, 7, &[96, 40]));
    }

    #[test]
    fn stale_payload_is_not_a_word() {
        model(|| exchange(8, 5, &[96, 0, 0]));
    }

    /// A refused writer is told, or has found room when it looked again.
    #[test]
    fn refused_writer_is_told() {
        model(|| {
            let (mut writer, mut reader) = ring(4);
            for number in 0..3 {
                push(&mut writer, number, 32).unwrap();
            }
            let sender = thread::spawn(move || push(&mut writer, 3, 32).is_err());
            let mut told = false;
            for number in 0..3 {
                assert!(take(&mut reader, number));
                told |= reader.give_back();
            }
            assert!(!sender.join().unwrap() || told);
        });
    }
}

#[cfg(not(loom))]
mod threads {
    use super::*;

    #[test]
    fn two_threads_and_many_sizes() {
        // Interpreted, each takes some milliseconds.
        const MANY: usize = if cfg!(miri) { 100 } else { 20_000 };
        static LENGTHS: [usize; MANY] = {
            let mut lengths = [0; MANY];
            let mut at = 0;
            let mut state = 12345_u32;
            while at < lengths.len() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                lengths[at] = (state >> 16) as usize % if at % 3 == 0 { 1000 } else { 70 };
                at += 1;
            }
            lengths
        };
        // Lines such that the longest record fits the rule of the module: two of them and a line in three quarters.
        for lines in [48, 61, 128] {
            exchange(lines, 0, &LENGTHS);
        }
    }

    #[test]
    fn a_refused_writer_has_room_after_the_reader_has_taken_everything() {
        let (mut writer, mut reader) = ring(64);
        let longest = longest_payload(64 * LINE);
        let mut next = 0;
        for round in 0..if cfg!(miri) { 5 } else { 100 } {
            let first = next;
            while push(&mut writer, next, (round * 37) % (longest + 1)).is_ok() {
                next += 1;
            }
            for number in first..next {
                assert!(take(&mut reader, number));
                reader.give_back();
            }
            assert!(writer.has_room(longest), "round {round}");
        }
    }

    #[test]
    fn longest_payload_fits_the_rule() {
        for capacity in (LINE * 32..200_000).step_by(LINE) {
            let record = round_up(HEADER + longest_payload(capacity));
            assert!(2 * record + LINE <= capacity / 4 * 3, "{capacity}");
        }
        assert_eq!(longest_payload(65536 - 128), 16384);
        assert_eq!(longest_payload(16384 - 128), 4096);
    }

    #[test]
    fn a_record_longer_than_the_ring_is_corrupt() {
        let (mut writer, mut reader) = ring(8);
        let mut wrong = header(0, 0);
        wrong[1] = 10_000;
        writer.push(&wrong, 0, |_| {}).unwrap();
        assert_eq!(reader.pop(decode, |_, _| panic!("delivered")), Err(Corrupt));
    }

    #[test]
    fn two_skips_in_a_row_are_corrupt() {
        let (writer, mut reader) = ring(8);
        writer.memory.words[0].store(SKIP, Ordering::Release);
        assert_eq!(reader.pop(decode, |_, _| panic!("delivered")), Err(Corrupt));
    }

    #[test]
    fn a_reader_that_claims_too_much_gives_no_room() {
        let (mut writer, _reader) = ring(8);
        let mut taken = 0;
        writer.memory.control.consumed.store(1 << 40, Ordering::Release);
        while push(&mut writer, taken, 32).is_ok() {
            taken += 1;
        }
        assert_eq!(taken, 7);
    }
}

/// A ring whose memory comes page by page: looking at what is not there yet fails, as in a full file system.
#[cfg(not(loom))]
#[derive(Clone)]
struct Paged(Arc<Lines>, Arc<std::sync::atomic::AtomicUsize>);

#[cfg(not(loom))]
impl Paged {
    const PAGE: usize = 4 * LINE;

    fn check(&self, end: usize) {
        let backed = self.1.load(Ordering::Relaxed);
        assert!(end <= backed, "byte {end} of {backed} that there are");
    }
}

#[cfg(not(loom))]
impl Memory for Paged {
    fn capacity(&self) -> usize {
        self.0.capacity()
    }
    fn control(&self) -> &Control {
        self.0.control()
    }
    unsafe fn word(&self, at: usize) -> &AtomicU64 {
        self.check(at + 8);
        // SAFETY: the caller's promise.
        unsafe { self.0.word(at) }
    }
    fn back(&self, from: usize, end: usize) -> Result<usize, i32> {
        assert_eq!(from, self.1.load(Ordering::Relaxed));
        let end = end.next_multiple_of(Self::PAGE).min(self.capacity());
        self.1.store(end, Ordering::Relaxed);
        Ok(end)
    }
    unsafe fn write(&self, at: usize, header: &[u64; HEADER_WORDS], length: usize, fill: impl FnOnce(&mut [u8])) {
        self.check(at + round_up(HEADER + length));
        // SAFETY: the caller owns the record.
        unsafe { self.0.write(at, header, length, fill) };
    }
    unsafe fn read<R>(&self, at: usize, length: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        self.check(at + length);
        // SAFETY: the caller owns the record.
        unsafe { self.0.read(at, length, f) }
    }
}

#[cfg(not(loom))]
#[test]
fn nobody_looks_behind_the_memory_that_there_is() {
    // The first record ends one line to three before a page does, or with it.
    for first in 0..8 * LINE {
        let (writer, reader) = ring(64);
        let backed = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let (mut writer, mut reader) = (
            Writer::new(Paged(writer.memory, Arc::clone(&backed))),
            Reader::new(Paged(reader.memory, backed)),
        );
        for number in 0..64 {
            let length = if number == 0 { first } else { 32 };
            let fill = |to: &mut [u8]| to.copy_from_slice(&payload(number, length));
            writer.push(&header(number, length), length, fill).unwrap();
            writer.prepare();
            for expected in [true, false] {
                assert_eq!(reader.pop(decode, |_, _| ()).unwrap(), expected);
            }
            reader.give_back();
        }
    }
}
