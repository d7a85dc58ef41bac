// SPDX-License-Identifier: Apache-2.0
//! How partitioned communication begins.
//!
//! The payload of the message that MPI_Psend_init sends, in context `c | 2^31` (`c`: point-to-point context of the
//! communicator) with the user's tag:
//!
//! ```text
//!  byte 0                          4                           8
//!      +---------------------------+---------------------------+
//!      | name                      | reserved (0)              |
//!      +---------------------------+---------------------------+
//! ```
//! Little-endian. The messages themselves have the name as tag, in context `(c | 2^31) + 1`.

/// Size of an encoded [`Setup`] in bytes.
pub const SETUP_BYTES: usize = 8;

/// What a partitioned sender tells its receiver. See the module for the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Tag of the messages: different for all that the sender has.
    pub name: u32,
}

impl Setup {
    /// Encodes into the layout of the module.
    pub fn encode(&self) -> [u8; SETUP_BYTES] {
        let mut out = [0; SETUP_BYTES];
        out[..4].copy_from_slice(&self.name.to_le_bytes());
        out
    }

    /// Decodes; missing bytes count as 0. Every name is a valid one: what no sender uses just never arrives.
    pub fn decode(bytes: &[u8]) -> Self {
        let mut name = [0; 4];
        for (to, from) in name.iter_mut().zip(bytes) {
            *to = *from;
        }
        Self {
            name: u32::from_le_bytes(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_survives_the_wire() {
        let setup = Setup { name: 0x0102_0304 };
        assert_eq!(setup.encode(), [4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(Setup::decode(&setup.encode()), setup);
        assert_eq!(Setup::decode(&[7]), Setup { name: 7 });
    }
}
