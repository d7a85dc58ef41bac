// SPDX-License-Identifier: Apache-2.0
//! Machines of other rooms: a protocol registers itself, and the engine gives it what is its own.

mod common;

use std::sync::{Arc, Mutex};

use common::world;
use isthmus_engine::{Completion, Core, Engine, Machine, Part, Request, State};
use isthmus_transport::Peer;
use isthmus_transport::memory::Options;
use isthmus_wire::frame::{Header, Kind, protocol};

/// Adds up what peers ask it to add, and tells them the sum.
#[derive(Default)]
struct Adder {
    sum: u64,
    /// The question that waits for its answer.
    asked: Arc<Mutex<Option<Request>>>,
    lost: Arc<Mutex<Vec<Peer>>>,
    looks: Arc<Mutex<u32>>,
}

const QUESTION: i32 = 0;
const ANSWER: i32 = 1;

fn frame(what: i32, number: u64) -> Header {
    let mut header = Header::control(Kind::Protocol, number, 0, 0);
    header.flags = protocol::TEST;
    header.tag = what;
    header
}

impl Machine for Adder {
    fn frame(&mut self, state: &mut State, peer: Peer, header: &Header, _: &[u8]) {
        if header.tag == QUESTION {
            self.sum += header.token;
            return state.reply(peer, frame(ANSWER, self.sum));
        }
        let completion = Completion {
            source: peer.number(),
            bytes: header.token,
            ..Completion::default()
        };
        if let Some(request) = self.asked.lock().expect("nobody panics with it").take() {
            state.complete(request, completion);
        }
    }

    fn advance(&mut self, _: &mut Core) -> bool {
        *self.looks.lock().expect("nobody panics with it") += 1;
        false
    }

    fn completed(&mut self, _: &mut Core, _: Part) {}

    fn lose(&mut self, _: &mut Core, peer: Peer) {
        self.lost.lock().expect("nobody panics with it").push(peer);
    }
}

/// Asks the peer; the request completes with its answer.
fn ask(engine: &mut Engine, asked: &Mutex<Option<Request>>, peer: Peer, number: u64) -> Request {
    let request = engine.machine_request(protocol::TEST);
    *asked.lock().expect("nobody panics with it") = Some(request);
    engine.send_frame(peer, frame(QUESTION, number));
    request
}

#[test]
fn a_protocol_that_registers_itself_gets_its_frames_and_completes_its_requests() {
    let mut w = world(2, Options::default());
    let asked = Arc::new(Mutex::new(None));
    let looks = Arc::new(Mutex::new(0));
    for at in 0..2 {
        let adder = Adder {
            asked: asked.clone(),
            looks: looks.clone(),
            ..Adder::default()
        };
        w.engines[at].register(protocol::TEST, Box::new(adder));
    }
    for (number, sum) in [(3, 3), (4, 7)] {
        let request = ask(&mut w.engines[0], &asked, Peer::new(1), number);
        assert_eq!(w.engines[0].test(request), None, "nobody has answered");
        let completion = w.finish(0, request);
        assert_eq!((completion.source, completion.bytes, completion.error), (1, sum, None));
    }
    assert!(*looks.lock().expect("nobody panics with it") > 0, "progress moves it");
}

#[test]
fn a_frame_of_an_unknown_protocol_loses_its_sender_and_machines_hear_of_that() {
    let mut w = world(2, Options::default());
    let lost = Arc::new(Mutex::new(vec![]));
    let adder = Adder {
        lost: lost.clone(),
        ..Adder::default()
    };
    w.engines[1].register(protocol::TEST, Box::new(adder));
    let mut unknown = frame(QUESTION, 1);
    unknown.flags = protocol::TEST - 1;
    w.engines[0].send_frame(Peer::new(1), unknown);
    for _ in 0..1000 {
        w.poll();
        if !lost.lock().expect("nobody panics with it").is_empty() {
            break;
        }
    }
    assert_eq!(*lost.lock().expect("nobody panics with it"), [Peer::new(0)]);
}
