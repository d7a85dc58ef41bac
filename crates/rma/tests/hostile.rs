// SPDX-License-Identifier: Apache-2.0
//! A member of a window that sends what nobody may. Both processes are engines with their worlds, and make the window
//! as programs do; then one of them lies.

mod common;

use common::{BYTES, Stage, long, put};
use isthmus_core::comm;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_rma::{LockKind, Source, TargetData, When};
use isthmus_wire::rma::bundle::Bundle;
use isthmus_wire::rma::{Does, Failure, Operation, What};

#[test]
fn an_honest_origin_is_served_and_its_lock_excludes() {
    let stage = Stage::new();
    let long = Datatype::of(Basic::Int64);
    let data = OwnMemory::with(&7_i64.to_ne_bytes());
    let source = Source {
        memory: data.reading(),
        count: 1,
        datatype: &long,
    };
    let place = |rank| TargetData {
        rank,
        disp: 16,
        count: 1,
        datatype: &long,
    };
    let [at_host, at_liar] = &stage.windows;
    // Both change one number under a lock, each in a thread of its own, and the keeper of neither helps.
    let other = {
        let (window, world) = (at_liar.clone(), stage.liar);
        std::thread::spawn(move || {
            let long = Datatype::of(Basic::Int64);
            let one = OwnMemory::with(&1_i64.to_ne_bytes());
            let source = Source {
                memory: one.reading(),
                count: 1,
                datatype: &long,
            };
            let place = TargetData {
                rank: 0,
                disp: 24,
                count: 1,
                datatype: &long,
            };
            for _ in 0..50 {
                window.lock(LockKind::Exclusive, 0, 0).expect("locked");
                window
                    .accumulate(
                        isthmus_datatype::op::Predefined::Sum,
                        Some(&source),
                        None,
                        &place,
                        When::Always,
                    )
                    .expect("added");
                window.unlock(0).expect("unlocked");
            }
            isthmus_core::members::meet(world, &comm::of_world(world)).expect("met");
        })
    };
    at_host.lock(LockKind::Exclusive, 1, 0).expect("locked");
    at_host.put(&source, &place(1), When::Always).expect("put");
    at_host.unlock(1).expect("unlocked");
    isthmus_core::members::meet(stage.host, &comm::of_world(stage.host)).expect("met");
    other.join().expect("ended");
    let mut counted = [0; 8];
    at_host.own_memory().reading().read(24, &mut counted);
    assert_eq!(i64::from_ne_bytes(counted), 50);
    assert_eq!(stage.accused(), None);
}

#[test]
fn lies_about_operations_cost_the_liar_its_place() {
    let long = long();
    let data = [1; 8];
    let honest = put(&long, &data);
    let lies: Vec<(&str, Operation<'_>)> = vec![
        (
            "outside of the window",
            Operation {
                place: 1020,
                ..honest.clone()
            },
        ),
        (
            "outside of the window",
            Operation {
                place: -8,
                ..honest.clone()
            },
        ),
        (
            "beyond all memory",
            Operation {
                place: i64::MAX,
                ..honest.clone()
            },
        ),
        (
            "than there can be",
            Operation {
                count: u64::MAX,
                ..honest.clone()
            },
        ),
        (
            "do not fit",
            Operation {
                length: 16,
                data: &[],
                ..honest.clone()
            },
        ),
        (
            "do not fit",
            Operation {
                length: 0,
                data: &[],
                ..honest.clone()
            },
        ),
        (
            "datatype that is none",
            Operation {
                datatype: &[9, 9],
                ..honest.clone()
            },
        ),
        (
            "that it has not described",
            Operation {
                number: 3,
                datatype: &[],
                ..honest.clone()
            },
        ),
        (
            "that is none",
            Operation {
                number: 17,
                ..honest.clone()
            },
        ),
        (
            "more than it needs",
            Operation {
                first: 1,
                length: 7,
                data: &[1; 7],
                ..honest.clone()
            },
        ),
        (
            "elements that there is not",
            Operation {
                does: Does::Accumulate,
                op: 1,
                ..honest.clone()
            },
        ),
        (
            "pieces of elements",
            Operation {
                does: Does::Accumulate,
                op: 0x21,
                length: 4,
                data: &[1; 4],
                ..honest.clone()
            },
        ),
        (
            "a swap",
            Operation {
                does: Does::Swap,
                question: 1,
                ..honest.clone()
            },
        ),
        (
            "more than it needs",
            Operation {
                does: Does::Get,
                question: 1,
                length: 4,
                data: &[],
                ..honest.clone()
            },
        ),
    ];
    for (why, lie) in lies {
        let stage = Stage::new();
        stage.operate(&honest);
        assert_eq!(stage.accused(), None, "{why}");
        stage.operate(&lie);
        let accused = stage.accused().unwrap_or_default();
        assert!(accused.contains(why), "{why}: {accused}");
        let mut around = [0; BYTES];
        stage.windows[0].own_memory().reading().read(0, &mut around);
        assert!(
            around
                .iter()
                .enumerate()
                .all(|(at, &byte)| byte == u8::from((8..16).contains(&at)))
        );
    }
}

#[test]
fn frames_out_of_turn_cost_the_liar_its_place() {
    let long = long();
    let begun = Operation {
        length: 8,
        data: &[],
        ..put(&long, &[])
    }
    .encode();
    let failure = Failure {
        class: 1,
        text: "no".into(),
    }
    .encode();
    type Frames<'a> = Vec<(i32, u32, u64, &'a [u8])>;
    let (operate, bundle) = (What::Operate as i32, What::Bundle as i32);
    let honest = put(&long, &[1; 8]);
    // A good operation, and one that is none, in a frame.
    let with = |lie: Operation<'_>| {
        let mut bundle = Bundle::default();
        bundle.push(&honest);
        bundle.push(&lie);
        bundle.into_bytes()
    };
    let together = with(honest.clone());
    let outside = with(Operation {
        place: BYTES as i64 - 4,
        ..honest.clone()
    });
    let unknown = with(Operation {
        number: 3,
        datatype: &[],
        ..honest.clone()
    });
    let reads = with(Operation {
        does: Does::Accumulate,
        op: isthmus_datatype::op::Predefined::NoOp.handle(),
        ..honest.clone()
    });
    let cases: Vec<(&str, Frames<'_>)> = vec![
        ("out of turn", vec![(What::Unlock as i32, 1, 0, &[])]),
        (
            "out of turn",
            vec![(What::Lock as i32, 0, 0, &[]), (What::Lock as i32, 1, 0, &[])],
        ),
        ("out of turn", vec![(What::Flush as i32, 1, 0, &[1])]),
        (
            "out of turn",
            vec![(What::Lock as i32, 0, 0, &[]), (What::Try as i32, 1, 1, &[])],
        ),
        ("out of turn", vec![(What::Try as i32, 1, 1, &[1])]),
        ("nobody has asked for", vec![(What::Refused as i32, 1, 0, &[])]),
        (
            "out of turn",
            vec![
                (operate, begun.len() as u32, 0, &begun),
                (What::Flush as i32, 1, 0, &[]),
            ],
        ),
        ("data of no operation", vec![(What::Data as i32, 0, 0, &[1])]),
        (
            "more data",
            vec![
                (operate, begun.len() as u32, 0, &begun),
                (What::Data as i32, 0, 0, &[1; 9]),
            ],
        ),
        (
            "more data",
            vec![
                (operate, begun.len() as u32, 0, &begun),
                (What::Data as i32, 0, 4, &[1; 4]),
            ],
        ),
        ("follow each other", vec![(operate, begun.len() as u32, 4, &begun)]),
        ("follow each other", vec![(operate, 3, 0, &begun)]),
        ("follow each other", vec![(operate, u32::MAX, 0, &begun)]),
        ("that is none", vec![(operate, 3, 0, &begun[..3])]),
        ("nobody has asked", vec![(What::Done as i32, 1, 0, &[])]),
        ("nobody has asked", vec![(What::Answer as i32, 1, 0, &[1])]),
        ("nobody has asked", vec![(What::Failed as i32, 1, 0, &failure)]),
        ("failure of no operation", vec![(What::Failed as i32, 0, 0, &[1])]),
        ("unknown kind", vec![(77, 0, 0, &[])]),
        ("follow each other", vec![(bundle, u32::MAX, 0, &together)]),
        (
            "follow each other",
            vec![(bundle, 100, 0, &together), (bundle, 100, 0, &together)],
        ),
        ("that are none", vec![(bundle, 1, 0, &[32])]),
        ("that are none", vec![(bundle, 9, 0, &together[..9])]),
        (
            "outside of the window",
            vec![(bundle, outside.len() as u32, 0, &outside)],
        ),
        (
            "that it has not described",
            vec![(bundle, unknown.len() as u32, 0, &unknown)],
        ),
        ("pieces of elements", vec![(bundle, reads.len() as u32, 0, &reads)]),
        (
            "follow each other",
            vec![
                (operate, begun.len() as u32, 0, &begun),
                (bundle, together.len() as u32, 0, &together),
            ],
        ),
    ];
    for (why, frames) in cases {
        let stage = Stage::new();
        for (what, lower, at, payload) in frames {
            assert_eq!(stage.accused(), None, "{why}");
            stage.say(what, (stage.context, lower), at, payload);
        }
        let accused = stage.accused().unwrap_or_default();
        assert!(accused.contains(why), "{why}: {accused}");
    }
    let stage = Stage::new();
    stage.say(What::Flush as i32, (stage.context + 2, 1), 0, &[]);
    let accused = stage.accused().unwrap_or_default();
    assert!(accused.contains("no member of"), "{accused}");
}

#[test]
fn a_put_may_ask_whether_it_is_done_only_with_all_its_data() {
    let long = long();
    let with = |question, data: &'static [u8], length| {
        let stage = Stage::new();
        stage.operate(&Operation {
            question,
            length,
            ..put(&long, data)
        });
        let mut there = [0; 8];
        stage.windows[0].own_memory().reading().read(8, &mut there);
        (there, stage.accused().is_some())
    };
    // Its own engine does not know that question, and ends the connection when the answer comes.
    assert_eq!(with(5, &[7; 8], 8).0, [7; 8]);
    assert_eq!(with(0, &[7; 8], 8), ([7; 8], false));
    assert_eq!(with(5, &[], 8), ([0; 8], true));
}
