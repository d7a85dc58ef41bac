// SPDX-License-Identifier: Apache-2.0
//! How processes of other jobs reach a process through the gateway of its local area, and how it reaches them through
//! that.
//!
//! ```text
//!  gate     port: u16 | key: 16 bytes | addresses: u8, each 4 or 6, and 4 or 16 bytes
//! ```
//! Whoever wants to the process connects to the gateway there and knocks with the key ([`crate::entry::knock`]). The
//! gateway answers with one byte, [`HERE`] or [`GONE`]; after [`HERE`] the connection is one with the process, and what
//! passes is TLS between the two.
//!
//! Which key leads where a process says to the gateway of its own area, on a connection that begins as all do between
//! the two ([`crate::gateway`]), to rank [`GATEWAY`] and with [`WISH_LEAD`](crate::gateway::WISH_LEAD). As long as that
//! connection is there the keys are in force. Messages have a length in front ([`crate::codec`]):
//!
//! | to the gateway | kind | fields |
//! |---|---|---|
//! | `Lead` | 1 | key 16, \[address\] as above with u16 port each, whether it knocks there: u8, with what: key 16 |
//! | `Shut` | 2 | key 16 |
//!
//! Each is answered with one byte, [`READY`](crate::gateway::READY) or [`NO_WAY`](crate::gateway::NO_WAY). Where an own
//! port is behind the key, others come in by it; where it is a gate of another job, this process goes out by it.

use core::net::{IpAddr, SocketAddr};

use crate::codec::{DecodeError, Reader, Writer};

/// Most addresses of a gate, and of what a key leads to.
pub const MAX_ADDRESSES: usize = 8;
/// Longest message of a process, bytes.
pub const MAX_MESSAGE: usize = 512;
/// Most keys of one process.
pub const MAX_LEADS: usize = 4096;

/// Stands for the gateway itself in place of the rank that is wanted.
pub const GATEWAY: u32 = u32::MAX;

/// What a gateway says to a knock: the process is there.
pub const HERE: u8 = 1;
/// It is not, or never was.
pub const GONE: u8 = 0;

/// What is knocked with.
pub type Key = [u8; 16];

/// Where a process can be entered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gate {
    /// Of the gateway.
    pub port: u16,
    /// Which process; whoever knows it may try.
    pub key: Key,
    /// Of the gateway, most promising first.
    pub addresses: Vec<IpAddr>,
}

impl Gate {
    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        w.u16(self.port).fixed(&self.key);
        let some = &self.addresses[..self.addresses.len().min(MAX_ADDRESSES)];
        w.u8(some.len() as u8);
        some.iter().for_each(|address| write_ip(w, *address));
    }

    /// Reads it.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (port, key) = (r.u16("port of a gateway")?, r.fixed("key")?);
        let count = few(r.u8("addresses of a gateway")?)?;
        let addresses = (0..count).map(|_| read_ip(r)).collect::<Result<_, _>>()?;
        Ok(Self { port, key, addresses })
    }

    /// Where it is knocked.
    pub fn doors(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.addresses
            .iter()
            .map(|address| SocketAddr::new(*address, self.port))
    }
}

/// What a process says to the gateway of its area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToGate {
    /// From now on this key leads to the first of these that answers.
    Lead {
        /// What others knock with.
        key: Key,
        /// Where it leads: [`MAX_ADDRESSES`] at most.
        to: Vec<SocketAddr>,
        /// What is knocked with there.
        knock: Option<Key>,
    },
    /// From now on it does not.
    Shut {
        /// The key.
        key: Key,
    },
}

impl ToGate {
    /// With its length.
    pub fn encode(&self) -> Vec<u8> {
        let w = match self {
            Self::Lead { key, to, knock } => {
                let mut w = Writer::new(1);
                let some = &to[..to.len().min(MAX_ADDRESSES)];
                w.fixed(key).u8(some.len() as u8);
                some.iter().for_each(|address| {
                    write_ip(&mut w, address.ip());
                    w.u16(address.port());
                });
                w.u8(knock.is_some().into()).fixed(&knock.unwrap_or_default());
                w
            }
            Self::Shut { key } => {
                let mut w = Writer::new(2);
                w.fixed(key);
                w
            }
        };
        w.into_framed()
    }

    /// Without it.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let message = match r.u8("kind")? {
            1 => {
                let key = r.fixed("key")?;
                let count = few(r.u8("where a key leads")?)?;
                let address = |r: &mut Reader<'_>| Ok(SocketAddr::new(read_ip(r)?, r.u16("port")?));
                let to = (0..count).map(|_| address(&mut r)).collect::<Result<_, _>>()?;
                let (knocks, with) = (r.u8("whether it is knocked")?, r.fixed("key")?);
                let knock = match knocks {
                    0 => None,
                    1 => Some(with),
                    other => return Err(invalid("whether it is knocked", other)),
                };
                Self::Lead { key, to, knock }
            }
            2 => Self::Shut { key: r.fixed("key")? },
            other => return Err(invalid("kind", other)),
        };
        r.end()?;
        Ok(message)
    }
}

fn few(count: u8) -> Result<u8, DecodeError> {
    match usize::from(count) <= MAX_ADDRESSES {
        true => Ok(count),
        false => Err(invalid("addresses", count)),
    }
}

fn write_ip(w: &mut Writer, address: IpAddr) {
    match address {
        IpAddr::V4(address) => w.u8(4).fixed(&address.octets()),
        IpAddr::V6(address) => w.u8(6).fixed(&address.octets()),
    };
}

fn read_ip(r: &mut Reader<'_>) -> Result<IpAddr, DecodeError> {
    match r.u8("kind of address")? {
        4 => Ok(IpAddr::from(r.fixed::<4>("address")?)),
        6 => Ok(IpAddr::from(r.fixed::<16>("address")?)),
        other => Err(invalid("kind of address", other)),
    }
}

fn invalid(field: &'static str, value: u8) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: value.into(),
    }
}

/// One, for tests and the fuzzer.
pub fn sample() -> Gate {
    Gate {
        port: 40001,
        key: [8; 16],
        addresses: vec![IpAddr::from([10, 1, 2, 3]), IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 1])],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_survive_the_wire_and_their_truncations_do_not() {
        let mut w = Writer::default();
        sample().write(&mut w);
        let bytes = w.into_body();
        assert_eq!(Gate::read(&mut Reader::new(&bytes)), Ok(sample()));
        (0..bytes.len()).for_each(|length| assert!(Gate::read(&mut Reader::new(&bytes[..length])).is_err()));
        let many = Gate {
            addresses: vec![IpAddr::from([1, 2, 3, 4]); 2 * MAX_ADDRESSES],
            ..sample()
        };
        let mut w = Writer::default();
        many.write(&mut w);
        let read = Gate::read(&mut Reader::new(&w.into_body())).expect("as many as there may be");
        assert_eq!(read.addresses.len(), MAX_ADDRESSES);
    }

    #[test]
    fn what_a_gateway_is_told_survives_the_wire_and_its_truncations_do_not() {
        let to: Vec<SocketAddr> = sample().doors().collect();
        let lead = |knock| ToGate::Lead {
            key: [1; 16],
            to: to.clone(),
            knock,
        };
        for message in [lead(None), lead(Some([2; 16])), ToGate::Shut { key: [3; 16] }] {
            let whole = message.encode();
            assert!(whole.len() <= MAX_MESSAGE);
            assert_eq!(ToGate::decode(&whole[4..]), Ok(message));
            (4..whole.len()).for_each(|end| assert!(ToGate::decode(&whole[4..end]).is_err()));
        }
        let most = ToGate::Lead {
            key: [1; 16],
            to: vec![to[1]; MAX_ADDRESSES + 9],
            knock: Some([2; 16]),
        };
        assert!(most.encode().len() <= MAX_MESSAGE);
        assert!(ToGate::decode(&[3]).is_err() && ToGate::decode(&[]).is_err());
        assert!(
            ToGate::decode(&[&[1][..], &[0; 16], &[9]].concat()).is_err(),
            "too many"
        );
    }
}
