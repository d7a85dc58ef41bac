// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::ladder::{STAGGER, direct};

/// What the tests' attempts come to.
#[derive(Clone, Copy, Debug)]
enum Why {
    Refused,
    Silent,
    NoRoute,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::Silent => "no answer",
            Self::NoRoute => "no route",
        })
    }
}

impl Cause for Why {
    fn is_refused(&self) -> bool {
        matches!(self, Self::Refused)
    }
    fn is_silent(&self) -> bool {
        matches!(self, Self::Silent)
    }
    fn is_about_certificates(&self) -> bool {
        false
    }
    fn is_stranger(&self) -> bool {
        false
    }
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const PATIENCE: Duration = Duration::from_secs(10);

fn address(n: u8) -> SocketAddr {
    SocketAddr::new([10, 0, 0, n].into(), 7)
}

fn dial(purpose: Purpose, count: u8) -> Dial<Why> {
    let rungs = direct((1..=count).map(address));
    Dial::new(purpose, Duration::ZERO, PATIENCE, rungs, Vec::new())
}

/// Goes on until the time is over. Each attempt comes to `why`, after `takes`. When which candidate was tried.
fn all_fail(dial: &mut Dial<Why>, why: Why, takes: Duration) -> Vec<(Duration, usize)> {
    let (mut now, mut tried, mut failing) = (Duration::ZERO, Vec::new(), Vec::<(Duration, usize)>::new());
    while !dial.is_over(now) {
        while let Some(attempt) = dial.poll_attempt(now) {
            dial.handle_begun(attempt.candidate, tried.len() as u64);
            tried.push((now, attempt.candidate));
            failing.push((now + takes, attempt.candidate));
        }
        let next = failing
            .iter()
            .map(|(at, _)| *at)
            .fold(dial.poll_timeout(), Duration::min);
        assert!(next > now, "it does not turn on the spot");
        now = next;
        let (failed, going_on): (Vec<_>, Vec<_>) = failing.into_iter().partition(|(at, _)| *at <= now);
        failing = going_on;
        failed
            .into_iter()
            .for_each(|(_, candidate)| dial.handle_failed(candidate, why, now));
    }
    tried
}

#[test]
fn the_report_names_every_address() {
    let mut dial = dial(Purpose::First, 2);
    dial.unusable.push("home".into());
    assert_eq!(dial.poll_attempt(ms(0)).map(|a| a.candidate), Some(0));
    dial.handle_failed(0, Why::NoRoute, ms(1));
    assert_eq!(
        dial.poll_attempt(ms(1)).map(|a| a.candidate),
        Some(1),
        "a failure hurries the next address"
    );
    dial.handle_begun(1, 9);
    assert_eq!(
        dial.report(),
        "10.0.0.1:7 (no route); 10.0.0.2:7 (no answer); home (not an address, or no port)"
    );
    assert!(dial.cure().contains("firewall"));
    assert_eq!(dial.under_way().collect::<Vec<_>>(), [9]);
}

#[test]
fn silent_addresses_are_tried_side_by_side_and_each_once() {
    let mut dial = dial(Purpose::First, 3);
    let tried = all_fail(&mut dial, Why::Silent, PATIENCE);
    assert_eq!(tried, [(ms(0), 0), (STAGGER, 1), (STAGGER * 2, 2)]);
}

#[test]
fn an_address_that_fails_is_tried_ever_less_often() {
    let mut dial = dial(Purpose::First, 1);
    let times: Vec<Duration> = all_fail(&mut dial, Why::NoRoute, ms(1))
        .iter()
        .map(|(at, _)| *at)
        .collect();
    let pauses: Vec<Duration> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(pauses[..5], [101, 201, 401, 801, 1601].map(ms));
    assert!(
        pauses[5..].iter().all(|pause| *pause == LONGEST_WAIT + ms(1)),
        "{pauses:?}"
    );
}

#[test]
fn who_refuses_where_it_listened_is_gone_and_who_called_may_call_again() {
    for (last, tries) in [
        (LastSeen::Listening(address(1)), REFUSALS),
        (LastSeen::Calling(address(1).ip()), MORE_REFUSALS),
    ] {
        let mut dial = dial(Purpose::Resume, 1);
        let mut now = Duration::ZERO;
        for n in 1..=tries {
            assert!(!dial.is_refused(last), "{n} of {tries}");
            now = dial.poll_timeout();
            assert_eq!(dial.poll_attempt(now).map(|a| a.candidate), Some(0));
            dial.handle_failed(0, Why::Refused, now);
        }
        assert!(dial.is_refused(last) && !dial.is_refused(LastSeen::Nowhere));
        assert!(!dial.is_refused(LastSeen::Listening(address(2))), "somewhere else");
        assert!(now < Duration::from_secs(8));
    }
    let mut first = dial(Purpose::First, 1);
    all_fail(&mut first, Why::Refused, ms(1));
    assert!(!first.is_refused(LastSeen::Listening(address(1))), "it may begin late");
}

#[test]
fn a_peer_that_was_told_and_does_not_call_is_told_again() {
    let call = Rung {
        address: address(9),
        by: By::Call,
        after: Duration::ZERO,
    };
    let mut dial: Dial<Why> = Dial::new(Purpose::First, Duration::ZERO, PATIENCE, vec![call], Vec::new());
    let mut told = Vec::new();
    let mut now = Duration::ZERO;
    while !dial.is_over(now) {
        if let Some(attempt) = dial.poll_attempt(now) {
            told.push(now);
            dial.handle_told(attempt.candidate, now);
        }
        now = dial.poll_timeout();
    }
    assert_eq!(told, [0, 3_000, 6_000, 9_000].map(ms));
    assert!(dial.report().contains("it was told, and nothing came"));
}
