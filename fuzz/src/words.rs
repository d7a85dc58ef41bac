// SPDX-License-Identifier: Apache-2.0
//! Words of the user that need not be UTF-8.

use isthmus_wire::gate::ToGate;
use isthmus_wire::gathering::{Come, FromPart, Member, ToPart};
use isthmus_wire::joining::{Terms, Verdict};
use isthmus_wire::port::{Message, PortName};
use isthmus_wire::word;

/// Words of the system, as text and back.
pub(crate) fn words(bytes: &[u8]) {
    let text = word::from_bytes(bytes);
    assert_eq!(word::to_bytes(&text), bytes);
    assert!(!word::show(&text).chars().any(word::stands_for_a_byte));
    if let Ok(own) = std::str::from_utf8(bytes) {
        // Any text that comes from a peer is a word.
        assert_eq!(
            word::to_bytes(own),
            word::to_bytes(&word::from_bytes(&word::to_bytes(own)))
        );
    }
}

pub(crate) fn odd_words() -> Vec<Vec<u8>> {
    let own = char::from_u32(word::FIRST).unwrap_or_default().to_string();
    ["plain", "gr\u{fc}n", &own]
        .map(|text| text.as_bytes().to_vec())
        .into_iter()
        .chain([b"d\xe9p\xf4t".to_vec(), b"\xf4\x8f\xa2".to_vec()])
        .collect()
}

/// Names of ports, and messages of who connects to one.
pub(crate) fn ports() -> Vec<Vec<u8>> {
    let name = |addresses: &[[u8; 4]]| PortName {
        secret: [1; 16],
        fingerprint: [2; 32],
        port: 4711,
        addresses: addresses.iter().map(|&octets| octets.into()).collect(),
        entry: None,
        gate: None,
        proofs: false,
    };
    let entered = PortName {
        entry: Some(isthmus_wire::entry::sample()),
        gate: Some(isthmus_wire::gate::sample()),
        proofs: true,
        ..name(&[[10, 0, 0, 1]])
    };
    let names = [name(&[]), name(&[[10, 0, 0, 1], [127, 0, 0, 1]]), entered];
    let messages = [
        Message::Greeting([3; 16], vec![[4; 16]]),
        Message::NoKey,
        Message::Welcome,
        Message::Refused("no".into()),
        Message::Here,
    ];
    let names = names.iter().map(|name| name.encode().into_bytes());
    names.chain(messages.iter().map(Message::encode)).collect()
}

/// What launchers of parts of a world tell each other.
pub(crate) fn parts() -> Vec<Vec<u8>> {
    let come = Come {
        world: "ocean".into(),
        part: 2,
        of: 3,
        host: "desk".into(),
        machine: [1; 32],
        members: vec![Member {
            site: "home".into(),
            lan: "home".into(),
            count: 4,
            programs: vec![(0, 0), (3, 1)],
            home: true,
        }],
    };
    let over = ToPart::Over {
        status: 1,
        problem: "p".into(),
        hint: String::new(),
    };
    let tell = ToPart::Tell {
        subjob: 0,
        message: vec![1, 2],
    };
    let all = [FromPart::Come(come).encode(), over.encode(), tell.encode()];
    all.iter().map(|message| message[4..].to_vec()).collect()
}

/// What a process says to the gateway of its area.
pub(crate) fn gate(bytes: &[u8]) {
    if let Ok(message) = ToGate::decode(bytes) {
        assert_eq!(ToGate::decode(&message.encode()[4..]), Ok(message));
    }
}

/// One of these.
pub(crate) fn lead() -> Vec<u8> {
    let lead = ToGate::Lead {
        key: [1; 16],
        to: isthmus_wire::gate::sample().doors().collect(),
        knock: Some([2; 16]),
    };
    lead.encode()[4..].to_vec()
}

/// What leaders of groups that join tell each other.
pub(crate) fn offers() -> Vec<Vec<u8>> {
    let terms = Terms {
        refusal: String::new(),
        name: "0".repeat(32),
        secret: [4; 32],
        block: 5,
        authority: vec![6; 20],
        certificates: vec![vec![7; 10]; 3],
    };
    vec![
        isthmus_wire::joining::sample().encode(),
        terms.encode(),
        Verdict::Refused("no".into()).encode(),
    ]
}
