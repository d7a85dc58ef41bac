// SPDX-License-Identifier: Apache-2.0
//! A command of ours that runs at another site for whoever typed it here: `isthmus relay`, over standard input and
//! output of ssh.
//!
//! ```text
//!  here                                       there (`isthmus relay`)
//!    | Begin (words, variables)      --->       |    starts itself with these words
//!    |    <---  Output | Errors ...             |    what the command prints
//!    |    <---  Ended                           |    then both close
//! ```
//! When the connection closes before `Ended` the command is ended too. Messages have the form of [`crate::codec`].
//!
//! | here to there | kind | fields |
//! |---|---|---|
//! | `Begin` | 1 | directory text (empty: the home directory), \[word text\], \[name text, value text\] |
//!
//! | there to here | kind | fields |
//! |---|---|---|
//! | `Output` | 65 | bytes |
//! | `Errors` | 66 | bytes |
//! | `Ended` | 67 | status u8 |

use crate::codec::{DecodeError, Reader, Writer};

/// Longest `Begin`, bytes, its length included.
pub const MAX_BEGIN: usize = 1 << 20;
/// Most bytes of an `Output` or `Errors`.
pub const MAX_PIECE: usize = 64 << 10;

/// What is to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// Where; a relative path is below the home directory.
    pub directory: String,
    /// The words after the command's own name.
    pub words: Vec<String>,
    /// Variables that it gets beside those of its site.
    pub environment: Vec<(String, String)>,
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// On its standard output.
    Output(Vec<u8>),
    /// On its standard error.
    Errors(Vec<u8>),
    /// It has ended, with this exit status.
    Ended(u8),
}

impl Begin {
    /// As it goes on the wire, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(1);
        w.text(&self.directory).list(&self.words, |w, word| {
            w.text(word);
        });
        w.list(&self.environment, |w, (name, value)| {
            w.text(name).text(value);
        });
        w.into_framed()
    }

    /// Reads a body (without length prefix).
    ///
    /// # Errors
    /// It is none.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        expect(r.u8("kind")?, 1)?;
        let begin = Self {
            directory: r.text("directory")?,
            words: r.list("words", |r| r.text("word"))?,
            environment: r.list("environment", |r| Ok((r.text("name")?, r.text("value")?)))?,
        };
        r.end()?;
        Ok(begin)
    }
}

impl Said {
    /// As it goes on the wire, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(match self {
            Self::Output(_) => 65,
            Self::Errors(_) => 66,
            Self::Ended(_) => 67,
        });
        match self {
            Self::Output(bytes) | Self::Errors(bytes) => w.bytes(bytes),
            Self::Ended(status) => w.u8(*status),
        };
        w.into_framed()
    }

    /// Reads a body (without length prefix).
    ///
    /// # Errors
    /// It is none.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let said = match r.u8("kind")? {
            65 => Self::Output(r.bytes("output")?),
            66 => Self::Errors(r.bytes("errors")?),
            67 => Self::Ended(r.u8("status")?),
            other => expect(other, 67).map(|()| Self::Ended(0))?,
        };
        r.end()?;
        Ok(said)
    }
}

fn expect(kind: u8, wanted: u8) -> Result<(), DecodeError> {
    match kind == wanted {
        true => Ok(()),
        false => Err(DecodeError::Invalid {
            field: "kind",
            value: u64::from(kind),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire() {
        let begin = Begin {
            directory: "isthmus-jobs/1".into(),
            words: vec!["ps".into(), "--json".into()],
            environment: vec![("ISTHMUS_AWAY".into(), "9".into())],
        };
        assert_eq!(Begin::decode(&begin.encode()[4..]), Ok(begin));
        for said in [Said::Output(b"a".to_vec()), Said::Errors(Vec::new()), Said::Ended(3)] {
            assert_eq!(Said::decode(&said.encode()[4..]), Ok(said));
        }
        assert!(Begin::decode(&[65]).is_err() && Said::decode(&[1]).is_err() && Said::decode(&[67, 0, 0]).is_err());
    }
}
