// SPDX-License-Identifier: Apache-2.0
//! Blocking receives that need no request, and what turns them into ordinary ones.

mod common;

use common::{channel, content, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Direct, EngineError, Mode, Policy, Received, Shared};
use isthmus_transport::memory::Options;

/// Two processes; nobody waits while something is in flight.
fn pair(options: Options) -> [Shared; 2] {
    let policy = Policy {
        threads: false,
        guests: false,
    };
    let mut engines = world(2, options).engines.into_iter();
    [0, 1].map(|_| Shared::new(engines.next().expect("two"), policy))
}

/// From process 0 to process 1; the data must live until the message is received.
fn send(pair: &[Shared; 2], tag: i32, data: &OwnMemory, length: usize) -> bool {
    let mut engine = pair[0].lock();
    engine
        .core
        .send_at_once(&channel(0, 0, 2), 1, tag, &content(data, length))
        || engine
            .send(&channel(0, 0, 2), 1, tag, Mode::Standard, sending(data, length as u64))
            .expect("nobody is lost")
            .is_none()
}

fn receive(pair: &[Shared; 2], tag: Option<i32>, into: &OwnMemory, room: usize) -> Direct {
    receive_from(pair, Some(0), tag, into, room)
}

fn receive_from(pair: &[Shared; 2], source: Option<u32>, tag: Option<i32>, into: &OwnMemory, room: usize) -> Direct {
    pair[1].receive_directly(&channel(0, 1, 2), source, tag, into.memory(), room as u64)
}

#[test]
fn a_message_that_arrives_is_there() {
    let pair = pair(Options::default());
    for (length, tag) in [(0, Some(3)), (8, Some(3)), (8, None), (1000, Some(0))] {
        let (data, into) = (memory(&pattern(length, length)), OwnMemory::new(0, 1000));
        assert!(send(&pair, tag.unwrap_or(7), &data, length));
        let expected = Received {
            source: 0,
            tag: tag.unwrap_or(7),
            bytes: length as u64,
            room: 1000,
        };
        let source = (length < 1000).then_some(0);
        assert_eq!(
            receive_from(&pair, source, tag, &into, 1000),
            Direct::Received(expected)
        );
        assert_eq!(content(&into, length), pattern(length, length));
        assert_eq!(expected.completion().error, None);
    }
}

#[test]
fn a_message_that_is_too_long_is_cut() {
    let pair = pair(Options::default());
    let (data, into) = (memory(&pattern(1, 24)), OwnMemory::new(0, 16));
    assert!(send(&pair, 5, &data, 24));
    let Direct::Received(message) = receive(&pair, Some(5), &into, 16) else {
        panic!("it has arrived")
    };
    let completion = message.completion();
    assert_eq!(completion.bytes, 16);
    let cut = EngineError::Truncate {
        source: 0,
        tag: 5,
        message: 24,
        buffer: 16,
    };
    assert_eq!(completion.error, Some(cut));
    assert_eq!(content(&into, 16), pattern(1, 24)[..16]);
}

#[test]
fn anything_else_makes_it_an_ordinary_receive() {
    let pair = pair(Options::default());
    let (data, into) = (memory(&pattern(2, 100_000)), OwnMemory::new(0, 100_000));
    assert_eq!(receive(&pair, None, &into, 8), Direct::Nothing, "nothing arrives");
    // Another tag first: that message has to wait, and the right one is found afterwards.
    assert!(send(&pair, 1, &data, 8));
    assert_eq!(receive(&pair, Some(2), &into, 8), Direct::Nothing);
    let got = pair[1].receive(&channel(0, 1, 2), Some(0), Some(1), receiving(&into, 8));
    assert_eq!((got.bytes, got.error), (8, None));
    // A request to send.
    assert!(!send(&pair, 4, &data, 100_000));
    assert_eq!(receive(&pair, Some(4), &into, 100_000), Direct::Nothing);
}

#[test]
fn a_message_that_waits_is_taken() {
    let pair = pair(Options::default());
    let data = memory(&pattern(2, 200));
    for (source, length, room) in [(Some(0), 8, 8), (None, 200, 200), (None, 24, 16), (Some(0), 0, 8)] {
        let into = OwnMemory::new(0, 200);
        assert!(send(&pair, 1, &data, length));
        assert_eq!(
            receive(&pair, Some(2), &into, 8),
            Direct::Nothing,
            "it waits from now on"
        );
        let Direct::Received(message) = receive_from(&pair, source, Some(1), &into, room) else {
            panic!("{length} bytes wait")
        };
        assert_eq!((message.source, message.tag, message.bytes), (0, 1, length as u64));
        assert_eq!(message.completion().error.is_some(), length > room);
        let got = length.min(room);
        assert_eq!(content(&into, got), pattern(2, 200)[..got]);
        assert_eq!(receive(&pair, Some(1), &into, 8), Direct::Nothing, "it is gone");
    }
}

#[test]
fn a_message_that_waits_needs_no_posted_receive() {
    let pair = pair(Options::default());
    let data = memory(&pattern(2, 200));
    for (length, room) in [(8, 8), (200, 200), (0, 8), (24, 16)] {
        let into = OwnMemory::new(0, 200);
        assert!(send(&pair, 1, &data, length));
        assert_eq!(
            receive(&pair, Some(2), &into, 8),
            Direct::Nothing,
            "it waits from now on"
        );
        let of = channel(0, 1, 2);
        let plain = pair[1].lock().irecv_plainly(&of, 0, None, into.memory(), room as u64);
        assert_eq!(plain.is_some(), length <= room, "what has no room goes the general way");
        let mut engine = pair[1].lock();
        let request = match plain {
            Some(request) => request,
            None => engine.irecv(&of, Some(0), Some(1), receiving(&into, room as u64)),
        };
        let got = engine.core.take(request).expect("it was there");
        assert_eq!((got.tag, got.bytes), (1, length.min(room) as u64));
        assert_eq!(got.error.is_some(), length > room);
        assert_eq!(content(&into, length.min(room)), pattern(2, 200)[..length.min(room)]);
    }
}

#[test]
fn whoever_waits_to_hear_that_a_waiting_message_matched_hears_it() {
    let pair = pair(Options::default());
    let (data, into) = (memory(&pattern(4, 8)), OwnMemory::new(0, 8));
    for blocking in [true, false] {
        let (to, of) = (channel(0, 0, 2), channel(0, 1, 2));
        let sent = pair[0].lock().isend(&to, 1, 1, Mode::Synchronous, sending(&data, 8));
        pair[0].lock().progress();
        assert_eq!(receive(&pair, Some(2), &into, 8), Direct::Nothing);
        assert!(pair[0].lock().core.take(sent).is_none(), "it has not matched");
        if blocking {
            assert!(matches!(receive(&pair, Some(1), &into, 8), Direct::Received(_)));
        } else {
            let plain = pair[1].lock().irecv_plainly(&of, 0, Some(1), into.memory(), 8);
            assert!(plain.is_some_and(|request| pair[1].lock().core.take(request).is_some()));
        }
        assert!(pair[0].wait(|engine| engine.core.take(sent)).error.is_none());
    }
}

#[test]
fn an_older_receive_comes_first() {
    let pair = pair(Options::default());
    let (first, second) = (OwnMemory::new(0, 8), OwnMemory::new(0, 8));
    let request = pair[1]
        .lock()
        .irecv(&channel(0, 1, 2), None, None, receiving(&first, 8));
    let data = [memory(&pattern(1, 8)), memory(&pattern(2, 8))];
    assert!(send(&pair, 0, &data[0], 8) && send(&pair, 0, &data[1], 8));
    let direct = receive(&pair, Some(0), &second, 8);
    assert!(pair[1].lock().core.take(request).is_some_and(|c| c.error.is_none()));
    assert_eq!(content(&first, 8), pattern(1, 8));
    // Both have come with one look, or the second one waits.
    if direct == Direct::Nothing {
        let got = pair[1].receive(&channel(0, 1, 2), Some(0), Some(0), receiving(&second, 8));
        assert_eq!(got.error, None);
    }
    assert_eq!(content(&second, 8), pattern(2, 8));
}

#[test]
fn a_message_that_is_read_in_pieces_gets_a_request() {
    let pair = pair(Options {
        place: 100,
        ..Options::default()
    });
    let (data, into) = (memory(&pattern(3, 500)), OwnMemory::new(0, 500));
    assert!(send(&pair, 0, &data, 500));
    let Direct::Posted(request) = receive(&pair, Some(0), &into, 500) else {
        panic!("its memory was asked for")
    };
    let done = pair[1].wait(|engine| engine.core.take(request));
    assert_eq!((done.bytes, done.error), (500, None));
    assert_eq!(content(&into, 500), pattern(3, 500));
}
