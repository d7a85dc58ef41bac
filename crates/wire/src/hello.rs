// SPDX-License-Identifier: Apache-2.0
//! How two MPI processes begin and end a TCP connection; in between there are frames ([`crate::frame`]).
//!
//! Inside a site both prove that they know the job's secret, which itself is never sent, and then which rank they are:
//! ```text
//!  dialler                                             acceptor
//!    knock: magic 8 | from 4 | to 4 | nonce 32 | proof 32  --->      silent until the proof is right
//!                             <---  answer: nonce 32 | proof 32 | credential
//!    reply: proof 32 | verdict 1 | credential  --->
//!                             <---  verdict 1                        only when the acceptor decides
//!    credential: length 2 | certificate (DER) | signature 64
//! ```
//! A proof is HMAC-SHA256 with the job's secret over: label 8, length of the job's name 4, name, from 4, to 4,
//! dialler's nonce 32, acceptor's nonce 32 (zero in the knock). Labels: [`KNOCK`], [`ANSWER`], [`REPLY`].
//! A signature is ECDSA on P-256 with SHA-256 over the same bytes as the proof in front of it, with the key of the
//! certificate, which names the rank: every member knows the secret, but only one has that key. Handshakes with
//! gateways have no credentials, since what gateways carry is proven inside; their secrets are known only to those that
//! may speak with each other.
//!
//! Between sites a TLS 1.3 handshake with certificates on both sides comes first (its first byte is 22,
//! [`MAGIC`] begins with another); inside it:
//! ```text
//!    greeting: magic 8 | from 4 | to 4 | verdict and purpose 1  ---> must be the rank of the certificate
//!                             <---  verdict 1                        only when the acceptor decides
//! ```
//! Both may dial at once, and a dialler tries several addresses at once. The **lower rank decides** which
//! connection is used: it says [`USE`] on exactly one, the other side of which takes that one; all others are closed.
//!
//! A channel between sites outlives its connections. Its greeting says what the connection is for ([`Purpose`]): the
//! first one, a replacement for all that the dialler had (which are dead to it), or one more beside them, for all or
//! for some. Of one more the dialler decides, whoever it is.
//!
//! A connection ends with a frame header of which only the first byte is not 0: [`FAREWELL`]. An end without it is a
//! loss.

/// First bytes of a plain connection and of the greeting inside TLS. The last byte is the version.
pub const MAGIC: [u8; 8] = *b"ISTHMUS\x02";
/// Bytes of a knock.
pub const KNOCK_BYTES: usize = 80;
/// Bytes of an answer.
pub const ANSWER_BYTES: usize = 64;
/// Bytes of a reply.
pub const REPLY_BYTES: usize = 33;
/// Longest certificate in a [`Credential`]. That of a rank has about 450 bytes.
pub const MAX_CERTIFICATE: usize = 1024;
/// Bytes of the signature in a [`Credential`].
pub const SIGNATURE_BYTES: usize = 64;
/// Longest encoded [`Credential`].
pub const MAX_CREDENTIAL: usize = 2 + MAX_CERTIFICATE + SIGNATURE_BYTES;
/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 17;
/// Label of the proof in a knock.
pub const KNOCK: &[u8; 8] = b"knock\0\0\0";
/// Label of the proof in an answer.
pub const ANSWER: &[u8; 8] = b"answer\0\0";
/// Label of the proof in a reply.
pub const REPLY: &[u8; 8] = b"reply\0\0\0";
/// Verdict: this connection is the one.
pub const USE: u8 = 1;
/// Verdict: the other side decides.
pub const YOU_DECIDE: u8 = 0;

/// What a connection between sites is for; bits 1 to 3 of the byte with the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// The first connection of the channel.
    First = 0,
    /// One more stream of a channel that has some.
    More = 1,
    /// The dialler has lost all connections that the channel had.
    Resume = 2,
    /// One more, straight to the peer, for messages that ask for that.
    Direct = 3,
    /// One more, through the gateways, for messages that ask for that.
    Gateway = 4,
    /// One straight to the peer, instead of those that gateways carry.
    Better = 5,
}

impl Purpose {
    /// Beside others that there are.
    pub fn is_more(self) -> bool {
        matches!(self, Self::More | Self::Direct | Self::Gateway | Self::Better)
    }

    /// For messages that ask for a kind of connection, and for no others.
    pub fn is_apart(self) -> bool {
        matches!(self, Self::Direct | Self::Gateway)
    }

    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::First,
            1 => Self::More,
            2 => Self::Resume,
            3 => Self::Direct,
            4 => Self::Gateway,
            5 => Self::Better,
            _ => return None,
        })
    }
}

/// First byte of the last frame header on a connection (not a [`crate::frame::Kind`]).
pub const FAREWELL: u8 = 255;

/// First message on a plain connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knock {
    /// Rank of the dialler.
    pub from: u32,
    /// Rank that it wants.
    pub to: u32,
    /// Chosen at random by the dialler.
    pub nonce: [u8; 32],
    /// See the module.
    pub proof: [u8; 32],
}

impl Knock {
    /// Encodes into the layout of the module.
    pub fn encode(&self) -> [u8; KNOCK_BYTES] {
        let mut out = [0; KNOCK_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&self.from.to_le_bytes());
        out[12..16].copy_from_slice(&self.to.to_le_bytes());
        out[16..48].copy_from_slice(&self.nonce);
        out[48..].copy_from_slice(&self.proof);
        out
    }

    /// Decodes; `None` when the magic bytes are others.
    pub fn decode(bytes: &[u8; KNOCK_BYTES]) -> Option<Self> {
        let (from, to) = ranks(&bytes[..16])?;
        Some(Self {
            from,
            to,
            nonce: array(&bytes[16..48])?,
            proof: array(&bytes[48..])?,
        })
    }
}

/// Proof of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credential<'a> {
    /// The certificate of the rank (DER).
    pub certificate: &'a [u8],
    /// See the module.
    pub signature: &'a [u8; SIGNATURE_BYTES],
}

impl<'a> Credential<'a> {
    /// Encodes into the layout of the module; `None` when the certificate is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        if self.certificate.len() > MAX_CERTIFICATE {
            return None;
        }
        let length = u16::try_from(self.certificate.len()).ok()?.to_le_bytes();
        Some([&length[..], self.certificate, self.signature].concat())
    }

    /// How many bytes it takes, as far as these first ones say; `None` when they belong to none.
    pub fn length(bytes: &[u8]) -> Option<usize> {
        let Some(length) = bytes.first_chunk::<2>() else {
            return Some(2);
        };
        let length = usize::from(u16::from_le_bytes(*length));
        (1..=MAX_CERTIFICATE)
            .contains(&length)
            .then_some(2 + length + SIGNATURE_BYTES)
    }

    /// Decodes; `None` when these bytes are not exactly one.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < 2 || Self::length(bytes)? != bytes.len() {
            return None;
        }
        let (certificate, signature) = bytes[2..].split_last_chunk::<SIGNATURE_BYTES>()?;
        Some(Self { certificate, signature })
    }
}

/// First message inside TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Rank of the dialler.
    pub from: u32,
    /// Rank that it wants.
    pub to: u32,
    /// [`USE`] when the dialler decides, else [`YOU_DECIDE`].
    pub verdict: u8,
    /// What the connection is for.
    pub purpose: Purpose,
}

impl Greeting {
    /// Encodes into the layout of the module.
    pub fn encode(&self) -> [u8; GREETING_BYTES] {
        let mut out = [0; GREETING_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&self.from.to_le_bytes());
        out[12..16].copy_from_slice(&self.to.to_le_bytes());
        out[16] = self.verdict | (self.purpose as u8) << 1;
        out
    }

    /// Decodes; `None` when the magic bytes are others or the last byte has no meaning.
    pub fn decode(bytes: &[u8; GREETING_BYTES]) -> Option<Self> {
        let (from, to) = ranks(&bytes[..16])?;
        Some(Self {
            from,
            to,
            verdict: bytes[16] & 1,
            purpose: Purpose::from_bits(bytes[16] >> 1)?,
        })
    }
}

fn ranks(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes[..8] != MAGIC {
        return None;
    }
    Some((
        u32::from_le_bytes(array(&bytes[8..12])?),
        u32::from_le_bytes(array(&bytes[12..16])?),
    ))
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_survive_the_wire() {
        let knock = Knock {
            from: 3,
            to: 0xffff_fffe,
            nonce: [7; 32],
            proof: [9; 32],
        };
        assert_eq!(Knock::decode(&knock.encode()), Some(knock));
        let credential = Credential {
            certificate: &[5; 450],
            signature: &[6; SIGNATURE_BYTES],
        };
        let bytes = credential.encode().unwrap();
        assert_eq!(Credential::decode(&bytes), Some(credential));
        for cut in 0..bytes.len() {
            assert_eq!(Credential::decode(&bytes[..cut]), None);
            let length = if cut < 2 { 2 } else { bytes.len() };
            assert_eq!(Credential::length(&bytes[..cut]), Some(length));
        }
        assert_eq!(Credential::length(&[0, 0]), None);
        assert_eq!(Credential::length(&[1, 4]), None, "more than the longest");
        let greeting = Greeting {
            from: 1,
            to: 2,
            verdict: USE,
            purpose: Purpose::More,
        };
        assert_eq!(Greeting::decode(&greeting.encode()), Some(greeting));
        let mut bytes = greeting.encode();
        bytes[16] = 12;
        assert_eq!(Greeting::decode(&bytes), None);
        bytes[7] = 1;
        assert_eq!(Greeting::decode(&bytes), None, "another version");
    }
}
