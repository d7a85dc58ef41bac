// SPDX-License-Identifier: Apache-2.0
//! Library memory without `unsafe`: nobody reads a byte while another writes it, whatever this program does. Run as it
//! is, by Miri and with ThreadSanitizer.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{scope, spawn};

use isthmus_datatype::raw::{OwnMemory, ReadMemory};
use isthmus_datatype::{Basic, Datatype, Packer, Unpacker};

/// Refused before anything was done.
fn refused(act: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_err()
}

/// What a compiler may assume of a slice: its bytes stay.
#[inline(never)]
fn look(bytes: &[u8], between: impl FnOnce()) -> (u8, u8) {
    let before = bytes[0];
    between();
    (before, bytes[0])
}

#[test]
fn a_slice_is_not_written_by_another_value() {
    let own = OwnMemory::new(0, 64);
    let (source, other) = (OwnMemory::with(&[7; 64]), own.clone());
    let datatype = Datatype::vector(4, 1, 2, &Datatype::of(Basic::Byte)).expect("a description");
    let writes: [&dyn Fn(); 6] = [
        &|| own.memory().write(0, &[1]),
        &|| other.memory().with_mut(0, 1, |bytes| bytes[0] = 1),
        &|| other.memory().copy(0, &source.reading(), 0, 64),
        &|| other.memory().copy(0, &source.reading(), 0, 8),
        &|| other.memory().write_past_caches(0, &[1; 64]),
        &|| {
            let mut unpacker = Unpacker::new(&datatype, 1, other.memory()).expect("a description");
            unpacker.unpack(&[1; 4]);
        },
    ];
    for write in writes {
        let seen = own
            .reading()
            .with(0, 8, |bytes| look(bytes, || assert!(refused(write))));
        assert_eq!(seen, (0, 0));
    }
    // The slice is gone.
    own.memory().write(0, &[1]);
    assert_eq!(own.content()[..2], [1, 0]);
}

#[test]
fn bytes_that_somebody_changes_are_not_reached() {
    let own = OwnMemory::new(0, 64);
    let all: [&dyn Fn(); 6] = [
        &|| own.memory().write(8, &[1]),
        &|| own.memory().with_mut(15, 4, |_| ()),
        &|| own.reading().with(0, 9, |_| ()),
        &|| own.reading().read(0, &mut [0; 9]),
        &|| drop(own.content()),
        &|| {
            let bytes = Datatype::vector(4, 1, 16, &Datatype::of(Basic::Byte)).expect("a description");
            let mut packer = Packer::new(&bytes, 1, own.reading()).expect("a description");
            packer.pack(&mut [0; 4]);
        },
    ];
    own.memory().with_mut(8, 8, |bytes| {
        for act in all {
            assert!(refused(act));
        }
        // Others are.
        own.memory().write(0, &[2; 8]);
        own.reading().with(0, 8, |before| bytes.copy_from_slice(before));
        assert!(format!("{own:?} {:?}", own.memory()).contains("0..64"), "no content");
    });
    assert_eq!(own.content()[..17], [&[2; 16][..], &[0]].concat());
    // What was refused has left nothing behind.
    all.into_iter().for_each(|act| act());
}

#[test]
fn many_read_at_once() {
    let own = OwnMemory::with(&[3; 16]);
    own.reading().with(0, 16, |one| {
        own.reading().with(8, 8, |other| assert_eq!(one[8..], *other));
        scope(|scope| {
            scope.spawn(|| assert_eq!(own.content(), one));
        });
    });
}

#[test]
fn a_slice_is_not_written_by_another_thread() {
    let own = OwnMemory::new(0, 64);
    own.reading().with(0, 8, |bytes| {
        let seen = look(bytes, || {
            let other = own.clone();
            let writing = spawn(move || other.memory().write(0, &[1; 8]));
            assert!(writing.join().is_err(), "refused there");
        });
        assert_eq!(seen, (0, 0));
    });
}

/// All bytes are those of one write.
fn whole(memory: &ReadMemory) -> u8 {
    let mut bytes = [0; 256];
    memory.read(0, &mut bytes);
    assert_eq!(bytes, [bytes[0]; 256]);
    bytes[0]
}

#[test]
fn copies_of_threads_take_turns() {
    let (one, two) = (OwnMemory::new(0, 256), OwnMemory::new(0, 256));
    scope(|scope| {
        for number in 1..4 {
            let (one, two) = (one.clone(), two.clone());
            scope.spawn(move || {
                for _ in 0..20 {
                    one.memory().write(0, &[number; 256]);
                    // Either way at once.
                    two.memory().copy(0, &one.reading(), 0, 256);
                    one.memory().copy(0, &two.reading(), 0, 256);
                    one.memory().copy(0, &one.reading(), 0, 256);
                    assert!((1..4).contains(&whole(&one.reading())));
                }
            });
        }
    });
    assert!((1..4).contains(&whole(&two.reading())));
}

#[test]
fn a_vector_lends_its_memory_and_gets_it_back() {
    let bytes: Vec<u8> = (0..100).collect();
    let place = bytes.as_ptr() as usize;
    let own = OwnMemory::of(bytes);
    own.memory().write(10, &[7; 5]);
    let reading = own.reading();
    let copied = own.clone().into_content();
    assert!(copied.as_ptr() as usize != place && copied[9..16] == [9, 7, 7, 7, 7, 7, 15]);
    drop(reading);
    assert!(own.is_unshared());
    let back = own.into_content();
    assert_eq!((back.as_ptr() as usize, back == copied), (place, true));
    assert_eq!(OwnMemory::of(Vec::new()).into_content(), []);
    assert_eq!(OwnMemory::new(-3, 2).into_content(), [0; 5]);
}

#[test]
fn what_is_used_from_outside_stays_and_is_not_touched() {
    let own = OwnMemory::with(&[7; 64]);
    let (read, written) = (own.reading().exposed(0, 8), own.memory().exposed(8, 8));
    assert!(read.is_library() && written.is_library());
    assert!(refused(|| own.memory().write(7, &[1])) && refused(|| own.reading().read(8, &mut [0])));
    assert!(refused(|| drop(own.memory().exposed(0, 1))) && refused(|| drop(own.reading().exposed(15, 1))));
    own.reading().with(0, 8, |bytes| assert_eq!(bytes, [7; 8]));
    own.memory().write(16, &[1]);
    drop((read, written));
    own.memory().write(0, &[1; 64]);

    // Nobody will ever say that the address is used no more.
    std::mem::forget(own.memory().exposed(0, 1));
    assert!(refused(|| own.memory().write(0, &[2])));
    own.memory().write(1, &[2]);
    assert!(!own.is_unshared());
}
