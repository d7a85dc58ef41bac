// SPDX-License-Identifier: Apache-2.0
//! What a machine sends to a peer together, a part of it within another part.

mod common;

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use common::store::{FLUSH, Store, at};
use isthmus_engine::{Engine, Peer, Port, Setup};
use isthmus_transport::{Limits, Processes, SendError, Sink, Transport};
use isthmus_wire::frame::{Header, Kind, protocol};

/// What a transport is told, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Gather(u32),
    Send(u32),
    SendGathered(u32),
}
use Call::{Gather, Send, SendGathered};

/// Writes down what it is told.
struct Listening(Arc<Mutex<Vec<Call>>>);

impl Listening {
    fn hears(&self, call: Call) {
        self.0.lock().expect("whole").push(call);
    }
}

impl Transport for Listening {
    fn name(&self) -> &'static str {
        "listening"
    }
    fn limits(&self, _: Peer) -> Limits {
        Limits {
            frame: 4096,
            eager: 4096,
            pull: false,
            bulk: false,
            far: false,
        }
    }
    fn gather(&mut self, peer: Peer) {
        self.hears(Gather(peer.index() as u32));
    }
    fn send_gathered(&mut self, peer: Peer) {
        self.hears(SendGathered(peer.index() as u32));
    }
    fn send(&mut self, peer: Peer, _: &Header, _: &[u8]) -> Result<(), SendError> {
        self.hears(Send(peer.index() as u32));
        Ok(())
    }
    fn poll(&mut self, _: &mut dyn Sink) -> bool {
        false
    }
    fn lose(&mut self, _: Peer, _: &str) {}
    fn arm(&mut self) -> bool {
        true
    }
    fn disarm(&mut self) {}
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn close(&mut self, _: &mut dyn Sink) -> bool {
        true
    }
}

/// What the transport of process 0 of three is told while a machine does this.
fn calls(act: impl FnOnce(&mut Port<'_>)) -> Vec<Call> {
    let all = Arc::default();
    let mut engine = Engine::new(Setup {
        me: Peer::new(0),
        processes: Processes::of("job", 3),
        transports: vec![Box::new(Listening(Arc::clone(&all)))],
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
    assert_eq!(calls, [Gather(1), Send(1), Send(1), Send(1), SendGathered(1)]);
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
    let first = [Gather(1), Gather(2), Send(2), Send(2), SendGathered(2)];
    assert_eq!(calls, [&first[..], &[Send(1), SendGathered(1)]].concat());
}
