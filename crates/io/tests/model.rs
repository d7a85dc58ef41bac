// SPDX-License-Identifier: Apache-2.0
//! Random views and buffers against a plain array, on a disk that moves less than it is asked to, is interrupted, and
//! gets full. ISTHMUS_TEST_IO_CASES: how many.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_io::{Disk, Sieve, Source, Target, View, read, write};
use proptest::prelude::*;
use rustix::io::Errno;

/// A file in memory that is as troublesome as systems may be.
struct Troublesome {
    content: Mutex<Vec<u8>>,
    /// Bytes that it may have.
    room: u64,
    /// What it says of more.
    full: Errno,
    chance: AtomicU64,
}

impl Troublesome {
    fn new(content: Vec<u8>, room: u64, full: Errno, seed: u64) -> Self {
        Self {
            content: Mutex::new(content),
            room,
            full,
            chance: AtomicU64::new(seed | 1),
        }
    }

    /// How many of `wanted` bytes are moved, or what happens instead.
    fn some(&self, wanted: usize) -> io::Result<usize> {
        let next = |x: u64| {
            x.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        let old = self
            .chance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |x| Some(next(x)));
        let chance = old.unwrap_or(0) >> 33;
        match chance % 4 {
            0 => Err(Errno::INTR.into()),
            1 => Err(Errno::AGAIN.into()),
            _ => Ok(wanted.min(1 + (chance / 4) as usize % 7)),
        }
    }
}

impl Disk for Troublesome {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.lock().expect("no thread has panicked");
        let rest = content.get(offset as usize..).unwrap_or_default();
        let some = self.some(buffer.len())?.min(rest.len());
        buffer[..some].copy_from_slice(&rest[..some]);
        Ok(some)
    }

    fn write_some(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        let some = self.some(buffer.len())?.min(self.room.saturating_sub(offset) as usize);
        if some == 0 {
            return Err(self.full.into());
        }
        let mut content = self.content.lock().expect("no thread has panicked");
        let end = offset as usize + some;
        if content.len() < end {
            content.resize(end, 0);
        }
        content[offset as usize..end].copy_from_slice(&buffer[..some]);
        Ok(some)
    }
}

/// Blocks `(hole before it, length)` and a hole behind the last, in elements of `unit` bytes.
#[derive(Clone, Debug)]
struct Shape {
    unit: u64,
    blocks: Vec<(u64, u64)>,
    behind: u64,
}

impl Shape {
    fn datatype(&self) -> Datatype {
        let element = Datatype::contiguous_type(self.unit as i64, &Datatype::of(Basic::Byte)).expect("a type");
        let (mut lengths, mut places, mut at) = (vec![], vec![], 0);
        for (hole, length) in &self.blocks {
            at += hole;
            lengths.push(*length as i64);
            places.push((at * self.unit) as i64);
            at += length;
        }
        let all = Datatype::hindexed(&lengths, &places, &element).expect("a type");
        Datatype::resized(&all, 0, ((at + self.behind) * self.unit) as i64).expect("a type")
    }

    /// Place of each byte of the stream.
    fn places(&self, bytes: usize) -> Vec<u64> {
        let extent = (self.blocks.iter().map(|(h, l)| h + l).sum::<u64>() + self.behind) * self.unit;
        let mut one = Vec::new();
        let mut at = 0;
        for (hole, length) in &self.blocks {
            at += hole * self.unit;
            one.extend(at..at + length * self.unit);
            at += length * self.unit;
        }
        (0..bytes)
            .map(|i| (i / one.len()) as u64 * extent + one[i % one.len()])
            .collect()
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let blocks = prop::collection::vec((0_u64..4, 0_u64..5), 1..5);
    (1_u64..5, blocks, 0_u64..4).prop_filter_map("no data", |(unit, blocks, behind)| {
        let some = blocks.iter().any(|(_, length)| *length > 0);
        some.then_some(Shape { unit, blocks, behind })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(std::env::var("ISTHMUS_TEST_IO_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)))]

    #[test]
    fn files_are_exact_or_errors_are(
        file in shapes(),
        memory in shapes(),
        count in 0_u64..6,
        offset in 0_u64..9,
        displacement in 0_u64..20,
        room in prop_oneof![Just(u64::MAX), 0_u64..200],
        hole in prop_oneof![Just(0_u64), Just(8), Just(4096)],
        full in prop_oneof![Just(Errno::NOSPC), Just(Errno::DQUOT), Just(Errno::FBIG), Just(Errno::IO)],
        seed: u64,
    ) {
        let etype = Datatype::of(Basic::Byte);
        let view = View::new(displacement, etype, file.datatype(), true).unwrap();
        let ty = memory.datatype();
        let bytes = ty.bytes(count).unwrap() as usize;
        let (low, high) = ty.window(count).unwrap();
        let data = OwnMemory::new(low, high);
        let mut next = 1_u8;
        let mut expected = Vec::new();
        for place in memory.places(bytes) {
            data.memory().write(place as isize, &[next]);
            expected.push(next);
            next = next.wrapping_mul(31).wrapping_add(7);
        }
        let places: Vec<u64> = file.places(offset as usize + bytes).split_off(offset as usize);
        let places: Vec<u64> = places.into_iter().map(|place| place + displacement).collect();

        let disk = Troublesome::new(vec![0xee; 30.min(room as usize)], room, full, seed);
        let mut source = Source::new(data.reading(), &ty, count, None).unwrap();
        let moved = write(&disk, &view, offset, &mut source);
        let fits = places.iter().take_while(|place| **place < room).count();
        prop_assert_eq!(moved.bytes as usize, fits);
        let error = moved.error.and_then(|error| error.raw_os_error());
        prop_assert_eq!(error, (fits < bytes).then(|| full.raw_os_error()));
        let mut model = vec![0xee; 30.min(room as usize)];
        for (place, byte) in places.iter().zip(&expected).take(fits) {
            if model.len() <= *place as usize {
                model.resize(*place as usize + 1, 0);
            }
            model[*place as usize] = *byte;
        }
        prop_assert_eq!(&*disk.content.lock().unwrap(), &model);

        let back = OwnMemory::new(low, high);
        let mut target = Target::new(back.memory(), &ty, count, None).unwrap();
        let moved = read(&disk, &view, offset, &mut target, Sieve { buffer: 64, hole });
        let there = places.iter().take_while(|place| (**place as usize) < model.len()).count();
        prop_assert!(moved.error.is_none());
        prop_assert_eq!(moved.bytes as usize, there);
        for (i, place) in memory.places(bytes).into_iter().enumerate() {
            let wanted = if i < there { model[places[i] as usize] } else { 0 };
            prop_assert_eq!(back.reading().with(place as isize, 1, |byte| byte[0]), wanted, "byte {}", i);
        }
    }
}
