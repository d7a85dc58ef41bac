// SPDX-License-Identifier: Apache-2.0
//! A process that speaks the rendezvous protocol but is no MPI library: for tests of the launcher.
//!
//! `fake_process WHAT [NUMBER [RANK]]`: what rank RANK (default: all) does once the barrier is open.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test program")]

use isthmus_wire::boot::{Counters, Hello, LevelCounters, Message, VERSION, World};
use isthmus_wire::codec::Deframer;
use isthmus_wire::place::Representation;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn main() {
    let mut words = std::env::args().skip(1);
    let what = words.next().unwrap_or_else(|| "finish".to_owned());
    let number: i32 = words.next().map_or(0, |n| n.parse().unwrap());
    let rank: Option<u32> = words.next().map(|n| n.parse().unwrap());
    let index: u32 = std::env::var("ISTHMUS_INDEX").unwrap().parse().unwrap();
    if what == "late" && index == rank.unwrap_or(0) {
        std::thread::sleep(Duration::from_secs(3600));
    }
    if what == "skip" && index == rank.unwrap_or(0) {
        return;
    }
    let mut agent = Agent::connect(index, if what == "old" { 999 } else { VERSION });
    let world = agent.world();
    let size = world.places.places.len();
    println!("rank {} of {size} certificate {}", world.rank, world.certificate.len());
    if rank.is_none_or(|r| r == world.rank) {
        match what.as_str() {
            "exit" => std::process::exit(number),
            "abort" => {
                agent.send(&Message::Abort {
                    code: number,
                    reason: "the program wants to".to_owned(),
                });
                std::process::exit(number);
            }
            "crash" => std::process::abort(),
            "hang" => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            _ => {}
        }
    }
    let row = (
        "bcast".to_owned(),
        0,
        LevelCounters {
            messages: 1,
            bytes: 100,
        },
    );
    agent.send(&Message::Finished(Counters {
        rows: vec![row],
        calls: vec![("bcast".to_owned(), 1)],
        links: vec![],
        traffic: vec![],
        time: Default::default(),
        choices: vec![],
        files: vec![],
    }));
    match agent.next() {
        Some(Message::Dismissed) => std::process::exit(if what == "after" { number } else { 0 }),
        Some(Message::Abort { .. }) | None => std::process::exit(77),
        other => panic!("the agent said {other:?}"),
    }
}

struct Agent {
    stream: UnixStream,
    deframer: Deframer,
}

impl Agent {
    fn connect(index: u32, version: u32) -> Self {
        let stream = UnixStream::connect(std::env::var("ISTHMUS_RENDEZVOUS").unwrap()).unwrap();
        let mut agent = Self {
            stream,
            deframer: Deframer::default(),
        };
        let text = std::env::var("ISTHMUS_TOKEN").unwrap();
        let mut token = [0; 16];
        for (at, byte) in token.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        }
        if std::env::var_os("FAKE_WRONG_TOKEN").is_some() {
            let wrong = Self {
                stream: UnixStream::connect(std::env::var("ISTHMUS_RENDEZVOUS").unwrap()).unwrap(),
                deframer: Deframer::default(),
            };
            wrong.expect_refusal(index);
        }
        let hello = Hello {
            version,
            token,
            index,
            pid: std::process::id(),
            // Of a process that listens; nobody connects.
            port: 9,
            representation: Representation([1, 8, 8, 16, 64, 4, 1, 0]),
            vendor: None,
            signing_request: Vec::new(),
        };
        agent.send(&Message::Hello(hello));
        agent
    }

    /// A hello with a wrong token gets nothing but the end of the connection.
    fn expect_refusal(mut self, index: u32) {
        let hello = Hello {
            version: VERSION,
            token: [0; 16],
            index,
            pid: 1,
            // Of a process that listens; nobody connects.
            port: 9,
            representation: Representation([0; 8]),
            vendor: None,
            signing_request: Vec::new(),
        };
        self.send(&Message::Hello(hello));
        assert_eq!(self.next(), None);
    }

    fn world(&mut self) -> World {
        match self.next() {
            Some(Message::World(world)) => *world,
            Some(Message::Abort { .. }) | None => std::process::exit(78),
            other => panic!("the agent said {other:?}"),
        }
    }

    fn send(&mut self, message: &Message) {
        self.stream.write_all(&message.encode()).unwrap();
    }

    fn next(&mut self) -> Option<Message> {
        let mut buffer = [0; 8192];
        loop {
            if let Some(body) = self.deframer.next_body().unwrap() {
                return Some(Message::decode(&body).unwrap());
            }
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.deframer.feed(&buffer[..n]),
            }
        }
    }
}
