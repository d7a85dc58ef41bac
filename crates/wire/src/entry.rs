// SPDX-License-Identifier: Apache-2.0
//! How a process is reached through the host at which jobs meet, where no job reaches another one. Both launchers are
//! connected with that host by ssh; what passes is TLS between the two processes.
//!
//! ```text
//!  connects       its launcher           the host              other launcher       accepts
//!    TCP   --->  port of its own --ssh-->  127.0.0.1:port  --ssh-->  Knock?  --- TCP --->
//!
//!  entry   length of the host's name: u8 | name | which host: 8 bytes | port: u16 | key: 16 bytes
//!  knock   "IsE1" | key: 16 bytes          the first bytes on each connection that a launcher makes
//! ```

use crate::codec::{DecodeError, Reader, Writer};

/// Longest name of a host, as ssh is given it, bytes.
pub const MAX_HOST: usize = 63;
/// Most entries of one question.
pub const MAX_ENTRIES: usize = 1024;
/// Length of a knock, bytes.
pub const KNOCK: usize = 20;

const MARK: [u8; 4] = *b"IsE1";

/// Where a process can be entered, as one who may do so is told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// What the process's launcher calls the host, for people.
    pub host: String,
    /// Equal for one host and user, whatever it is called.
    pub place: [u8; 8],
    /// The port of the process's launcher there.
    pub port: u16,
    /// Which process of that launcher, and which of its ports; whoever knows it may try.
    pub key: [u8; 16],
}

/// Whether a host may be called so: it becomes a word of a command.
pub fn is_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@:/[]%+".contains(&byte);
    (1..=MAX_HOST).contains(&host.len()) && !host.starts_with('-') && host.bytes().all(is_plain)
}

/// What the launcher says who makes a connection to this process.
pub fn knock(key: &[u8; 16]) -> [u8; KNOCK] {
    std::array::from_fn(|at| match MARK.get(at) {
        Some(&byte) => byte,
        None => key[at - MARK.len()],
    })
}

/// For which process a connection is; `None`: it is from nobody who knows how to knock.
pub fn knocked(bytes: &[u8; KNOCK]) -> Option<[u8; 16]> {
    let (mark, key) = bytes.split_first_chunk()?;
    key.try_into().ok().filter(|_| *mark == MARK)
}

impl Entry {
    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        let host = self.host.as_bytes();
        w.u8(host.len() as u8);
        host.iter().for_each(|&byte| {
            w.u8(byte);
        });
        w.fixed(&self.place).u16(self.port).fixed(&self.key);
    }

    /// Reads it.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let invalid = |value: usize| DecodeError::Invalid {
            field: "host",
            value: value as u64,
        };
        let length = usize::from(r.u8("length of the host's name")?);
        let mut host = String::new();
        for _ in 0..length {
            host.push(char::from(r.u8("host")?));
        }
        if !is_host(&host) {
            return Err(invalid(length));
        }
        Ok(Self {
            host,
            place: r.fixed("place")?,
            port: r.u16("port")?,
            key: r.fixed("key")?,
        })
    }
}

/// One, for tests and the fuzzer.
pub fn sample() -> Entry {
    Entry {
        host: "me@relay.example.org".into(),
        place: [7; 8],
        port: 40123,
        key: [9; 16],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_the_wire_and_strange_hosts_do_not() {
        let mut w = Writer::default();
        sample().write(&mut w);
        let bytes = w.into_body();
        assert_eq!(Entry::read(&mut Reader::new(&bytes)), Ok(sample()));
        (0..bytes.len()).for_each(|length| assert!(Entry::read(&mut Reader::new(&bytes[..length])).is_err()));
        for host in [
            "",
            "-oProxyCommand=x",
            "a b",
            "a\nb",
            "a$b",
            "a`b",
            &"x".repeat(MAX_HOST + 1),
        ] {
            let mut w = Writer::default();
            let entry = Entry {
                host: host.into(),
                ..sample()
            };
            entry.write(&mut w);
            assert!(Entry::read(&mut Reader::new(&w.into_body())).is_err(), "{host:?}");
        }
        for host in ["d1", "me@d1", "ssh://me@d1:2222", "[fe80::1%eth0]"] {
            assert!(is_host(host), "{host}");
        }
    }

    #[test]
    fn only_a_whole_knock_opens() {
        let bytes = knock(&[5; 16]);
        assert_eq!(knocked(&bytes), Some([5; 16]));
        assert_eq!(knocked(&[5; KNOCK]), None);
    }
}
