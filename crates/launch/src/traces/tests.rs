// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::trace::{IN, OUT};
use std::collections::HashSet;
use std::io::Cursor;

/// What was sent or came: rank, peer, number of the message, when.
type Line = (u32, u32, bool, u64, i64);

/// A trace of these ranks that began then by its clock.
fn part(name: &str, began: i64, ranks: &[u32], lines: &[Line]) -> Part<Cursor<Vec<u8>>> {
    let named = ranks
        .iter()
        .map(|rank| json!({"ph": "M", "name": "process_name", "pid": rank, "args": {"name": "rank"}}));
    let messages = lines.iter().map(|&(rank, peer, is_sent, number, at)| {
        json!({
            "ph": "X", "cat": "message", "name": "message", "pid": rank, "tid": if is_sent { OUT } else { IN }, "ts": shown(at),
            "args": {"peer": peer, "context": 2, "number": number}, "dur": 1.0,
        })
    });
    let own = json!({"ph": "s", "cat": "message", "id": 1, "pid": ranks[0], "tid": OUT, "ts": 1.0});
    let events: Vec<String> = named
        .chain(messages)
        .chain([own])
        .map(|event| event.to_string())
        .collect();
    let other =
        json!({"began": began as f64 / 1e9, "began_nanoseconds": began, "events_not_recorded": 2, "clocks": {}});
    let file = format!("{HEAD}\n{}\n{TAIL}{other}}}\n", events.join(",\n"));
    Part {
        name: name.to_owned(),
        file: Cursor::new(file.into_bytes()),
    }
}

/// What its own clocks are right to, nanoseconds.
fn right_to(mut part: Part<Cursor<Vec<u8>>>, rights: &[u64]) -> Part<Cursor<Vec<u8>>> {
    let text = String::from_utf8(part.file.into_inner()).expect("text");
    let clocks: serde_json::Map<String, Value> = (0..)
        .zip(rights)
        .map(|(site, right)| (format!("site {site}"), json!({"right_to_us": *right as f64 / 1000.0})))
        .collect();
    let text = text.replace("\"clocks\":{}", &format!("\"clocks\":{}", Value::Object(clocks)));
    part.file = Cursor::new(text.into_bytes());
    part
}

fn merged(parts: &mut [Part<Cursor<Vec<u8>>>]) -> (Vec<Clock>, Value) {
    let mut out = Vec::new();
    let clocks = merge(parts, &mut out).unwrap_or_else(|fault| panic!("{fault:?}"));
    (clocks.clocks, serde_json::from_slice(&out).expect("it is JSON"))
}

fn refused(parts: &mut [Part<Cursor<Vec<u8>>>]) -> String {
    match merge(parts, &mut Vec::new()) {
        Err(Fault::Part(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// A clock that is 5 ms ahead; a message takes 100 us there and 140 us back.
fn two() -> [Part<Cursor<Vec<u8>>>; 2] {
    let (began, later, ahead) = (1_000_000_000_000, 2_000_000, 5_000_000);
    // By true time, from the beginning of the first one.
    let there = |at: i64| at - later;
    [
        part(
            "one",
            began,
            &[0, 1],
            &[(0, 2, true, 1, 3_000_000), (1, 2, false, 1, 4_140_000)],
        ),
        part(
            "two",
            began + later + ahead,
            &[2],
            &[(2, 0, false, 1, there(3_100_000)), (2, 1, true, 1, there(4_000_000))],
        ),
    ]
}

#[test]
fn clocks_are_known_by_messages_that_go_there_and_back() {
    let (clocks, all) = merged(&mut two());
    assert_eq!(
        clocks[0],
        Clock {
            name: "one".into(),
            ahead: 0,
            compared: Compared {
                with: "one".into(),
                ahead: 0,
                right_to: 0
            }
        }
    );
    assert_eq!((clocks[1].ahead, clocks[1].compared.right_to), (4_980_000, 120_000));
    let events = all["traceEvents"].as_array().expect("events");
    let of = |phase: &str, rank: u32| {
        let mut found = events
            .iter()
            .filter(|event| event["ph"] == phase && event["pid"] == rank);
        found.next().unwrap_or_else(|| panic!("no {phase} of {rank}"))
    };
    // On one time line, and arrows point forwards.
    assert_eq!(
        (of("X", 0)["ts"].as_f64(), of("X", 2)["ts"].as_f64()),
        (Some(3000.0), Some(3120.0))
    );
    assert_eq!(of("f", 2)["ts"], of("X", 2)["ts"]);
    assert_eq!(of("s", 0)["id"], of("f", 2)["id"]);
    let ids: HashSet<u64> = events.iter().filter_map(|event| event["id"].as_u64()).collect();
    assert_eq!(ids.len(), 4, "two between the parts, and one of each");
    assert_eq!(all["otherData"]["events_not_recorded"], 4);
    assert_eq!(all["otherData"]["parts"][1]["right_to_us"], 120.0);
    // In whatever order they are named.
    let mut turned = two();
    turned.reverse();
    assert_eq!(merged(&mut turned).0, clocks);
}

#[test]
fn a_clock_is_right_to_no_less_than_those_inside_both_parts() {
    let [one, two] = two();
    let mut parts = [right_to(one, &[1_000, 30_000]), right_to(two, &[7_000])];
    let (clocks, all) = merged(&mut parts);
    assert_eq!(clocks[1].compared.right_to, 120_000 + 30_000 + 7_000);
    assert_eq!(all["otherData"]["parts"][1]["right_to_us"], 157.0);
}

#[test]
fn a_clock_is_as_it_was_as_far_as_messages_allow() {
    let (began, ahead) = (1_000_000_000_000, 5_000_000);
    let mut parts = [
        part("one", began, &[0], &[(0, 1, true, 1, 3_000_000)]),
        part("two", began - ahead, &[1], &[(1, 0, false, 1, 3_100_000)]),
        part("three", began + 7, &[2], &[]),
    ];
    let (clocks, _) = merged(&mut parts);
    let ahead: Vec<(i64, &str)> = clocks
        .iter()
        .map(|clock| (clock.ahead, clock.compared.with.as_str()))
        .collect();
    assert_eq!(ahead, [(0, "one"), (-4_900_000, "two"), (0, "three")]);
}

#[test]
fn parts_that_are_compared_with_each_other_are_moved_as_one() {
    let began = 1_000_000_000_000;
    // "three" is 1 ms ahead of "two", and hears from "one" what was sent 4 ms later by that one's clock.
    let mut parts = [
        part("one", began, &[0], &[(0, 2, true, 1, 9_000_000)]),
        part(
            "two",
            began,
            &[1],
            &[(1, 2, true, 1, 1_000_000), (1, 2, false, 1, 3_000_000)],
        ),
        part(
            "three",
            began,
            &[2],
            &[
                (2, 1, false, 1, 2_100_000),
                (2, 1, true, 1, 3_900_000),
                (2, 0, false, 1, 5_000_000),
            ],
        ),
        part("four", began, &[3], &[]),
    ];
    let (clocks, all) = merged(&mut parts);
    let known: Vec<(i64, &str, i64, u64)> = clocks
        .iter()
        .map(|clock| {
            (
                clock.ahead,
                &*clock.compared.with,
                clock.compared.ahead,
                clock.compared.right_to,
            )
        })
        .collect();
    let wanted = [
        (0, "one", 0, 0),
        (-5_000_000, "three", -1_000_000, 100_000),
        (-4_000_000, "three", 0, 0),
        (0, "four", 0, 0),
    ];
    assert_eq!(known, wanted);
    let two = &all["otherData"]["parts"][1];
    assert_eq!(
        (&two["right_to_us"], &two["compared"]["with"]),
        (&Value::Null, &json!("three"))
    );
    assert_eq!(two["compared"]["right_to_us"], 100.0);
}

#[test]
fn a_part_may_have_as_many_sites_as_a_job() {
    let [one, two] = two();
    let text = String::from_utf8(one.file.into_inner()).expect("text");
    let sites: Vec<String> = (0..1024)
        .map(|site| format!("\"{site:04}{}\":{{\"right_to_us\":0.001}}", "s".repeat(251)))
        .collect();
    let text = text.replace("\"clocks\":{}", &format!("\"clocks\":{{{}}}", sites.join(",")));
    let file = Cursor::new(text.into_bytes());
    assert_eq!(merged(&mut [Part { file, ..one }, two]).0[1].compared.right_to, 120_001);
}

#[test]
fn clocks_are_known_by_way_of_other_parts() {
    let pair = |a: u32, b: u32, at: i64| [(a, b, true, 1, at), (a, b, false, 1, at + 50)];
    let [first, second] = [pair(0, 1, 1000), pair(1, 0, 1010)];
    let (third, fourth) = (pair(1, 2, 5000), pair(2, 1, 5020));
    let mut parts = [
        part("c", 100, &[2], &fourth),
        part("b", 100, &[1], &[second, third].concat()),
        part("a", 100, &[0], &first),
    ];
    let (clocks, _) = merged(&mut parts);
    let known: Vec<(&str, i64)> = clocks.iter().map(|clock| (clock.name.as_str(), clock.ahead)).collect();
    assert_eq!(known, [("a", 0), ("c", 30), ("b", 10)]);
    assert!(clocks.iter().all(|clock| clock.compared.with == "a"));
}

#[test]
fn what_is_no_trace_of_another_part_is_refused() {
    let mut same = two();
    same[1] = part("two", 5, &[1], &[]);
    assert!(refused(&mut same).contains("both have rank 1"));
    let with = |text: &[u8]| {
        let [one, mut two] = two();
        two.file = Cursor::new(text.to_vec());
        refused(&mut [one, two])
    };
    assert!(with(b"\x7fELF").contains("line 1"));
    assert!(with(b"").contains("line 1"));
    assert!(with(format!("{HEAD}\nhello\n").as_bytes()).contains("line 2"));
    assert!(with(format!("{HEAD}\n{{}},\n").as_bytes()).contains("has no end"));
    assert!(with(format!("{HEAD}\n{TAIL}{{}}}}\n").as_bytes()).contains("when it began"));
    let long = format!("{HEAD}\n{{\"name\":\"{}\"}},\n", "x".repeat(LONGEST as usize));
    assert!(with(long.as_bytes()).contains("line 2"));
    let mut many: Vec<_> = (0..=MAX_PARTS).map(|rank| part("p", 1, &[rank], &[])).collect();
    assert!(refused(&mut many).contains("more than 256"));
    many.pop();
    assert_eq!(merged(&mut many).0.len(), 256);
    assert!(refused(&mut []).contains("no trace is named"));
}

#[test]
fn whatever_stands_in_a_file_is_read_or_refused() {
    let odd = [
        json!({"ph": "X", "cat": "message", "pid": -1, "tid": 1, "ts": 1e300, "args": {"peer": 0, "context": 2, "number": 1}}),
        json!({"ph": "X", "cat": "message", "pid": 2, "tid": 1, "ts": -1e300, "args": {"peer": 0, "context": 2, "number": u64::MAX}}),
        json!({"ph": "X", "cat": "message", "pid": 2, "tid": 2, "ts": 1e300, "args": {"peer": 0, "context": 2, "number": u64::MAX}}),
        json!({"ph": "X", "cat": "message", "pid": 2, "tid": 1, "ts": "now", "args": []}),
        json!({"ph": ["X"], "id": u64::MAX, "pid": u64::MAX}),
    ];
    let lines: Vec<String> = odd.iter().map(Value::to_string).collect();
    let [mut one, mut two] = two();
    for part in [&mut one, &mut two] {
        let text = String::from_utf8(part.file.get_ref().clone()).expect("text");
        let text = text.replacen('\n', &format!("\n{},\n", lines.join(",\n")), 1);
        let text = text.replace("1000000000000", &i64::MAX.to_string());
        part.file = Cursor::new(text.into_bytes());
    }
    merged(&mut [one, two]);
}
