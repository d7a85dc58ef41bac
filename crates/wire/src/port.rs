// SPDX-License-Identifier: Apache-2.0
//! Names of ports (MPI_Open_port), and how who connects to one begins.
//!
//! ```text
//!  name      isthmus1: | base64url without padding of
//!              secret: 16 bytes | fingerprint: 32 bytes | port: u16 | perhaps 8: proofs are asked for
//!              | perhaps 9, and a gate ([`crate::gate`]) | perhaps 7, and an entry ([`crate::entry`])
//!              | addresses: each 4 or 6, and 4 or 16 bytes
//!
//!  connects            accepts
//!    Greeting   -->                    3 | secret: 16 bytes | [proof: 16 bytes]
//!               <--   Answer           0: come in | 1: no, text | 4: no proof is of a key that the port asks for
//!                                      (come in: when MPI_Comm_accept takes the connection)
//!    Here       -->                    2
//!    Offer     <-->   Offer            see `joining`
//! ```
//! The fingerprint says whom to believe, the secret which port is meant. Nobody connects without it, and to most ports
//! only who proves a key of the acceptor's user, too. A proof is made of such a key and of what the name says, so that
//! it is good for this port alone. A name is at most 255 printable characters long: every MPI has room for it.

use core::net::IpAddr;

use crate::codec::{DecodeError, Reader, Writer};
use crate::entry::Entry;
use crate::gate::Gate;
use crate::reason::{cut_to, read_for_people};

/// What names begin with.
const HEAD: &str = "isthmus1:";
/// Longest name.
pub const MAX_NAME: usize = 255;
/// Bytes of a name before the addresses.
const FIXED: usize = 16 + 32 + 2;
/// Most bytes that a name can have.
const MOST: usize = (MAX_NAME - HEAD.len()) / 4 * 3;
/// What comes before an entry.
const ENTRY: u8 = 7;
/// What comes before a gate, and bytes of a name that it leaves for an entry and an address.
const GATE: u8 = 9;
const BESIDE: usize = 91 + 5;
/// What a name has whose port asks for proofs.
const PROOFS: u8 = 8;
/// Most proofs of one who connects: the message of a stranger is short.
pub const MAX_PROOFS: usize = 12;
/// Longest text of a refusal.
const MAX_TEXT: usize = 200;

/// What shows that somebody has a key; for one port.
pub type Proof = [u8; 16];

/// What a proof is made of beside the key.
pub fn to_prove(secret: &[u8; 16], fingerprint: &[u8; 32]) -> Vec<u8> {
    [&b"isthmus port 1"[..], secret, fingerprint].concat()
}

/// What a port's name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    /// Known to those who know the name.
    pub secret: [u8; 16],
    /// Hash of the acceptor's certificate.
    pub fingerprint: [u8; 32],
    /// TCP port.
    pub port: u16,
    /// Where the acceptor may be reached, most promising first.
    pub addresses: Vec<IpAddr>,
    /// How it is reached through the host at which its job meets others.
    pub entry: Option<Entry>,
    /// How it is reached through the gateway of its local area.
    pub gate: Option<Gate>,
    /// Who connects is to show its keys.
    pub proofs: bool,
}

/// Why a text is not the name of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAPort {
    /// It does not begin as one does.
    Foreign,
    /// It was changed or cut.
    Damaged,
}

impl std::fmt::Display for NotAPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Foreign => {
                "it does not begin with 'isthmus1:', as the names that this version's MPI_Open_port gives do"
            }
            Self::Damaged => "it was changed or cut off: pass it on exactly as MPI_Open_port gave it",
        })
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        let digits = (0..=group.len()).map(|at| DIGITS[(word >> (18 - 6 * at)) as usize & 63]);
        text.extend(digits.map(char::from));
    }
    text
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte);
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let mut word = 0;
        for byte in group {
            word = word << 6 | digit(byte)? as u32;
        }
        let count = group.len().checked_sub(1).filter(|&count| count > 0)?;
        word <<= 6 * (4 - group.len());
        // One way to write each name.
        if word & ((1 << (8 * (3 - count))) - 1) != 0 {
            return None;
        }
        bytes.extend((0..count).map(|at| (word >> (16 - 8 * at)) as u8));
    }
    Some(bytes)
}

impl PortName {
    /// The name; of the addresses as many as it has room for.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(MOST);
        bytes.extend(self.secret);
        bytes.extend(self.fingerprint);
        bytes.extend(self.port.to_le_bytes());
        if self.proofs {
            bytes.push(PROOFS);
        }
        if let Some(gate) = self.gate.as_ref().and_then(|gate| shortened(gate, bytes.len())) {
            let mut w = Writer::new(GATE);
            gate.write(&mut w);
            bytes.extend(w.into_body());
        }
        if let Some(entry) = &self.entry {
            let mut w = Writer::new(ENTRY);
            entry.write(&mut w);
            bytes.extend(w.into_body());
        }
        for address in &self.addresses {
            let room = MOST - bytes.len();
            match address {
                IpAddr::V4(address) if room >= 5 => {
                    bytes.push(4);
                    bytes.extend(address.octets());
                }
                IpAddr::V6(address) if room >= 17 => {
                    bytes.push(6);
                    bytes.extend(address.octets());
                }
                _ => {}
            }
        }
        format!("{HEAD}{}", encoded(&bytes))
    }

    /// What a name says.
    pub fn decode(name: &str) -> Result<Self, NotAPort> {
        let text = name.strip_prefix(HEAD).ok_or(NotAPort::Foreign)?;
        if name.len() > MAX_NAME {
            return Err(NotAPort::Damaged);
        }
        Self::of(&decoded(text).ok_or(NotAPort::Damaged)?).ok_or(NotAPort::Damaged)
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (fixed, mut rest) = bytes.split_at_checked(FIXED)?;
        let mut entry = None;
        let mut proofs = false;
        if let Some((&PROOFS, behind)) = rest.split_first() {
            (proofs, rest) = (true, behind);
        }
        let mut gate = None;
        if let Some((&GATE, behind)) = rest.split_first() {
            let mut r = Reader::new(behind);
            let read = Gate::read(&mut r).ok();
            // One way to write each name: with addresses, and no more than there is room for.
            gate = Some(read.filter(|gate| shortened(gate, FIXED + usize::from(proofs)).as_ref() == Some(gate))?);
            rest = &behind[behind.len() - r.left()..];
        }
        if let Some((&ENTRY, behind)) = rest.split_first() {
            let mut r = Reader::new(behind);
            entry = Some(Entry::read(&mut r).ok()?);
            rest = &behind[behind.len() - r.left()..];
        }
        let mut addresses = Vec::new();
        while let Some((kind, behind)) = rest.split_first() {
            let length = match kind {
                4 => 4,
                6 => 16,
                _ => return None,
            };
            let (address, behind) = behind.split_at_checked(length)?;
            addresses.push(match <[u8; 4]>::try_from(address) {
                Ok(octets) => IpAddr::from(octets),
                Err(_) => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
            });
            rest = behind;
        }
        Some(Self {
            secret: *fixed.first_chunk()?,
            fingerprint: *fixed[16..].first_chunk()?,
            port: u16::from_le_bytes(*fixed[48..].first_chunk()?),
            addresses,
            entry,
            gate,
            proofs,
        })
    }
}

/// With as many addresses as there is room for, after so many bytes; `None`: for none.
fn shortened(gate: &Gate, before: usize) -> Option<Gate> {
    /// Of a gate without addresses.
    const BARE: usize = 1 + 2 + 16 + 1;
    let mut room = MOST.checked_sub(before + BARE + BESIDE)?;
    let size = |address: &IpAddr| if address.is_ipv4() { 5 } else { 17 };
    let fits = |address: &&IpAddr| {
        let fits = size(address) <= room;
        room -= if fits { size(address) } else { 0 };
        fits
    };
    let addresses: Vec<IpAddr> = gate.addresses.iter().filter(fits).copied().collect();
    (!addresses.is_empty()).then_some(Gate {
        addresses,
        ..gate.clone()
    })
}

/// What passes on a connection to a port before the groups say anything of themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// I know this port, and have these keys; [`MAX_PROOFS`] at most.
    Greeting([u8; 16], Vec<Proof>),
    /// MPI_Comm_accept has taken the connection.
    Welcome,
    /// It has not, for this reason.
    Refused(String),
    /// I am still there.
    Here,
    /// The port takes only whoever has a key of its user, and none of the proofs is of one.
    NoKey,
}

impl Message {
    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Welcome => vec![0],
            Self::Refused(why) => {
                let mut w = Writer::new(1);
                w.text(cut_to(why, MAX_TEXT));
                w.into_body()
            }
            Self::Here => vec![2],
            Self::NoKey => vec![4],
            Self::Greeting(secret, proofs) => {
                let mut w = Writer::new(3);
                w.fixed(secret).list(proofs, |w, proof| {
                    w.fixed(proof);
                });
                w.into_body()
            }
        }
    }

    /// One that has travelled.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let message = match r.u8("kind")? {
            0 => Self::Welcome,
            1 => Self::Refused(read_for_people(&mut r, "reason", MAX_TEXT)?),
            2 => Self::Here,
            3 => Self::Greeting(r.fixed("secret")?, provable(r.list("proofs", |r| r.fixed("proof"))?)?),
            4 => Self::NoKey,
            kind => {
                return Err(DecodeError::Invalid {
                    field: "kind",
                    value: kind.into(),
                });
            }
        };
        r.end()?;
        Ok(message)
    }
}

/// As many as there may be, of proofs or of keys.
pub(crate) fn provable<T>(list: Vec<T>) -> Result<Vec<T>, DecodeError> {
    match list.len() <= MAX_PROOFS {
        true => Ok(list),
        false => Err(DecodeError::Invalid {
            field: "proofs",
            value: list.len() as u64,
        }),
    }
}

/// For the fuzzer: any bytes as a name and as a message.
pub fn fuzz(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(name) = PortName::decode(&text) {
        assert_eq!(name.encode(), text, "one way to write each name");
    }
    if let Ok(message) = Message::decode(bytes) {
        assert_eq!(Message::decode(&message.encode()), Ok(message), "it survives the wire");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(addresses: &[&str]) -> PortName {
        PortName {
            secret: std::array::from_fn(|at| at as u8),
            fingerprint: std::array::from_fn(|at| 255 - at as u8),
            port: 54321,
            addresses: addresses.iter().map(|text| text.parse().expect("an address")).collect(),
            entry: None,
            gate: None,
            proofs: false,
        }
    }

    #[test]
    fn names_are_printable_short_and_come_back() {
        for addresses in [
            &[][..],
            &["10.1.2.3"],
            &["fd00::1", "10.1.2.3"],
            &["::1", "fd00::2", "1.2.3.4"],
        ] {
            let name = PortName {
                proofs: addresses.len() % 2 == 1,
                ..name(addresses)
            };
            let text = name.encode();
            assert!(
                text.len() <= MAX_NAME && text.bytes().all(|byte| byte.is_ascii_graphic()),
                "{text}"
            );
            assert_eq!(PortName::decode(&text), Ok(name));
        }
        let many = name(&["fd00::1"; 40]);
        let text = many.encode();
        assert!(text.len() <= MAX_NAME);
        let kept = PortName::decode(&text).expect("it is whole").addresses;
        assert_eq!(kept.len(), (MOST - FIXED) / 17);
    }

    #[test]
    fn a_gate_survives_and_leaves_room_for_an_entry_and_an_address() {
        let entry = Entry {
            host: "h".repeat(crate::entry::MAX_HOST),
            ..crate::entry::sample()
        };
        let gate = Gate {
            addresses: vec![[10, 1, 2, 3].into(); 6],
            ..crate::gate::sample()
        };
        let all = PortName {
            entry: Some(entry.clone()),
            gate: Some(gate.clone()),
            proofs: true,
            ..name(&["10.1.2.3", "10.1.2.4", "fd00::1"])
        };
        let text = all.encode();
        assert!(text.len() <= MAX_NAME);
        let read = PortName::decode(&text).expect("it is a name");
        assert_eq!(read.entry, Some(entry));
        assert!(!read.addresses.is_empty());
        let kept = read.gate.expect("a gate");
        assert_eq!((kept.key, kept.port), (gate.key, gate.port));
        assert!(!kept.addresses.is_empty());
        let short = PortName { entry: None, ..all };
        assert_eq!(
            PortName::decode(&short.encode()).map(|name| name.gate.is_some()),
            Ok(true)
        );
    }

    #[test]
    fn the_longest_entry_leaves_room_for_addresses() {
        let entry = Entry {
            host: "h".repeat(crate::entry::MAX_HOST),
            ..crate::entry::sample()
        };
        let name = PortName {
            entry: Some(entry),
            proofs: true,
            ..name(&["fd00::1", "10.1.2.3", "fd00::2"])
        };
        let text = name.encode();
        assert!(text.len() <= MAX_NAME && text.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(PortName::decode(&text), Ok(name));
        for length in HEAD.len()..text.len() {
            fuzz(&text.as_bytes()[..length]);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let text = name(&["10.1.2.3"]).encode();
        for length in HEAD.len()..text.len() {
            // A name without its address is one, too.
            let cut = PortName::decode(&text[..length]);
            assert!(
                cut.is_err() || cut.is_ok_and(|name| name.addresses.is_empty()),
                "{length}"
            );
        }
        assert_eq!(PortName::decode(""), Err(NotAPort::Foreign));
        assert_eq!(PortName::decode("tag#0$description"), Err(NotAPort::Foreign));
        assert_eq!(PortName::decode("isthmus1:!"), Err(NotAPort::Damaged));
        assert_eq!(
            PortName::decode(&format!("{text}{}", "A".repeat(300))),
            Err(NotAPort::Damaged)
        );
        // A gate without addresses leads nowhere.
        let mut bytes = decoded(&name(&[]).encode()[HEAD.len()..]).expect("a name");
        let mut gate = Writer::new(GATE);
        Gate {
            addresses: Vec::new(),
            ..crate::gate::sample()
        }
        .write(&mut gate);
        bytes.extend(gate.into_body());
        let nowhere = format!("{HEAD}{}", encoded(&bytes));
        assert_eq!(PortName::decode(&nowhere), Err(NotAPort::Damaged));
    }

    #[test]
    fn messages_survive_the_wire() {
        let all = [
            Message::Greeting([9; 16], Vec::new()),
            Message::Greeting([9; 16], vec![[8; 16]; MAX_PROOFS]),
            Message::Welcome,
            Message::Refused("closed".into()),
            Message::Here,
            Message::NoKey,
        ];
        for message in all {
            let bytes = message.encode();
            (0..bytes.len()).for_each(|length| assert!(Message::decode(&bytes[..length]).is_err()));
            assert_eq!(Message::decode(&bytes), Ok(message));
        }
        assert!(Message::decode(&[7]).is_err());
        let many = Message::Greeting([9; 16], vec![[8; 16]; MAX_PROOFS + 1]);
        assert!(Message::decode(&many.encode()).is_err());
        // A reason is cut where it is written, so a longer one is nobody's.
        let long = Message::Refused("é".repeat(MAX_TEXT)).encode();
        assert!(matches!(Message::decode(&long), Ok(Message::Refused(why)) if why.len() == MAX_TEXT));
        let mut longer = Writer::new(1);
        longer.text(&"x".repeat(MAX_TEXT + 1));
        assert!(Message::decode(&longer.into_body()).is_err());
        fuzz(b"isthmus1:AAAA");
    }
}
