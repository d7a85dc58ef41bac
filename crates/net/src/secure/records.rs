// SPDX-License-Identifier: Apache-2.0
//! The record layer of an open connection: RFC 8446, section 5.
//!
//! The TLS library does the handshake and hands over its secrets. From then on records are made and read here, since
//! this is where long messages spend their time: encrypted straight from the user's memory into what one system call
//! sends, and decrypted where they were read. The library still derives the keys that follow. What else may come after
//! a handshake is little: both ends are ours, no tickets are issued, and nobody asks for another certificate.
//!
//! ```text
//! 23 | 3 3 | length, 2 bytes | encrypted: content, its kind, zeros | tag, 16 bytes
//! ```

use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::kernel::KernelConnection;
use rustls::{AlertDescription, ConnectionTrafficSecrets};

use super::aead::{Cipher, HEAD, Refused, TAG};

/// Most bytes of content of a record.
const CONTENT: usize = 16 << 10;
/// Most bytes after the header of a record.
const SEALED: usize = CONTENT + 256;
/// What a record adds to its content.
const ADDED: usize = HEAD + 1 + TAG;
/// Bytes of a message that says that the next record has another key.
const UPDATE: usize = 5;
/// Records that a key protects before it is changed. AES-GCM allows 2^24.5 of full length (RFC 8446, 5.5).
const RECORDS: u64 = 1 << 23;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
const KEY_UPDATE: u8 = 24;
const CLOSE_NOTIFY: u8 = 0;

/// The peer breaks the rules of records, or somebody on the way does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// It was changed on the way, or made by somebody else.
    Forged,
    TooLong(usize),
    /// Something that does not belong here.
    Unexpected(&'static str),
    /// What the peer says was wrong.
    Alert(AlertDescription),
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Forged => f.write_str("a record was changed on the way"),
            Self::TooLong(bytes) => write!(f, "a record of {bytes} bytes is too long"),
            Self::Unexpected(what) => write!(f, "{what} came in an open connection"),
            Self::Alert(alert) => write!(f, "the other end gave up: {alert:?}"),
        }
    }
}

impl Violation {
    /// What the peer is told.
    fn alert(self) -> Option<AlertDescription> {
        match self {
            Self::Forged => Some(AlertDescription::BadRecordMac),
            Self::TooLong(_) => Some(AlertDescription::RecordOverflow),
            Self::Unexpected(_) => Some(AlertDescription::UnexpectedMessage),
            Self::Alert(_) => None,
        }
    }
}

/// Why records do not go on.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Peer(Violation),
    /// The next keys are not to be had.
    Keys(rustls::Error),
    /// The cipher refuses: a bug of ours.
    Cipher,
    NoRoom,
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self::Peer(violation)
    }
}

impl From<Refused> for Failure {
    fn from(_: Refused) -> Self {
        Self::Cipher
    }
}

impl From<rustls::Error> for Failure {
    fn from(error: rustls::Error) -> Self {
        Self::Keys(error)
    }
}

/// Secrets with the number of the first record that they protect.
type Keys = (u64, ConnectionTrafficSecrets);

/// Where the keys after the first ones come from.
pub(super) trait Renew: Send {
    fn outgoing(&mut self) -> Result<Keys, rustls::Error>;
    fn incoming(&mut self) -> Result<Keys, rustls::Error>;
}

impl<Side> Renew for KernelConnection<Side>
where
    Self: Send,
{
    fn outgoing(&mut self) -> Result<Keys, rustls::Error> {
        self.update_tx_secret()
    }
    fn incoming(&mut self) -> Result<Keys, rustls::Error> {
        self.update_rx_secret()
    }
}

/// What became of bytes that came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opened {
    /// So many are done with; the rest is no whole record.
    pub(super) used: usize,
    /// The peer sends no more.
    pub(super) ended: bool,
}

/// Both directions of an open connection.
pub(super) struct Records {
    outgoing: Cipher,
    incoming: Cipher,
    renew: Box<dyn Renew>,
    /// The peer wants our key to be changed.
    owed: bool,
    /// Records until that happens anyway.
    lasts: u64,
}

impl Records {
    pub(super) fn new(outgoing: Keys, incoming: Keys, renew: Box<dyn Renew>) -> Result<Self, Failure> {
        Ok(Self {
            outgoing: Cipher::new(outgoing)?,
            incoming: Cipher::new(incoming)?,
            renew,
            owed: false,
            lasts: RECORDS,
        })
    }

    /// Instead of what is safe for any suite.
    #[cfg(test)]
    pub(super) fn change_keys_after(&mut self, records: u64) {
        self.lasts = records;
    }

    /// Most bytes of content that [`Records::seal`] certainly puts into so much room.
    pub(super) fn fits(room: usize) -> usize {
        // One record is not full, and changes of key may come in between.
        let records = room / (CONTENT + ADDED) + 1;
        room.saturating_sub(records * (ADDED + ADDED + UPDATE))
    }

    /// Encrypts all of it. How many bytes of `room` were filled.
    pub(super) fn seal(&mut self, plain: &[u8], room: &mut [u8]) -> Result<usize, Failure> {
        let mut used = 0;
        for content in plain.chunks(CONTENT) {
            if self.owed || self.outgoing.number() >= self.lasts {
                used += self.change_key(&mut room[used..])?;
            }
            used += self.record(DATA, content, &mut room[used..])?;
        }
        Ok(used)
    }

    /// Tells the peer what was wrong, if that is its business.
    pub(super) fn alert(&mut self, failure: &Failure, room: &mut [u8]) -> usize {
        let alert = match failure {
            Failure::Peer(violation) => violation.alert(),
            Failure::Keys(_) | Failure::Cipher | Failure::NoRoom => Some(AlertDescription::InternalError),
        };
        // 2: it is over.
        alert.map_or(0, |alert| {
            self.record(ALERT, &[2, u8::from(alert)], room).unwrap_or_default()
        })
    }

    fn change_key(&mut self, room: &mut [u8]) -> Result<usize, Failure> {
        // 0: the peer may keep its own.
        let used = self.record(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0], room)?;
        self.outgoing = Cipher::new(self.renew.outgoing()?)?;
        self.owed = false;
        Ok(used)
    }

    fn record(&mut self, kind: u8, content: &[u8], room: &mut [u8]) -> Result<usize, Failure> {
        let sealed = content.len() + 1 + TAG;
        let length = u16::try_from(sealed).map_err(|_| Failure::NoRoom)?.to_be_bytes();
        let head = [DATA, 3, 3, length[0], length[1]];
        let Some((place, body)) = room
            .get_mut(..HEAD + sealed)
            .and_then(|room| room.split_first_chunk_mut::<HEAD>())
        else {
            return Err(Failure::NoRoom);
        };
        *place = head;
        self.outgoing.seal(head, content, kind, body)?;
        Ok(HEAD + sealed)
    }

    /// Decrypts every whole record and hands over its data.
    pub(super) fn open(&mut self, input: &mut [u8], to: &mut dyn FnMut(&[u8])) -> Result<Opened, Failure> {
        let mut opened = Opened::default();
        while let Some((head, rest)) = input[opened.used..].split_first_chunk_mut::<HEAD>() {
            let [kind, _, _, high, low] = *head;
            if kind != DATA {
                return Err(Violation::Unexpected("a record that is not encrypted").into());
            }
            let length = usize::from(u16::from_be_bytes([high, low]));
            if length > SEALED {
                return Err(Violation::TooLong(length).into());
            }
            let Some(sealed) = rest.get_mut(..length) else {
                break;
            };
            let plain = self.incoming.open(*head, sealed).map_err(|Refused| Violation::Forged)?;
            opened.used += HEAD + length;
            let (kind, content) = inner(plain)?;
            match kind {
                DATA => to(content),
                HANDSHAKE => self.handshake(content)?,
                ALERT => {
                    opened.ended = true;
                    return alert(content).map(|()| opened);
                }
                _ => return Err(Violation::Unexpected("a record of an unknown kind").into()),
            }
        }
        Ok(opened)
    }

    /// The only message of a handshake that may come: the peer changes its key, and may ask us to do so.
    fn handshake(&mut self, message: &[u8]) -> Result<(), Failure> {
        let &[KEY_UPDATE, 0, 0, 1, asked @ (0 | 1)] = message else {
            return Err(Violation::Unexpected("a message of a handshake").into());
        };
        self.incoming = Cipher::new(self.renew.incoming()?)?;
        self.owed |= asked == 1;
        Ok(())
    }
}

/// Kind and content of what was encrypted: zeros may come after them.
fn inner(plain: &[u8]) -> Result<(u8, &[u8]), Violation> {
    if plain.len() > CONTENT + 1 {
        return Err(Violation::TooLong(plain.len()));
    }
    let end = plain.iter().rposition(|byte| *byte != 0);
    let end = end.ok_or(Violation::Unexpected("a record without a kind"))?;
    Ok((plain[end], &plain[..end]))
}

/// The peer's goodbye is no failure.
fn alert(content: &[u8]) -> Result<(), Failure> {
    match *content {
        [_, CLOSE_NOTIFY] => Ok(()),
        [_, alert] => Err(Violation::Alert(AlertDescription::from(alert)).into()),
        _ => Err(Violation::Unexpected("an alert that is none").into()),
    }
}

/// Keys for tests and fuzzing, which are the same every time.
#[derive(Default)]
struct Known {
    changes: u8,
}

impl Known {
    fn keys(change: u8) -> Keys {
        let key = AeadKey::from([change; 32]);
        let iv = Iv::new([change; 12]);
        (0, ConnectionTrafficSecrets::Aes256Gcm { key, iv })
    }

    fn next(&mut self) -> Keys {
        self.changes = self.changes.wrapping_add(1);
        Self::keys(self.changes)
    }
}

impl Renew for Known {
    fn outgoing(&mut self) -> Result<Keys, rustls::Error> {
        Ok(self.next())
    }
    fn incoming(&mut self) -> Result<Keys, rustls::Error> {
        Ok(self.next())
    }
}

/// For fuzzing: records of a peer that has the keys, of the kinds and contents that `bytes` say, and the last ones as
/// they are. How much data came out, which is at most what went in.
#[doc(hidden)]
pub fn fuzz_records(bytes: &[u8]) -> usize {
    let (Ok(mut cipher), Ok(mut records)) = (
        Cipher::new(Known::keys(0)),
        Records::new(Known::keys(0), Known::keys(0), Box::new(Known::default())),
    ) else {
        return 0;
    };
    let (mut stream, mut rest) = (Vec::new(), bytes);
    while let [kind, length, more @ ..] = rest {
        let Some((content, more)) = more.split_at_checked(usize::from(*length)) else {
            break;
        };
        rest = more;
        let mut sealed = vec![0; content.len() + 1 + TAG];
        let head = [DATA, 3, 3, 0, sealed.len() as u8];
        if sealed.len() > 255 || cipher.seal(head, content, *kind, &mut sealed).is_err() {
            break;
        }
        stream.extend_from_slice(&head);
        stream.extend_from_slice(&sealed);
        if let (HANDSHAKE, [KEY_UPDATE, ..]) = (*kind, content) {
            let Ok(next) = Cipher::new(Known::keys(1)) else { break };
            cipher = next;
        }
    }
    stream.extend_from_slice(rest);
    let (mut taken, mut data) = (0, 0);
    while let Ok(opened) = records.open(&mut stream[taken..], &mut |content| data += content.len()) {
        taken += opened.used;
        if opened.used == 0 || opened.ended {
            break;
        }
    }
    assert!(data <= bytes.len(), "more came out than went in");
    data
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
