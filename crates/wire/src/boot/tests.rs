// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn messages_survive_the_wire() {
    let messages = [
        Message::Abort {
            code: -3,
            reason: "rank 3 called MPI_Abort".into(),
        },
        Message::Gone(Gone {
            number: 5,
            goes_on: true,
            world: [3; 16],
            first: 3,
            count: 1,
            reason: "rank 3 was killed by signal 9".into(),
        }),
        Message::Finished(Counters {
            rows: vec![(
                "bcast".into(),
                0,
                LevelCounters {
                    messages: 2,
                    bytes: 2048,
                },
            )],
            calls: vec![("bcast".into(), 1)],
            links: vec![Measured {
                between: (0, 2),
                latency: Some(20_000_000),
                rate: None,
            }],
            traffic: vec![LinkTraffic {
                from: "home".into(),
                to: "lab".into(),
                sent: 7,
                plain: 9,
                ..LinkTraffic::default()
            }],
            time: Time {
                elapsed: 9,
                ..Time::default()
            },
            choices: vec![Chosen {
                bytes: 8,
                ways: vec![crate::chosen::Candidate::default()],
                ..Chosen::default()
            }],
            files: vec![Usage::default()],
        }),
        Message::Time(Time {
            processes: 1,
            waits: vec![crate::time::Wait::default()],
            ..Time::default()
        }),
        Message::Dismissed,
        Message::Traffic(vec![LinkTraffic {
            classes: [1, 2, 3],
            away: 4,
            observed_us: 5,
            observers: 1,
            ..LinkTraffic::default()
        }]),
        Message::Trace(vec![1, 2]),
        Message::Waiting(None),
        Message::Waiting(Some(Waiting {
            call: "MPI_Recv".into(),
            idle: 1000,
            items: vec![crate::waiting::Item {
                peer: 3,
                members: vec![1, 2],
                ..crate::waiting::Item::default()
            }],
            more: 1,
        })),
    ];
    for m in messages {
        let framed = m.encode();
        assert_eq!(Message::decode(&framed[4..]), Ok(m));
    }
}

#[test]
fn who_is_gone_is_bounded_by_who_was_there() {
    let gone = |first, count, reason: String| Gone {
        number: 0,
        goes_on: false,
        world: [0; 16],
        first,
        count,
        reason,
    };
    assert_eq!(gone(2, 2, String::new()).ranks(8), 2..4);
    assert_eq!(gone(2, u32::MAX - 2, String::new()).ranks(8), 2..8);
    assert_eq!(gone(9, 2, String::new()).ranks(8), 8..8);
    let body = |gone: &Gone| {
        let mut w = Writer::new(10);
        w.u32(gone.number).u8(0);
        gone.world.iter().for_each(|b| {
            w.u8(*b);
        });
        w.u32(gone.first).u32(gone.count).text(&gone.reason);
        w.into_framed()[4..].to_vec()
    };
    assert!(Message::decode(&body(&gone(1, 1, "x".repeat(MAX_REASON)))).is_ok());
    assert!(Message::decode(&body(&gone(1, 1, "x".repeat(MAX_REASON + 1)))).is_err());
    assert!(Message::decode(&body(&gone(2, u32::MAX, String::new()))).is_err());
    let aborts = |reason: String| {
        let mut w = Writer::new(3);
        w.u32(1).text(&reason);
        w.into_framed()[4..].to_vec()
    };
    assert!(Message::decode(&aborts("x".repeat(MAX_REASON))).is_ok());
    assert!(Message::decode(&aborts("x".repeat(MAX_REASON + 1))).is_err());
    for long in [
        Message::Gone(gone(1, 1, "x".repeat(2 * MAX_REASON))),
        Message::Abort {
            code: 1,
            reason: "x".repeat(2 * MAX_REASON),
        },
    ] {
        let long = long.encode();
        assert!(
            Message::decode(&long[4..]).is_ok(),
            "what is too long is cut by who says it"
        );
    }
}
