// SPDX-License-Identifier: Apache-2.0
//! A name that was published for all jobs of a user, as it stands in a file of the directory of names.
//!
//! The file is `kind: u8` (1), `name: text`, `port: text`, `owner: text`, `job: text`, `since: u64` (seconds since
//! 1970), as in [`crate::codec`], without a length. `owner` is the file name of the lock that is held as long as the
//! name is good.

use crate::codec::{DecodeError, Reader, Writer};
use crate::question::{MAX_NAME, MAX_PORT};
use crate::reason::read_up_to;

/// Longest file, bytes.
pub const MAX_FILE: usize = MAX_NAME + MAX_PORT + 1024;
/// Longest name of an owner or a job, bytes.
const MAX_OWNER: usize = 256;

/// A published name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The name.
    pub name: String,
    /// The port that it stands for.
    pub port: String,
    /// File name of the owner's lock: hexadecimal digits.
    pub owner: String,
    /// For people: whose it is.
    pub job: String,
    /// Since when, seconds since 1970.
    pub since: u64,
}

impl Published {
    /// As it stands in its file.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(1);
        w.text(&self.name).text(&self.port).text(&self.owner).text(&self.job);
        w.u64(self.since);
        w.into_body()
    }

    /// Reads a file.
    pub fn decode(file: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(file);
        match r.u8("kind")? {
            1 => {}
            other => {
                return Err(DecodeError::Invalid {
                    field: "kind",
                    value: u64::from(other),
                });
            }
        }
        let published = Self {
            name: read_up_to(&mut r, "name", MAX_NAME)?,
            port: read_up_to(&mut r, "port", MAX_PORT)?,
            owner: read_up_to(&mut r, "owner", MAX_OWNER)?,
            job: read_up_to(&mut r, "job", MAX_OWNER)?,
            since: r.u64("since")?,
        };
        r.end()?;
        // It is the name of a file in that directory, and of nothing elsewhere.
        match !published.owner.is_empty() && published.owner.bytes().all(|b| b.is_ascii_hexdigit()) {
            true => Ok(published),
            false => Err(DecodeError::NotText { field: "owner" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_and_an_owner_elsewhere_does_not() {
        let published = Published {
            name: "ocean\n".into(),
            port: "p".repeat(MAX_PORT),
            owner: "0af9".into(),
            job: "isthmus-1".into(),
            since: 7,
        };
        let file = published.encode();
        assert!(file.len() <= MAX_FILE);
        assert_eq!(Published::decode(&file), Ok(published.clone()));
        for end in 0..file.len() {
            assert!(Published::decode(&file[..end]).is_err());
        }
        for owner in ["", "../../x", "a/b", "."] {
            let owner = owner.to_owned();
            let wrong = Published {
                owner,
                ..published.clone()
            };
            assert!(Published::decode(&wrong.encode()).is_err());
        }
    }
}
