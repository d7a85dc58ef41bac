// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::meter::Read;

const MS: Duration = Duration::from_millis(1);

/// One end measures a link of this rate and round trip, whose windows are always open. What it is content with, how
/// many trains that took, and how long.
fn measure(rate: f64, trip: Duration) -> (u64, usize, Duration) {
    let (mut here, mut there) = (Gauge::default(), Gauge::default());
    let start = Instant::now();
    let mut now = start;
    let mut word = Some(here.ask(now));
    while let Some(Word { what, number }) = word {
        assert_eq!(what, Probe::Ask);
        now += trip;
        let answer = Gauge::handle_question(number);
        word = here.handle_answer(answer.number, now).1;
    }
    let (mut word, mut trains) = (here.begin_trains().unwrap(), 0);
    assert_eq!(here.begin_trains(), None, "one at a time");
    loop {
        now += trip;
        let Some(head) = there.serve(word.number) else { break };
        assert_eq!(head, Word::new(Probe::Train, 0));
        assert_eq!(here.handle_train(0, now), None, "the head");
        trains += 1;
        let (mut arrived, mut left) = (None, word.number);
        while let Some(bytes) = there.next_piece() {
            assert!(arrived.is_none());
            // Packet by packet.
            for at in (0..bytes).step_by(1448) {
                let bytes = (bytes - at).min(1448);
                now += Duration::from_secs_f64(bytes as f64 / rate);
                left -= bytes;
                here.meter.read(now, Read { bytes, emptied: true }, true, left > 0);
            }
            arrived = here.handle_train(bytes, now);
        }
        word = arrived.unwrap().say;
    }
    assert_eq!(word, Word::new(Probe::Want, 0), "it is content");
    let rate = here.meter.estimate().rate.unwrap();
    (rate.bytes_per_second, trains, now - start)
}

#[test]
fn slow_links_need_a_short_train_and_fast_ones_longer_ones() {
    for (rate, trip, trains) in [(100e3, 40, 1), (1e6, 20, 1), (12.5e6, 20, 2), (125e6, 5, 3)] {
        let (found, used, time) = measure(rate, MS * trip);
        assert!((found as f64 / rate - 1.0).abs() < 0.05, "{rate}: {found}");
        assert_eq!(used, trains, "{rate}");
        assert!(time < Duration::from_millis(1200), "{time:?}");
    }
}

#[test]
fn round_trips_are_measured_at_the_beginning_and_then_now_and_then() {
    let (mut gauge, start) = (Gauge::default(), Instant::now());
    assert!(gauge.is_due(start));
    let mut word = gauge.ask(start);
    assert!(
        !gauge.is_due(start + MS * 4_999) && gauge.is_due(start + ANSWER_TIME),
        "it was lost"
    );
    for number in 1..FIRST_TRIPS {
        let now = start + MS * 10 * u32::from(number);
        let (counts, next) = gauge.handle_answer(word.number, now);
        assert!(counts);
        word = next.unwrap();
    }
    let end = start + MS * 10 * u32::from(FIRST_TRIPS);
    assert_eq!(gauge.handle_answer(word.number, end), (true, None));
    assert!(!gauge.is_due(end) && gauge.is_due(end + INTERVAL));
    // The other end says what it likes.
    let before = gauge.meter.estimate().trips;
    for number in [0, word.number - 1, word.number + 1, u64::MAX] {
        assert_eq!(gauge.handle_answer(number, end), (false, None));
    }
    assert_eq!(gauge.meter.estimate().trips, before);
}

#[test]
fn a_peer_gets_so_many_trains_and_no_longer_ones() {
    let mut gauge = Gauge::default();
    for _ in 0..MAX_ASKED {
        assert!(gauge.serve(u64::MAX).is_some());
        let bytes: u64 = std::iter::from_fn(|| gauge.next_piece()).sum();
        assert_eq!(bytes, TRAINS[2]);
    }
    assert!(gauge.serve(1).is_none() && !gauge.has_pieces());
    assert_eq!(gauge.handle_train(u64::MAX, Instant::now()), None, "nobody wanted one");
}

#[test]
fn rounds_have_their_turns_and_none_lasts_for_ever() {
    let mut rounds = Rounds::default();
    let round = |peer, receive| Round { peer, receive };
    rounds.add([round('a', true), round('b', false), round('c', false)]);
    assert_eq!(rounds.poll_turn(MS, |_| false), Turn::Wait);
    assert_eq!(rounds.poll_turn(MS * 9, |_| true), Turn::Receive('a'));
    // Who is early is remembered.
    assert!(!rounds.handle_wanted('b', 7) && rounds.is_next('a') && rounds.is_with('a', true));
    assert!(!rounds.handle_timeout(MS * 2_000));
    assert!(rounds.handle_timeout(MS * 2_001), "since the first look");
    assert_eq!(rounds.poll_turn(MS * 3_000, |_| true), Turn::Serve('b', 7));
    assert_eq!(rounds.poll_turn(MS * 3_000, |_| true), Turn::Wait, "it was told once");
    assert!(rounds.handle_wanted('b', 9));
    rounds.end_round();
    assert_eq!(rounds.poll_turn(MS * 4_000, |_| true), Turn::Wait);
    assert_eq!(rounds.poll_timeout(), Some(MS * 6_000));
    rounds.end_round();
    assert_eq!(
        (rounds.poll_turn(MS, |_| true), rounds.poll_timeout()),
        (Turn::Over, None)
    );
}
