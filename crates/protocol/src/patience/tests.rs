// SPDX-License-Identifier: Apache-2.0
//! Waits in virtual time.

use super::*;

const LIMITS: Limits = Limits {
    polls: 2000,
    spin: 200_000,
    yields: 30,
};
const LONG: u64 = 2_000_000;

/// A machine: what looks and yields take.
#[derive(Clone, Copy)]
struct Machine {
    look: u64,
    own: u64,
    others: u64,
}

/// Nobody else is there.
const QUIET: Machine = Machine {
    look: 12,
    own: 400,
    others: 50,
};
/// Another process of the job, which yields as well.
const CROWDED: Machine = Machine {
    look: 12,
    own: 1000,
    others: 1500,
};

/// Waits in vain until it is time to sleep: how often it yields, and the time.
fn wait(machine: Machine, processor: &mut Processor, limits: &Limits) -> (u64, u64) {
    let mut patience = Patience::new(*processor);
    let (mut wall, mut yields) = (1_000_000, 0);
    let began = wall;
    loop {
        wall += machine.look;
        let step = patience.decided();
        match step.unwrap_or_else(|| patience.decide(processor, limits, wall)) {
            Step::Poll => continue,
            Step::Sleep => return (yields, wall - began),
            Step::Yield => yields += 1,
        }
        let before = Times { wall, own: 0 };
        wall += machine.own + machine.others;
        if processor.is_due() {
            processor.yielded(before, Times { wall, own: machine.own });
            patience.reconsider();
        }
    }
}

fn alone() -> Processor {
    let mut processor = Processor::default();
    wait(QUIET, &mut processor, &LIMITS);
    processor
}

#[test]
fn a_process_that_is_alone_finds_it_out_in_its_first_wait() {
    let mut processor = Processor::default();
    assert!(processor.is_shared(), "until it is known");
    wait(QUIET, &mut processor, &LIMITS);
    assert!(!processor.is_shared());
}

#[test]
fn whoever_is_alone_looks_for_a_while_and_then_yields_seldom() {
    let mut processor = alone();
    let mut patience = Patience::new(processor);
    let looks = (0..).take_while(|_| patience.decided() == Some(Step::Poll)).count();
    assert_eq!(looks, 31, "no look at the clock before");
    let (yields, time) = wait(QUIET, &mut processor, &LIMITS);
    assert!(time > LIMITS.spin && time < LIMITS.spin + 2000, "{time}");
    // From 25 to 200 us by an eighth each time.
    assert!((10..25).contains(&yields), "{yields}");
}

#[test]
fn looks_that_take_long_are_soon_parted_by_yields() {
    let mut processor = alone();
    let slow = Machine { look: 1000, ..QUIET };
    let (yields, _) = wait(slow, &mut processor, &LIMITS);
    assert!(yields > 2, "{yields}");
}

#[test]
fn two_late_yields_show_that_the_processor_is_shared_and_one_does_not() {
    let mut processor = alone();
    let late = Times { wall: 5000, own: 400 };
    while processor.crowd > 0 {
        processor.yielded(Times::default(), Times { wall: 400, own: 390 });
    }
    processor.yielded(Times::default(), late);
    assert!(!processor.is_shared());
    processor.yielded(Times::default(), late);
    assert!(processor.is_shared());
    // And it is noticed when the others are gone.
    wait(QUIET, &mut processor, &LIMITS);
    assert!(!processor.is_shared());
}

#[test]
fn whoever_shares_yields_after_each_look_and_sleeps_soon() {
    let mut processor = Processor::default();
    let (yields, time) = wait(CROWDED, &mut processor, &LIMITS);
    assert!(processor.is_shared());
    assert_eq!(yields, 30);
    assert_eq!(time, 31 * CROWDED.look + 30 * (CROWDED.own + CROWDED.others));
}

/// A yield to somebody who computes takes a turn of the scheduler: one such turn is enough, and soon none is given away
/// before it was waited for a while.
#[test]
fn a_long_turn_of_somebody_else_ends_the_yields() {
    let mut processor = Processor::default();
    let computes = Machine {
        others: 4_000_000,
        ..CROWDED
    };
    for _ in 0..20 {
        let (yields, _) = wait(computes, &mut processor, &LIMITS);
        assert!((1..=3).contains(&yields), "{yields}");
    }
    assert!(!processor.is_shared());
    let mut patience = Patience::new(processor);
    let looks = (0..).take_while(|_| patience.decided() == Some(Step::Poll)).count();
    assert_eq!(looks, 31);
}

/// Seven that copy a piece of a message each take together longer than one who computes.
#[test]
fn those_of_the_job_that_share_a_processor_may_each_have_it_for_a_while() {
    let copying = Machine {
        others: 7 * 400_000,
        ..CROWDED
    };
    let shared = |neighbours, machine| {
        let mut processor = Processor::new(neighbours);
        for _ in 0..20 {
            wait(machine, &mut processor, &LIMITS);
        }
        processor.is_shared()
    };
    assert!(shared(7, copying));
    assert!(!shared(1, copying), "one neighbour would have given it back");
    let computes = Machine {
        others: 7 * 600_000,
        ..CROWDED
    };
    assert!(!shared(7, computes));
}

/// Beside somebody who computes it is still found out that others wait for this processor.
#[test]
fn whoever_gives_the_processor_back_counts_more_than_one_who_computes() {
    let mut processor = Processor::default();
    let mut yielded = |others: u64| {
        let after = Times {
            wall: 1000 + others,
            own: 1000,
        };
        processor.yielded(Times::default(), after);
        processor.is_shared()
    };
    for round in 0..100 {
        let shared = [yielded(1500), yielded(1500), yielded(1500), yielded(3_000_000)];
        assert_eq!(shared, [true; 4], "round {round}");
    }
    assert!((0..10).map(|_| yielded(3_000_000)).filter(|shared| *shared).count() <= 4);
}

#[test]
fn long_sleeps_make_it_sleep_sooner_and_short_ones_later() {
    let mut processor = Processor::default();
    let yields = |processor: &mut Processor| wait(CROWDED, processor, &LIMITS).0;
    let mut seen = vec![yields(&mut processor)];
    for sleep in [LONG, LONG, LONG, LONG, LONG, LONG, LONG, SHORT, SHORT, LONG, SHORT] {
        processor.slept(sleep);
        seen.push(yields(&mut processor));
    }
    assert_eq!(seen, [30, 15, 7, 3, 2, 2, 2, 2, 3, 7, 3, 7]);
    for _ in 0..5 {
        processor.slept(SHORT);
    }
    assert_eq!(yields(&mut processor), 30, "as at the beginning");
}

#[test]
fn what_comes_soon_is_waited_for_longer_until_something_takes_long() {
    let mut processor = alone();
    let mut seen = vec![processor.spin(&LIMITS)];
    for sleep in [SHORT, SHORT, SHORT, LONG, LONG, SHORT] {
        processor.slept(sleep);
        seen.push(processor.spin(&LIMITS));
    }
    assert_eq!(seen, [200_000, 400_000, 800_000, 800_000, 200_000, 200_000, 400_000]);
    let forever = Limits {
        spin: u64::MAX,
        ..LIMITS
    };
    assert_eq!(processor.spin(&forever), u64::MAX);
}

#[test]
fn a_smaller_number_than_the_fewest_is_kept_but_for_one_yield() {
    let mut processor = Processor::default();
    processor.slept(LONG);
    let none = Limits { yields: 0, ..LIMITS };
    assert_eq!(wait(CROWDED, &mut processor, &none).0, 1);
    let nothing = Limits {
        polls: 0,
        spin: 0,
        yields: 0,
    };
    let mut processor = alone();
    let (yields, time) = wait(QUIET, &mut processor, &nothing);
    assert!(yields <= 1 && time < 2000, "{yields} in {time}");
}

#[test]
fn what_is_known_survives_as_a_number() {
    let mut processor = Processor::default();
    processor.slept(LONG);
    assert_eq!(Processor::from_bits(processor.to_bits()), processor);
}

/// A turn of somebody who computes, in units of the tests' clock.
const COMPUTES: Machine = Machine {
    others: 4_000_000,
    ..CROWDED
};

/// With a processor for each process of the job nobody that is waited for needs this one.
#[test]
fn whoever_has_room_waits_for_turns_of_others_without_yields() {
    let mut processor = Processor::new(0);
    wait(COMPUTES, &mut processor, &LIMITS);
    let (yields, time) = wait(COMPUTES, &mut processor, &LIMITS);
    assert_eq!(yields, 0);
    assert!((4 * 3_500_000..=4 * 4_000_000 + 2000).contains(&time), "{time}");
    // One who sleeps long all the same waits less before.
    processor.slept(100_000_000);
    let (_, less) = wait(COMPUTES, &mut processor, &LIMITS);
    assert!(less < time * 6 / 10, "{less}");
}

#[test]
fn whoever_computed_beside_and_is_gone_is_forgotten() {
    let mut processor = Processor::new(0);
    wait(COMPUTES, &mut processor, &LIMITS);
    let last = (0..20).map(|_| wait(QUIET, &mut processor, &LIMITS).1).last();
    assert!(last < Some(LIMITS.spin + 2000), "{last:?}");
}

/// A thread that only looks is told by the wall's clock that it was without its processor.
#[test]
fn a_turn_that_is_lost_while_looking_is_noticed() {
    let mut processor = Processor::new(0);
    wait(QUIET, &mut processor, &LIMITS);
    let mut patience = Patience::new(processor);
    let look = |patience: &mut Patience, processor: &mut Processor, wall| {
        while patience.decided().is_some() {}
        patience.decide(processor, &LIMITS, wall)
    };
    assert_eq!(look(&mut patience, &mut processor, 1_000_000), Step::Poll);
    assert!(!processor.has_rival());
    assert_eq!(look(&mut patience, &mut processor, 4_000_000), Step::Poll);
    assert!(processor.has_rival());
}

#[test]
fn without_room_a_lost_turn_changes_nothing() {
    let mut processor = Processor::default();
    wait(COMPUTES, &mut processor, &LIMITS);
    assert!(!processor.has_rival());
}

#[test]
fn a_processor_survives_as_a_number() {
    let mut processor = Processor::new(0);
    wait(COMPUTES, &mut processor, &LIMITS);
    processor.slept(LONG);
    assert_eq!(Processor::from_bits(processor.to_bits()), processor);
}
