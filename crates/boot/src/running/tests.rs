// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn many_subjobs_on_one_machine_are_a_crowd() {
    let node = |host: &str, subjob, processes| Node {
        host: host.into(),
        addresses: vec!["10.0.0.1".into()],
        subjob,
        processes,
        processors: 2,
    };
    let time = |nodes| {
        dial_time(&PlaceTable {
            nodes,
            ..PlaceTable::default()
        })
    };
    let crowd = (0..64).map(|subjob| node("a", subjob, 4)).collect();
    assert_eq!(time(crowd), Config::DIAL_TIME * 9);
    assert_eq!(time(vec![node("a", 0, 256)]), Config::DIAL_TIME * 9);
    let apart = (0..64).map(|subjob| node(&format!("a{subjob}"), subjob, 4)).collect();
    assert_eq!(time(apart), Config::DIAL_TIME);
}

#[test]
fn machines_that_represent_data_differently_are_known_and_strange_ones_refused_by_name() {
    let node = Node {
        host: "stranger".into(),
        addresses: vec![],
        subjob: 0,
        processes: 1,
        processors: 0,
    };
    let subjob = Subjob {
        name: "s".into(),
        lan: "s".into(),
        first_rank: 0,
        count: 1,
        programs: vec![(0, 0)],
    };
    let place = |representation| Place {
        subjob: 0,
        node: 0,
        port: 0,
        slot: 0,
        representation,
        vendor: None,
    };
    let table = |representation| PlaceTable {
        subjobs: vec![subjob.clone()],
        nodes: vec![node.clone()],
        places: vec![place(representation)],
    };
    assert_eq!(representations(&table(representation())).unwrap(), []);
    let mut other = representation();
    other.0[0] = 3 - other.0[0];
    let known = representations(&table(other)).unwrap();
    assert_eq!(known[0].encode(), other.0);
    other.0[0] = 7;
    let error = representations(&table(other)).unwrap_err().to_string();
    assert!(error.contains("rank 0 on stranger"), "{error}");
}
