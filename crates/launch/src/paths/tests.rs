// SPDX-License-Identifier: Apache-2.0
use super::*;

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

#[test]
fn a_gateway_speaks_of_its_ways_to_areas_that_there_are() {
    let mut crossings = Crossings {
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
        began: Instant::now(),
        complete: None,
        places: None,
    };
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
