// SPDX-License-Identifier: Apache-2.0
//! What a machine sends to a peer together, a part of it within another part.

mod common;

use std::sync::{Arc, Mutex};

use common::store::{FLUSH, Store, at};
use isthmus_engine::{Engine, Peer, Port, Setup};
use isthmus_transport::Told::{Gather, Send, SendGathered};
use isthmus_transport::{Limits, Processes, Still, Told};
use isthmus_wire::frame::{Header, Kind, protocol};

/// What the transport of process 0 of three is told while a machine does this.
fn calls(act: impl FnOnce(&mut Port<'_>)) -> Vec<Told> {
    let all: Arc<Mutex<Vec<Told>>> = Arc::default();
    let limits = Limits {
        frame: 4096,
        eager: 4096,
        pull: false,
        bulk: false,
        far: false,
    };
    let heard = Arc::clone(&all);
    let listening = Still::new("listening", limits, move |told| {
        heard.lock().expect("whole").push(told);
        Ok(())
    });
    let mut engine = Engine::new(Setup {
        me: Peer::new(0),
        processes: Processes::of("job", 3),
        transports: vec![Box::new(listening)],
        routes: vec![0; 3],
        levels: vec![4; 3],
        representations: Vec::new(),
    });
    engine.register(protocol::TEST, Box::new(Store::new(0)));
    at(&mut engine, |_, port| act(port));
    let calls = all.lock().expect("whole");
    calls.clone()
}

fn say(port: &mut Port<'_>, peer: u32) {
    let mut header = Header::control(Kind::Protocol, 0, 0, 0);
    header.tag = FLUSH;
    port.tell(Peer::new(peer), header);
}

#[test]
fn a_part_within_one_for_the_same_peer_leaves_with_all_of_that() {
    let calls = calls(|port| {
        port.together(Peer::new(1), |port| {
            say(port, 1);
            port.together(Peer::new(1), |port| say(port, 1));
            say(port, 1);
        });
    });
    assert_eq!(
        calls,
        [
            Gather(Peer::new(1)),
            Send(Peer::new(1)),
            Send(Peer::new(1)),
            Send(Peer::new(1)),
            SendGathered(Peer::new(1))
        ]
    );
}

#[test]
fn a_part_within_one_for_another_peer_leaves_together_too() {
    let calls = calls(|port| {
        port.together(Peer::new(1), |port| {
            port.together(Peer::new(2), |port| {
                say(port, 2);
                say(port, 2);
            });
            port.together(Peer::new(1), |port| say(port, 1));
        });
    });
    let first = [
        Gather(Peer::new(1)),
        Gather(Peer::new(2)),
        Send(Peer::new(2)),
        Send(Peer::new(2)),
        SendGathered(Peer::new(2)),
    ];
    assert_eq!(
        calls,
        [&first[..], &[Send(Peer::new(1)), SendGathered(Peer::new(1))]].concat()
    );
}
