// SPDX-License-Identifier: Apache-2.0
//! Messages of gateways on the wire.

use super::*;

#[test]
fn messages_survive_the_wire_and_cut_ones_are_refused() {
    let relay = Relay {
        area: 3,
        epoch: 9,
        bytes: vec![1, 2, 3],
    };
    let area = Area {
        area: 1,
        epoch: 2,
        ways: Ways::Relay,
        port: 5,
        secret: [4; 32],
        addresses: vec!["::1".into()],
    };
    let open = Open {
        job: "j".into(),
        area: 1,
        secret: [3; 32],
        ports: (1, 2),
        streams: 4,
        threads: 2,
        addresses: vec![],
    };
    let (area_number, epoch, bytes) = (1, 2, 3);
    for message in [
        ToGateway::Open(open),
        ToGateway::Areas(vec![area]),
        ToGateway::Places(vec![0, 1], PlaceTable::default()),
        ToGateway::Relay(relay.clone()),
        ToGateway::Credit {
            area: area_number,
            epoch,
            bytes,
        },
    ] {
        let body = message.encode();
        assert_eq!(ToGateway::decode(&body).as_ref(), Ok(&message));
        (0..body.len()).for_each(|n| assert!(ToGateway::decode(&body[..n]).is_err()));
    }
    let settled = Settled {
        area: 2,
        outward: "1.2.3.4:5".into(),
        inward: true,
        carrier: Carrier::Relay,
        round_trip: 7,
        rate: Some(Rate::bare(8)),
        why: "x".into(),
    };
    for message in [
        FromGateway::Settled(settled),
        FromGateway::Relay(relay),
        FromGateway::Failed("x".into()),
        FromGateway::Carried(Carried {
            area: 1,
            sent: 2,
            ..Carried::default()
        }),
    ] {
        let body = message.encode();
        assert_eq!(FromGateway::decode(&body).as_ref(), Ok(&message));
        (0..body.len()).for_each(|n| assert!(FromGateway::decode(&body[..n]).is_err()));
    }
    let long = Relay {
        area: 0,
        epoch: 0,
        bytes: vec![0; MAX_RELAY + 1],
    };
    assert!(FromGateway::decode(&FromGateway::Relay(long).encode()).is_err());
}
