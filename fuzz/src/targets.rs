// SPDX-License-Identifier: Apache-2.0
//! What is fuzzed. A target takes any bytes and must not panic; where something can be decoded, what it encodes
//! to must decode to the same again.

use isthmus_wire::boot::{Counters, Hello, LevelCounters, Message};
use isthmus_wire::codec::Deframer;
use isthmus_wire::frame::{HEADER_BYTES, Header, Kind};
use isthmus_wire::place::Representation;

/// One parser with good inputs to begin from.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
    pub(crate) corpus: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "frame",
        run: frame,
        corpus: frames,
    },
    Target {
        name: "boot",
        run: boot,
        corpus: boot_bodies,
    },
    Target {
        name: "stream",
        run: stream,
        corpus: boot_streams,
    },
];

/// The target of this name.
pub(crate) fn find(name: &str) -> Result<&'static Target, String> {
    let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
    TARGETS
        .iter()
        .find(|t| t.name == name)
        .ok_or_else(|| format!("no target `{name}`; there are: {}", names.join(", ")))
}

/// The header in front of messages between processes.
fn frame(bytes: &[u8]) {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return;
    };
    if let Ok(decoded) = Header::decode(header) {
        let _ = (decoded.payload_bytes(), decoded.auxiliary());
        assert_eq!(Header::decode(&decoded.encode()), Ok(decoded));
    }
}

fn frames() -> Vec<Vec<u8>> {
    (0..=255)
        .filter_map(Kind::from_code)
        .map(|kind| Header::new(kind, 3, 1, 7, 4096, 9).encode().to_vec())
        .collect()
}

/// A message between a process and its agent.
fn boot(body: &[u8]) {
    if let Ok(message) = Message::decode(body) {
        assert_eq!(
            unframed(&message.encode()).map(|body| Message::decode(&body)),
            Some(Ok(message))
        );
    }
}

fn boot_messages() -> Vec<Message> {
    let hello = Hello {
        version: 1,
        token: [7; 16],
        index: 3,
        pid: 4711,
        port: 50_000,
        representation: Representation([1; 8]),
        signing_request: vec![0x30; 40],
    };
    let counters = Counters {
        rows: vec![(
            "MPI_Bcast".to_owned(),
            1,
            LevelCounters {
                messages: 2,
                bytes: 2048,
            },
        )],
        calls: vec![("MPI_Bcast".to_owned(), 1)],
    };
    let reason = "rank 3 called MPI_Abort".to_owned();
    vec![
        Message::Hello(hello),
        Message::Finished(counters),
        Message::Abort { code: 1, reason },
        Message::Dismissed,
    ]
}

fn boot_bodies() -> Vec<Vec<u8>> {
    boot_messages()
        .iter()
        .filter_map(|message| unframed(&message.encode()))
        .collect()
}

/// A stream of messages, arriving in pieces.
fn stream(bytes: &[u8]) {
    let (mut deframer, mut whole) = (Deframer::default(), Deframer::default());
    whole.feed(bytes);
    for piece in bytes.chunks(1 + bytes.len() / 7) {
        deframer.feed(piece);
        loop {
            let next = deframer.next_body();
            if matches!(next, Ok(None)) {
                break;
            }
            assert_eq!(
                next,
                whole.next_body(),
                "pieces and the whole must give the same messages"
            );
            if next.is_err() {
                return;
            }
        }
    }
}

fn boot_streams() -> Vec<Vec<u8>> {
    vec![boot_messages().iter().flat_map(Message::encode).collect()]
}

/// The body of the first message of a stream.
fn unframed(stream: &[u8]) -> Option<Vec<u8>> {
    let mut deframer = Deframer::default();
    deframer.feed(stream);
    deframer.next_body().ok().flatten()
}
