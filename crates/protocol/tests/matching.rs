// SPDX-License-Identifier: Apache-2.0
//! The matcher against two plain lists.

use isthmus_protocol::matching::{Context, Envelope, Matcher, Pattern, Posted};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Event {
    Arrive(Envelope),
    Receive(Pattern),
    /// Cancels the n-th (modulo) receive that waits.
    Cancel(usize),
    Probe(Pattern),
}

/// MPI's rules as they are written: both queues are lists in order, the first that fits matches.
#[derive(Default)]
struct Naive {
    receives: Vec<(Pattern, usize)>,
    messages: Vec<(Envelope, usize)>,
}

impl Naive {
    fn arrive(&mut self, envelope: Envelope, name: usize) -> Option<usize> {
        match self.receives.iter().position(|(pattern, _)| pattern.fits(&envelope)) {
            Some(at) => Some(self.receives.remove(at).1),
            None => {
                self.messages.push((envelope, name));
                None
            }
        }
    }

    fn receive(&mut self, pattern: Pattern, name: usize) -> Option<usize> {
        match self.messages.iter().position(|(envelope, _)| pattern.fits(envelope)) {
            Some(at) => Some(self.messages.remove(at).1),
            None => {
                self.receives.push((pattern, name));
                None
            }
        }
    }
}

fn envelope() -> impl Strategy<Value = Envelope> {
    (0..3_u32, 0..4_u32, 0..4_i32).prop_map(|(context, source, tag)| Envelope {
        // Two jobs with equal numbers.
        context: Context::new(context % 2, context / 2),
        source,
        tag,
    })
}

fn pattern() -> impl Strategy<Value = Pattern> {
    (envelope(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(e, source, tag, exact)| Pattern {
        context: e.context,
        source: (source || exact).then_some(e.source),
        tag: (tag || exact).then_some(e.tag),
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => envelope().prop_map(Event::Arrive),
        6 => pattern().prop_map(Event::Receive),
        1 => any::<usize>().prop_map(Event::Cancel),
        2 => pattern().prop_map(Event::Probe),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn matches_as_two_plain_lists_do(events in prop::collection::vec(event(), 1..400)) {
        let mut matcher = Matcher::<(usize, u32), usize>::new();
        let mut naive = Naive::default();
        let mut posted: Vec<(usize, Posted)> = vec![];
        for (name, event) in events.into_iter().enumerate() {
            match event {
                Event::Arrive(envelope) => {
                    let matched = matcher.arrive(&envelope).map(|(name, _)| name);
                    if matched.is_none() {
                        matcher.keep(envelope, name);
                    }
                    prop_assert_eq!(matched, naive.arrive(envelope, name));
                    posted.retain(|(other, _)| Some(*other) != matched);
                }
                Event::Receive(pattern) => {
                    let taken = matcher.take(&pattern).map(|(_, name)| name);
                    if taken.is_none() {
                        posted.push((name, matcher.post(pattern, (name, pattern.source.unwrap_or(9)))));
                    }
                    prop_assert_eq!(taken, naive.receive(pattern, name));
                }
                Event::Cancel(at) if !posted.is_empty() => {
                    let (name, handle) = posted.remove(at % posted.len());
                    prop_assert_eq!(matcher.cancel(handle).map(|r| r.0), Some(name));
                    naive.receives.retain(|(_, other)| *other != name);
                }
                Event::Cancel(_) => {}
                Event::Probe(pattern) => {
                    let found = matcher.find(&pattern).and_then(|at| matcher.look(at)).map(|(_, &name)| name);
                    let expected = naive.messages.iter().find(|(envelope, _)| pattern.fits(envelope));
                    prop_assert_eq!(found, expected.map(|(_, name)| *name));
                }
            }
            prop_assert_eq!(matcher.lengths(), (naive.receives.len(), naive.messages.len()));
        }
    }
}

/// Many receives and messages at once make the tables grow; the order within equal envelopes stays.
#[test]
fn order_survives_growth() {
    let mut matcher = Matcher::<u32, u32>::new();
    let envelope = |i: u32| Envelope {
        context: Context::default(),
        source: i % 1000,
        tag: 7,
    };
    for i in 0..50_000 {
        let e = envelope(i);
        matcher.post(
            Pattern {
                context: Context::default(),
                source: Some(e.source),
                tag: Some(7),
            },
            i,
        );
    }
    assert!((0..50_000).all(|i| matcher.arrive(&envelope(i)) == Some(i)));
    for i in 0..50_000 {
        matcher.keep(envelope(i), i);
    }
    let any = Pattern {
        context: Context::default(),
        source: None,
        tag: None,
    };
    for i in 0..50_000 {
        let e = envelope(i);
        let exact = Pattern {
            context: Context::default(),
            source: Some(e.source),
            tag: Some(7),
        };
        let found = matcher.take(if i % 2 == 0 { &exact } else { &any });
        assert_eq!(found.map(|(_, name)| name), Some(i));
    }
}
