// SPDX-License-Identifier: Apache-2.0
use super::*;

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
