// SPDX-License-Identifier: Apache-2.0
//! Two processes and what can happen between them, in virtual time: a minute of theirs takes a few milliseconds.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod world;

use std::time::Duration;

use isthmus_link::life::State;
use isthmus_link::sharing::Class;
use world::{Chance, End, World, ms};

const AWAY: Duration = Duration::from_secs(60);
const RTT: Duration = ms(20);

/// Something that happens to a world at a time.
type Happening = (Duration, Box<dyn FnMut(&mut World)>);

/// Messages that differ.
fn message(from: usize, number: u64) -> Vec<u8> {
    format!("{number} from {from};").into_bytes()
}

/// Both say `count` messages, one every so often.
struct Talk {
    count: u64,
    every: Duration,
}

impl Talk {
    const USUAL: Self = Self {
        count: 200,
        every: ms(10),
    };

    /// Something happens beside it, at each of these times.
    fn with(&self, world: &mut World, mut happenings: Vec<Happening>) {
        happenings.sort_by_key(|(at, _)| *at);
        let mut happenings = happenings.into_iter().peekable();
        let begin = world.now;
        for number in 0..self.count {
            let at = begin + self.every * number as u32;
            while let Some((when, mut happens)) = happenings.next_if(|(when, _)| begin + *when <= at) {
                world.until(begin + when, |_| false);
                happens(world);
            }
            world.until(at, |_| false);
            (0..2).for_each(|me| End::push(world, me, Class::Normal, message(me, number)));
        }
        for (when, mut happens) in happenings {
            world.until(begin + when, |_| false);
            happens(world);
        }
    }

    fn wanted(&self, from: usize) -> Vec<u8> {
        (0..self.count).flat_map(|n| message(from, n)).collect()
    }

    /// Everything arrives, once and in order.
    fn arrives(&self, world: &mut World, within: Duration) {
        let end = world.now + within;
        let done = world.until(end, |w| w.ends.iter().all(End::is_idle));
        assert!(done, "it does not come to an end:\n{}", world.trace.join("\n"));
        for me in 0..2 {
            assert!(world.ends[me].lost.is_none(), "{:?}", world.ends[me].lost);
            assert!(
                world.ends[me].got[Class::Normal as usize] == self.wanted(1 - me),
                "{}",
                world.trace.join("\n")
            );
        }
    }
}

fn cut(at: Duration) -> Happening {
    (at, Box::new(|world| world.up = false))
}

fn restore(at: Duration) -> Happening {
    (at, Box::new(|world| world.up = true))
}

fn reset(at: Duration) -> Happening {
    (at, Box::new(World::reset))
}

#[test]
fn a_short_cut_is_left_to_tcp() {
    let mut world = World::new(RTT / 2, AWAY);
    Talk::USUAL.with(&mut world, vec![cut(ms(500)), restore(ms(3_000))]);
    Talk::USUAL.arrives(&mut world, ms(5_000));
    assert_eq!(world.ends.each_ref().map(|e| (e.opened, e.cuts)), [(1, 0); 2]);
}

#[test]
fn a_long_cut_takes_a_new_connection_and_loses_nothing() {
    let mut world = World::new(RTT / 2, AWAY);
    Talk::USUAL.with(&mut world, vec![cut(ms(500)), restore(ms(8_000))]);
    Talk::USUAL.arrives(&mut world, ms(8_000));
    assert_eq!(world.ends.each_ref().map(|e| e.cuts), [1; 2]);
    assert_eq!(
        world.ends.each_ref().map(|e| e.life.lines.len()),
        [1; 2],
        "{}",
        world.trace.join("\n")
    );
}

#[test]
fn both_dial_after_a_reset_and_keep_one_connection() {
    for delay in [0, 1, 10, 75, 150] {
        for (first, second) in [(true, true), (true, false), (false, true)] {
            let mut world = World::new(ms(delay), AWAY);
            world.reached = [first, second];
            Talk::USUAL.with(&mut world, vec![reset(ms(1_500))]);
            Talk::USUAL.arrives(&mut world, ms(20_000));
            world.until(world.now + ms(2_000), |_| false);
            let lines = world.ends.each_ref().map(|e| e.life.lines.len());
            assert_eq!(lines, [1; 2], "{delay} ms:\n{}", world.trace.join("\n"));
        }
    }
}

#[test]
fn who_stays_away_is_lost_and_it_is_said_why() {
    let mut world = World::new(RTT / 2, ms(20_000));
    Talk::USUAL.with(&mut world, vec![cut(ms(1_000))]);
    assert!(world.until(ms(60_000), |w| w.ends.iter().all(|e| e.lost.is_some())));
    // Silence, and then as long as it may.
    assert!((ms(23_000)..ms(27_000)).contains(&world.now), "{:?}", world.now);
    for end in &world.ends {
        let why = end.lost.as_ref().unwrap();
        assert!(
            why.contains("ISTHMUS_AWAY allows (20 s)") && why.contains("Tried 10.0.0."),
            "{why}"
        );
        assert_eq!(*end.life.state(), State::GivenUp);
    }
}

#[test]
fn who_has_ended_is_lost_soon() {
    for reached in [[true, true], [false, true]] {
        let mut world = World::new(RTT / 2, AWAY);
        world.reached = reached;
        // The one that is left has dialled the other, or could.
        Talk::USUAL.with(&mut world, vec![]);
        Talk::USUAL.arrives(&mut world, ms(5_000));
        let killed = world.now;
        world.kill(1);
        assert!(world.until(killed + ms(30_000), |w| w.ends[0].lost.is_some()));
        assert!(world.now < killed + ms(8_000), "{:?} after {killed:?}", world.now);
        let why = world.ends[0].lost.as_ref().unwrap();
        assert!(
            why.contains("has probably ended") && !why.contains("ISTHMUS_AWAY"),
            "{why}"
        );
    }
}

#[test]
fn at_the_end_nobody_dials_again() {
    let mut world = World::new(RTT / 2, AWAY);
    Talk::USUAL.with(&mut world, vec![]);
    Talk::USUAL.arrives(&mut world, ms(5_000));
    world
        .ends
        .iter_mut()
        .for_each(|end| (end.closing, end.alarm) = (true, ms(0)));
    let closed = |w: &World| w.ends.iter().all(|e| e.life.has_closed(false, e.is_idle()));
    assert!(world.until(world.now + ms(1_000), closed));
    world.reset();
    world.until(world.now + ms(30_000), |_| false);
    let ends = world
        .ends
        .each_ref()
        .map(|e| (e.life.state().clone(), e.dial.is_none()));
    assert_eq!(ends, [(State::Over, true), (State::Over, true)]);
}

#[test]
fn when_all_have_settled_nobody_waits_for_who_has_left() {
    let mut world = World::new(RTT / 2, AWAY);
    Talk::USUAL.with(&mut world, vec![]);
    Talk::USUAL.arrives(&mut world, ms(5_000));
    // An answer that nobody waits for any more; the other end leaves before it comes.
    world.up = false;
    End::push(&mut world, 0, Class::Normal, b"too late".to_vec());
    world.until(world.now + ms(100), |_| false);
    world.ends[0].closing = true;
    world.reset();
    world.until(world.now + ms(1_000), |_| false);
    let end = &world.ends[0];
    assert_eq!(
        (end.life.state(), &end.lost, end.dial.is_none()),
        (&State::Over, &None, true)
    );
}

#[test]
fn what_begins_and_never_ends_is_not_waited_for_for_ever() {
    let patience = ms(5_000);
    let mut world = World::new(RTT / 2, patience);
    Talk::USUAL.with(&mut world, vec![]);
    Talk::USUAL.arrives(&mut world, ms(5_000));
    // A header and the beginning of what it announces. The system at the other end answers all the time.
    world.left[0] = 40;
    let begun = world.now;
    End::push(&mut world, 0, Class::Normal, vec![0; 1_000]);
    assert!(world.until(begun + ms(60_000), |w| w.ends[1].lost.is_some()));
    assert!(world.now - begun < patience + ms(4_000), "{:?}", world.now - begun);
    let why = world.ends[1].lost.as_ref().unwrap();
    assert!(why.contains("has not ended it"), "{why}");
}

#[test]
fn what_a_gateway_carries_moves_when_the_direct_way_opens() {
    let mut world = World::new(RTT / 2, AWAY);
    world.reached = [false; 2];
    world.ends.iter_mut().for_each(|end| end.by_gateway = true);
    let slow = Talk {
        count: 400,
        every: ms(100),
    };
    let open: Box<dyn FnMut(&mut World)> = Box::new(|world| world.reached = [true; 2]);
    slow.with(&mut world, vec![(ms(20_000), open)]);
    slow.arrives(&mut world, ms(5_000));
    for end in &world.ends {
        let there = end.life.there();
        assert!(there.direct && !there.gateway, "{}", world.trace.join("\n"));
        assert_eq!(end.cuts, 0, "nothing has broken");
    }
}

/// A megabyte of bulk data each 84 ms, which is all that the link carries, and a word of another class now and then.
/// The longest time that a word took.
fn slowest_word(class: Class, world: &mut World) -> Duration {
    let (mut slowest, mut said) = (Duration::ZERO, [0; 3]);
    for round in 0..200u64 {
        let begin = world.now;
        let data = (0..16).map(|_| (Class::Bulk, vec![0; 64 << 10]));
        for (class, bytes) in data.chain([(class, message(0, round))]) {
            said[class as usize] += bytes.len();
            End::push(world, 0, class, bytes);
        }
        let wanted = said[class as usize];
        let come = |w: &World| w.ends[1].got[class as usize].len() == wanted;
        assert!(world.until(begin + ms(20_000), come), "{}", world.trace.join("\n"));
        // Connections of their own are made while the first words pass.
        if round >= 50 {
            slowest = slowest.max(world.now - begin);
        }
        world.until(begin + ms(84), |_| false);
    }
    slowest
}

#[test]
fn a_class_with_a_connection_of_its_own_does_not_wait_for_bulk_data() {
    let world = || World::new(RTT / 2, AWAY).over(12_500_000, 0, 1);
    let behind = slowest_word(Class::Bulk, &mut world());
    let mut other = world();
    let before = slowest_word(Class::Latency, &mut other);
    assert_eq!(other.ends.each_ref().map(|e| e.life.lines.len()), [3; 2]);
    // The way itself, and three pieces of 64 KiB: its own turn comes after one of each of the others.
    assert!(before <= RTT / 2 + ms(16), "{before:?}");
    assert!(behind > before * 3, "{behind:?} {before:?}");
}

#[test]
fn classes_keep_their_order_whatever_is_cut() {
    let mut world = World::new(RTT / 2, AWAY).over(12_500_000, 50, seed());
    for round in 0..100 {
        for class in [Class::Latency, Class::Normal, Class::Bulk] {
            (0..2).for_each(|me| End::push(&mut world, me, class, message(me, round)));
        }
        match round {
            20 | 60 => world.reset(),
            40 => world.up = false,
            45 => world.up = true,
            _ => {}
        }
        world.until(world.now + ms(1_000), |_| false);
    }
    let done = world.until(world.now + ms(60_000), |w| w.ends.iter().all(End::is_idle));
    assert!(done, "{}", world.trace.join("\n"));
    for me in 0..2 {
        let wanted: Vec<u8> = (0..100).flat_map(|n| message(1 - me, n)).collect();
        assert_eq!(world.ends[me].got, [wanted.clone(), wanted.clone(), wanted]);
    }
    assert!(world.ends.iter().all(|e| e.cuts >= 2));
}

/// That of an earlier run, which has printed it, or a new one.
fn seed() -> u64 {
    let given = std::env::var("ISTHMUS_TEST_SEED");
    let seed = given.ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("ISTHMUS_TEST_SEED={seed}");
    seed
}

/// What happens in a world of chance.
fn happenings(chance: &mut Chance) -> Vec<Happening> {
    let mut all = Vec::new();
    // Whoever has never been reached is lost sooner than one that was.
    let mut at = ms(2_000);
    for _ in 0..chance.below(8) {
        at += ms(chance.below(6_000));
        if chance.below(2) == 0 {
            all.push(reset(at));
        } else {
            all.push(cut(at));
            at += ms(chance.below(12_000));
            all.push(restore(at));
        }
    }
    all
}

#[test]
fn whatever_happens_all_arrives_once_and_in_order() {
    let seed = seed();
    for round in 0..100 {
        let run = || {
            let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round);
            let mut world = World::new(ms(chance.below(150)), AWAY);
            if chance.below(2) == 0 {
                world = world.over(10_000 << chance.below(12), chance.below(100), seed ^ round);
            }
            match chance.below(4) {
                0 => world.reached = [true, false],
                1 => world.reached = [false, true],
                _ => {}
            }
            let all = happenings(&mut chance);
            Talk::USUAL.with(&mut world, all);
            Talk::USUAL.arrives(&mut world, ms(120_000));
            world.trace
        };
        assert_eq!(run(), run(), "the same orders make the same world");
    }
}
