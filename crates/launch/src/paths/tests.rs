// SPDX-License-Identifier: Apache-2.0
use super::*;
use isthmus_wire::gateway::MAX_RELAY;

fn gateway(policy: Policy, processes: u64) -> Gateway {
    Gateway {
        name: "lab".into(),
        site: 0,
        policy,
        processes,
        open: Open {
            job: "job".into(),
            area: 0,
            secret: [0; 32],
            ports: (0, 0),
            streams: 1,
            threads: 0,
            addresses: Vec::new(),
        },
        listening: None,
        epoch: 0,
        failed: None,
    }
}

#[test]
fn many_processes_connect_through_gateways_unless_the_user_says_otherwise() {
    let of = |a: (Policy, u64), b: (Policy, u64)| through(&gateway(a.0, a.1), &gateway(b.0, b.1));
    assert!(!of((Policy::Any, 32), (Policy::Any, 32)));
    assert!(of((Policy::Any, 32), (Policy::Any, 33)));
    assert!(of((Policy::Any, 1), (Policy::Any, 4096)));
    assert!(!of((Policy::Direct, 512), (Policy::Any, 512)));
    assert!(of((Policy::Any, 1), (Policy::Gateway, 1)));
    assert!(of((Policy::Direct, 1), (Policy::Ssh, 1)));
}

fn two() -> Crossings {
    Crossings {
        gateways: vec![
            gateway(Policy::Any, 1),
            Gateway {
                site: 1,
                ..gateway(Policy::Any, 1)
            },
        ],
        areas: vec![0, 1],
        secret: [0; 32],
        settled: BTreeMap::new(),
        certain: BTreeMap::new(),
        ending: false,
        carried: BTreeMap::new(),
        relayed: Relayed::default(),
        began: Instant::now(),
        complete: None,
        places: None,
    }
}

#[test]
fn a_gateway_speaks_of_its_ways_to_areas_that_there_are() {
    let mut crossings = two();
    let credit = |area| {
        FromGateway::Credit {
            area,
            epoch: 0,
            bytes: 1,
        }
        .encode()
    };
    assert_eq!(crossings.said(0, &credit(1)).1, None);
    for wrong in [0, 2, u32::MAX] {
        let problem = crossings.said(0, &credit(wrong)).1.unwrap();
        assert!(
            problem.contains("'lab' does not work") && problem.contains("which is none"),
            "{problem}"
        );
    }
    assert!(crossings.said(1, &credit(0)).1.is_none(), "the other one goes on");
}

fn piece(area: u32, epoch: u32) -> Vec<u8> {
    let bytes = vec![7; MAX_RELAY];
    FromGateway::Relay(Relay { area, epoch, bytes }).encode()
}

fn credit(area: u32, epoch: u32, bytes: u32) -> Vec<u8> {
    FromGateway::Credit { area, epoch, bytes }.encode()
}

/// How many pieces the first gateway can send before it is given up.
fn room(crossings: &mut Crossings, epoch: u32) -> usize {
    let pieces = (0..1000).take_while(|_| crossings.said(0, &piece(1, epoch)).0.len() == 1);
    pieces.count()
}

#[test]
fn a_gateway_that_sends_more_than_the_other_takes_is_given_up_by_name() {
    let mut crossings = two();
    let whole = MOST_RELAYED / MAX_RELAY;
    for _ in 0..3 * whole {
        assert_eq!(crossings.said(0, &piece(1, 5)).0.len(), 1, "whoever is heeded goes on");
        crossings.said(1, &credit(0, 5, MAX_RELAY as u32));
    }
    // What the other one has not had it cannot have taken, whatever it says.
    crossings.said(1, &credit(0, 5, u32::MAX));
    crossings.said(1, &credit(0, 4, u32::MAX));
    assert_eq!(room(&mut crossings, 5), whole);
    let (messages, told) = crossings.said(0, &piece(1, 5));
    assert!(messages.is_empty() && told.is_none(), "once");
    assert_eq!(crossings.said(1, &piece(0, 5)).0.len(), 0, "nothing is carried to it");
    assert!(
        crossings.gateways[0]
            .failed
            .as_ref()
            .unwrap()
            .contains("more through the launcher")
    );
    assert!(crossings.gateways[1].failed.is_none(), "the other one has done nothing");
}

#[test]
fn a_gateway_that_has_begun_anew_has_all_its_room() {
    let mut crossings = two();
    for _ in 0..MOST_RELAYED / MAX_RELAY {
        crossings.said(0, &piece(1, 5));
    }
    assert_eq!(room(&mut crossings, 6), MOST_RELAYED / MAX_RELAY);
}

#[test]
fn a_gateway_that_takes_what_it_does_not_read_is_given_up_by_name() {
    let mut crossings = two();
    assert!(crossings.deaf(1).unwrap().contains("has not read"));
    assert!(crossings.deaf(1).is_none(), "once");
    assert!(crossings.said(0, &piece(1, 0)).0.is_empty());
}

#[test]
fn pieces_without_bytes_are_no_way_around() {
    let mut crossings = two();
    let bytes = Vec::new();
    let empty = FromGateway::Relay(Relay {
        area: 1,
        epoch: 0,
        bytes,
    })
    .encode();
    assert!(crossings.said(0, &empty).1.is_some());
}

#[test]
fn areas_are_direct_where_one_has_reached_the_other_or_the_user_says_so() {
    let mut crossings = two();
    crossings.gateways[1].name = "far".into();
    assert!(crossings.are_direct("lab", "lab") && crossings.are_direct("else", "else"));
    assert!(!crossings.are_direct("lab", "else"), "nothing is known of it");
    assert!(!crossings.are_direct("lab", "far"), "nothing has been found out");
    let settled = |outward: &str| Settled {
        carrier: Carrier::Relay,
        outward: outward.to_owned(),
        ..Settled::default()
    };
    crossings.settled.insert((1, 0), settled(""));
    assert!(!crossings.are_direct("lab", "far"), "by the launcher only");
    crossings.settled.insert((1, 0), settled("10.1.0.1:7"));
    assert!(crossings.are_direct("lab", "far") && crossings.are_direct("far", "lab"));
    crossings.settled.clear();
    crossings.gateways[0].policy = Policy::Direct;
    assert!(crossings.are_direct("lab", "far"));
}
