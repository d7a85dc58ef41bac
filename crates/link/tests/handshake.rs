// SPDX-License-Identifier: Apache-2.0
//! Handshakes in virtual time: each end is proven to the other whatever pieces the bytes come in, and whoever is a
//! stranger, is silent, drips, repeats what it heard or changes what it passes on proves nothing.

use std::time::Duration;

use isthmus_link::door::HANDSHAKE_TIME;
use isthmus_link::fuzz::End;
use isthmus_link::handshake::{Cover, Handshake, Refusal, Target, Then};
use isthmus_link::line::By;
use isthmus_wire::hello::{KNOCK_BYTES, MAGIC, Purpose, REPLY_BYTES, USE};
use isthmus_wire::place::Rank;

const TIME: Duration = Duration::from_secs(10);

fn target(peer: u32, cover: Cover, purpose: Purpose) -> Target {
    Target {
        peer: Rank(peer),
        cover,
        by: By::Direct,
        makes_way: false,
        purpose,
    }
}

/// `from` dials `to`.
fn two(from: u32, to: u32, cover: Cover, purpose: Purpose) -> [End; 2] {
    let dialler = Handshake::dial(TIME, target(to, cover, purpose));
    let mut ends = [
        End::new(dialler, from, cover),
        End::new(Handshake::accept(Duration::ZERO), to, cover),
    ];
    ends[0].shown = Some(Rank(to));
    ends[1].shown = Some(Rank(from));
    ends
}

/// Both say and read until nothing moves any more: what is said is heard `delay` later, in pieces of so many bytes.
/// What passes goes through `change`. When that was.
fn run(ends: &mut [End; 2], piece: usize, delay: Duration, mut change: impl FnMut(usize, &mut Vec<u8>)) -> Duration {
    let mut now = Duration::ZERO;
    let first = ends[0].connect();
    let mut under_way = vec![(1, first)];
    if ends[0].sealed {
        // Something of TLS, by which it is known.
        under_way.push((1, vec![22]));
    }
    while !under_way.is_empty() && now < TIME * 2 {
        now += delay;
        let mut said = Vec::new();
        for (to, mut bytes) in std::mem::take(&mut under_way) {
            change(to, &mut bytes);
            let end = &mut ends[to];
            end.coming.extend(bytes);
            while end.goes_on() && !end.coming.is_empty() && !end.machine.is_sealing() {
                let words = end.read(piece);
                said.push((1 - to, words));
            }
        }
        if ends.iter().all(|end| end.sealed && end.machine.is_sealing()) {
            ends[1].coming.clear();
            for at in [1, 0] {
                let words = ends[at].seal();
                said.push((1 - at, words));
            }
        }
        ends.iter_mut()
            .filter(|end| end.goes_on())
            .for_each(|end| end.wait(now));
        under_way = said.into_iter().filter(|(_, words)| !words.is_empty()).collect();
    }
    now
}

fn proven(end: &End) -> Option<(Rank, Purpose)> {
    match &end.result {
        Some(Ok(Then::Proven { peer, purpose, .. })) => Some((*peer, *purpose)),
        _ => None,
    }
}

fn as_they_are(_: usize, _: &mut Vec<u8>) {}

#[test]
fn two_processes_meet_in_pieces_of_any_size() {
    for (from, to) in [(1, 2), (2, 1)] {
        for cover in [Cover::Plain, Cover::Tls] {
            for piece in [1, 2, 3, 7, 79, 80, 81, 5000] {
                let mut ends = two(from, to, cover, Purpose::First);
                run(&mut ends, piece, Duration::from_millis(40), as_they_are);
                assert_eq!(
                    proven(&ends[0]),
                    Some((Rank(to), Purpose::First)),
                    "{cover:?} in pieces of {piece}"
                );
                assert_eq!(
                    proven(&ends[1]),
                    Some((Rank(from), Purpose::First)),
                    "{cover:?} in pieces of {piece}"
                );
            }
        }
    }
}

#[test]
fn of_one_more_the_dialler_decides() {
    for (from, to) in [(1, 2), (2, 1)] {
        let mut ends = two(from, to, Cover::Tls, Purpose::Direct);
        run(&mut ends, 100, Duration::from_millis(40), as_they_are);
        assert_eq!(proven(&ends[1]), Some((Rank(from), Purpose::Direct)));
        assert!(ends[1].said.is_empty(), "it is told");
    }
}

#[test]
fn of_two_at_once_the_lower_rank_keeps_one() {
    for cover in [Cover::Plain, Cover::Tls] {
        let (mut up, mut down) = (two(1, 2, cover, Purpose::First), two(2, 1, cover, Purpose::First));
        run(&mut up, 100, Duration::from_millis(40), as_they_are);
        // Rank 1 has said that this one counts: it wants no other.
        down[1].admits = false;
        run(&mut down, 100, Duration::from_millis(40), as_they_are);
        assert!(proven(&up[0]).is_some() && proven(&up[1]).is_some());
        assert_eq!(down[1].result, Some(Err(Refusal::Taken)));
        assert!(
            proven(&down[0]).is_none(),
            "it has heard nothing, and waits for the end"
        );
        down[0].ended = true;
        down[0].read(1);
        assert_eq!(down[0].result, Some(Err(Refusal::Closed)));
    }
}

#[test]
fn who_counts_as_lost_hears_so_and_nothing_else() {
    for (from, to, at) in [(1, 2, 0), (1, 2, 1), (2, 1, 0), (2, 1, 1)] {
        let mut ends = two(from, to, Cover::Tls, Purpose::Resume);
        ends[at].given_up = true;
        run(&mut ends, 100, Duration::from_millis(40), as_they_are);
        assert!(ends[at].goes_on(), "it waits until the other has heard");
        ends[at].ended = true;
        ends[at].read(1);
        let other = ends[1 - at].me;
        assert_eq!(ends[at].result, Some(Ok(Then::Over(other))));
    }
}

#[test]
fn any_changed_byte_of_a_plain_handshake_proves_nothing() {
    let mut ends = two(2, 1, Cover::Plain, Purpose::First);
    run(&mut ends, 5000, Duration::from_millis(1), as_they_are);
    let said = ends.each_ref().map(|end| end.said.len());
    for (heard_by, length) in [(1, said[0]), (0, said[1])] {
        // The verdicts are no part of what is proven: who changes those can as well cut the connection.
        let verdict =
            |at| (heard_by == 1 && at == KNOCK_BYTES + REPLY_BYTES - 1) || (heard_by == 0 && at == length - 1);
        for changed in (0..length).filter(|at| !verdict(*at)) {
            let (mut ends, mut passed) = (two(2, 1, Cover::Plain, Purpose::First), 0);
            run(&mut ends, 5000, Duration::from_millis(1), |to, bytes| {
                if to == heard_by {
                    if let Some(byte) = changed.checked_sub(passed).and_then(|at| bytes.get_mut(at)) {
                        *byte ^= 0x10;
                    }
                    passed += bytes.len();
                }
            });
            let hearer = &ends[heard_by];
            assert!(proven(hearer).is_none(), "byte {changed} of what end {heard_by} hears");
        }
    }
}

#[test]
fn a_handshake_that_is_cut_anywhere_comes_to_nothing() {
    let mut ends = two(2, 1, Cover::Plain, Purpose::First);
    run(&mut ends, 5000, Duration::from_millis(1), as_they_are);
    assert!(proven(&ends[1]).is_some());
    for length in 0..ends[0].said.len() {
        let (mut ends, mut left) = (two(2, 1, Cover::Plain, Purpose::First), length);
        run(&mut ends, 5000, Duration::from_millis(1), |to, bytes| {
            if to == 1 {
                bytes.truncate(left);
                left -= bytes.len();
            }
        });
        let acceptor = &mut ends[1];
        assert!(acceptor.goes_on(), "after {length} bytes");
        acceptor.ended = true;
        acceptor.read(1);
        assert_eq!(acceptor.result, Some(Err(Refusal::Closed)), "after {length} bytes");
    }
}

#[test]
fn strangers_hear_nothing() {
    let mut knock = [7; KNOCK_BYTES];
    knock[..MAGIC.len()].copy_from_slice(&MAGIC);
    let cases: [&[u8]; 5] = [
        b"GET / HTTP/1.0\r\n\r\n",
        &[0xff; 4000],
        b"ISTHMUS\x01",
        &knock,
        b"I can wait",
    ];
    for case in cases {
        for piece in [1, 11, 5000] {
            let mut end = End::new(Handshake::accept(Duration::ZERO), 1, Cover::Plain);
            end.coming.extend(case);
            while end.goes_on() && !end.coming.is_empty() {
                end.read(piece);
            }
            assert_eq!(end.result, Some(Err(Refusal::Stranger)), "{case:?}");
            assert!(end.said.is_empty());
        }
    }
    // Who has no certificate has no peers at other sites: what looks like TLS is a stranger's.
    let mut end = End::new(Handshake::accept(Duration::ZERO), 1, Cover::Plain);
    end.certified = false;
    end.coming.push_back(22);
    end.read(1);
    assert_eq!(end.result, Some(Err(Refusal::Stranger)));
}

#[test]
fn another_secret_another_rank_or_another_cover_prove_nothing() {
    let spoil: [fn(&mut [End; 2]); 4] = [
        |ends| ends[0].secret.secret = 8,
        |ends| ends[1].secret.secret = 8,
        |ends| ends[1].me = Rank(3),
        |ends| ends[1].cover = Cover::Tls,
    ];
    for spoil in spoil {
        let mut ends = two(1, 2, Cover::Plain, Purpose::First);
        spoil(&mut ends);
        run(&mut ends, 100, Duration::from_millis(40), as_they_are);
        assert!(ends.iter().all(|end| proven(end).is_none()));
        assert_eq!(ends[1].result, Some(Err(Refusal::Stranger)));
    }
    // Inside TLS the certificate counts, whatever the greeting says.
    let mut ends = two(1, 2, Cover::Tls, Purpose::First);
    ends[1].shown = Some(Rank(5));
    run(&mut ends, 100, Duration::from_millis(40), as_they_are);
    assert_eq!(ends[1].result, Some(Err(Refusal::Credential(()))));
}

#[test]
fn an_echo_is_no_answer() {
    let mut ends = two(1, 2, Cover::Plain, Purpose::First);
    let knock = ends[0].connect();
    ends[0].coming.extend(&knock[16..]);
    ends[0].coming.extend(&knock);
    ends[0].read(5000);
    assert_eq!(ends[0].result, Some(Err(Refusal::Stranger)));
}

#[test]
fn who_is_silent_or_drips_has_four_seconds() {
    for drips in [false, true] {
        let mut ends = two(1, 2, Cover::Plain, Purpose::First);
        let mut knock = ends[0].connect().into_iter();
        let end = &mut ends[1];
        let mut now = Duration::ZERO;
        while end.goes_on() {
            now += Duration::from_millis(500);
            if drips {
                end.coming.extend(knock.next());
                end.read(1);
                assert!(!end.machine.is_silent());
            }
            end.wait(now);
        }
        assert_eq!(end.result, Some(Err(Refusal::NoAnswer)));
        assert_eq!(now, HANDSHAKE_TIME);
        assert!(end.said.is_empty());
    }
}

#[test]
fn what_comes_behind_a_plain_handshake_is_not_read() {
    let mut ends = two(1, 2, Cover::Plain, Purpose::First);
    run(&mut ends, 5000, Duration::from_millis(1), |to, bytes| {
        if to == 1 && bytes.len() != KNOCK_BYTES {
            bytes.extend(b"frames");
        }
    });
    assert!(proven(&ends[1]).is_some());
    assert_eq!(ends[1].coming, b"frames");
    // Inside TLS all that has come is taken, and handed on.
    let mut ends = two(1, 2, Cover::Tls, Purpose::First);
    run(&mut ends, 5000, Duration::from_millis(1), |to, bytes| {
        if to == 1 && bytes.len() > 1 {
            bytes.extend(b"segments");
        }
    });
    let Some(Ok(Then::Proven { early, .. })) = &ends[1].result else {
        panic!("{:?}", ends[1].result)
    };
    assert_eq!(early, b"segments");
}

#[test]
fn a_gateway_is_asked_for_a_call() {
    use isthmus_link::handshake::{Answered, Ends, Knocked};
    use isthmus_wire::gateway::{READY, WISH_DIAL};
    let mut wants = target(2, Cover::Tls, Purpose::First);
    wants.by = By::Call;
    let mut end = End::new(Handshake::dial(TIME, wants), 1, Cover::Tls);
    let gate = isthmus_link::fuzz::Sum { secret: 9, seed: 9 };
    end.gate = Some(gate);
    let knock = end.connect();
    let (answered, answer) = Answered::to_anybody(&gate, knock[..].try_into().unwrap()).unwrap();
    end.coming.extend(answer);
    let reply = end.read(5000);
    assert_eq!(answered.wish(&gate, reply[..].try_into().unwrap()), Some(WISH_DIAL));
    end.coming.push_back(READY);
    end.read(1);
    assert_eq!(end.result, Some(Ok(Then::Asked)));
    // The other gateway knocks where the call goes to.
    let mut end = End::new(Handshake::accept(Duration::ZERO), 2, Cover::Tls);
    end.gate = Some(gate);
    let (knocked, knock) = Knocked::new(&gate, Ends::of(1, 2)).unwrap();
    end.coming.extend(knock);
    let answer = end.read(5000);
    let reply = knocked.reply(&gate, answer[..].try_into().unwrap(), USE).unwrap();
    end.coming.extend(reply);
    assert_eq!(end.read(5000), [READY]);
    assert_eq!(end.result, Some(Ok(Then::Called(Rank(1)))));
}
