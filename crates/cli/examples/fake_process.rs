// SPDX-License-Identifier: Apache-2.0
//! A process that speaks the rendezvous protocol but is no MPI library: for tests of the launcher.
//!
//! `fake_process WHAT [NUMBER [RANK]]`: what rank RANK (default: all) does once the barrier is open.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test program")]

use isthmus_wire::boot::{Counters, Hello, LevelCounters, Message, VERSION, World};
use isthmus_wire::codec::Deframer;
use isthmus_wire::place::Representation;
use isthmus_wire::question::{Answer, Ask, Kind, Question, Refusal, Said, Scope, SpawnProgram};
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
    match std::env::var("ISTHMUS_PARENT_PORT") {
        Ok(port) => println!("child {} of {size} in {} of {port}", world.rank, own_name(&world.job)),
        Err(_) => println!("rank {} of {size} certificate {}", world.rank, world.certificate.len()),
    }
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
            "names" => agent.use_names(&world),
            "answer" => agent.send(&Message::Answer(Answer {
                number: 1,
                said: Ok(Said::Done),
            })),
            "flood" => agent.flood(),
            // As often as NUMBER says; what the children do follows the dash.
            _ if what.starts_with("spawn-") && std::env::var_os("ISTHMUS_PARENT_PORT").is_none() => {
                agent.spawn(&what[6..], number);
            }
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

/// A world as its job names it: without what tells jobs apart.
fn own_name(world: &str) -> String {
    world
        .split_once('.')
        .map_or_else(|| "the first world".to_owned(), |(_, number)| format!("world {number}"))
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

    /// Publishes a name of its own, and asks until it has heard those of all others.
    fn use_names(&mut self, world: &World) {
        let (rank, size) = (world.rank, world.places.places.len() as u32);
        let scope = Scope::Job;
        let (name, port) = (format!("name of {rank}"), format!("port of {rank}"));
        let publish = |port: &str| Ask::Publish {
            scope,
            name: name.clone(),
            port: port.to_owned(),
        };
        assert_eq!(self.ask(1, publish(&port)), Ok(Said::Done));
        let taken = self.ask(2, publish("another")).unwrap_err();
        assert_eq!(taken.kind, Kind::Taken, "{taken:?}");
        let look_up = |name: String| Ask::Lookup { scope: None, name };
        let unknown = self.ask(3, look_up("nobody's".to_owned())).unwrap_err();
        assert_eq!(unknown.kind, Kind::Unknown, "{unknown:?}");
        let mut number = 4;
        for other in 0..size {
            let heard = loop {
                number += 1;
                match self.ask(number, look_up(format!("name of {other}"))) {
                    Ok(said) => break said,
                    Err(refusal) => assert_eq!(refusal.kind, Kind::Unknown),
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            assert_eq!(heard, Said::Port(format!("port of {other}")));
        }
        println!("{rank} has heard all");
    }

    /// Has copies of this process started, two at this site and one at `lab`, and says what came of it.
    fn spawn(&mut self, what: &str, times: i32) {
        let program = match what {
            "missing" => "/nowhere/program".to_owned(),
            _ => std::env::current_exe().unwrap().to_str().unwrap().to_owned(),
        };
        let part = |processes, site: &str| SpawnProgram {
            program: program.clone(),
            arguments: vec![what.to_owned(), "3".to_owned(), "0".to_owned()],
            processes,
            keys: vec![("isthmus_site".to_owned(), site.to_owned())],
        };
        let parts = vec![part(2, "home"), part(1, "lab")];
        for time in 1..=times {
            let port = format!("port {time}");
            let parts = parts.clone();
            match self.ask(1000 + time as u64, Ask::Spawn { port, parts }) {
                // The name of their world is another one each time.
                Ok(Said::Started(started)) => println!("Started({:?})", started.processes),
                Ok(said) => println!("{said:?}"),
                Err(refusal) => println!("{:?}: {}", refusal.kind, refusal.why),
            }
        }
    }

    /// Asks, and waits for the answer.
    fn ask(&mut self, number: u64, ask: Ask) -> Result<Said, Refusal> {
        self.send(&Message::Question(Question { number, ask }));
        match self.next() {
            Some(Message::Answer(answer)) => {
                assert_eq!(answer.number, number);
                answer.said
            }
            other => panic!("the agent said {other:?}"),
        }
    }

    /// Asks much more at a time than a process may.
    fn flood(&mut self) {
        let question = |number| {
            let (scope, name) = (None, "x".to_owned());
            let ask = Ask::Lookup { scope, name };
            Message::Question(Question { number, ask }).encode()
        };
        let all: Vec<u8> = (0..20_000).flat_map(question).collect();
        // The agent may end this process before it has said all.
        let _ = self.stream.write_all(&all);
        std::thread::sleep(Duration::from_secs(3600));
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
