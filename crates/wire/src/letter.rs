// SPDX-License-Identifier: Apache-2.0
//! What launchers say to each other when members of a communicator agree that are of several
//! ([`agreeing`](crate::agreeing)). Launchers do not reach each other: a process of one takes the letter to a process
//! of the other, which gives it to its launcher and brings back what became of it.
//!
//! ```text
//!  launcher        process                       process        launcher
//!     | <--- Carry    |                             |               |
//!     | Errand  --->  | letter  ------------------> | Brought --->  |
//!     | <--- Carry    | <-------------- what of it  | <---   Back   |
//! ```
//! A letter is
//!
//! ```text
//!  which   scope 16 bytes, context u32, round u64
//!  what    u8, as in an agreement
//!  worlds, members: as in an agreement, in the order of whoever writes
//!  owns    list of 16 bytes: those of the worlds that are of the launcher that writes
//!  says    1: waits for the other's share      2: share     3: result, an answer     4: result, a refusal: why text
//! ```
//! A share is `flag` u32, `contexts` 3 u32, `first` u32 (place of the first own member that lives), `lost` and `known`
//! (places). An errand is a letter and places of those to whom it may go. What became of a letter is u8 and a text,
//! which is empty unless it is a reason:
//!
//! ```text
//!  1: delivered   2: nobody   3: refused: why   4: over with an answer, which follows   5: over: why there is none
//! ```

use crate::agreeing::{
    Agreed, Members, Places, What, Which, read_contexts, read_members, read_places, read_what, read_which, read_worlds,
    write_contexts, write_members, write_places, write_which,
};
use crate::codec::{DecodeError, Reader, Writer};
use crate::reason::{cut, read_reason};

/// Longest letter, bytes: it is part of a question, and of an answer together with an errand's places.
pub const MAX_LETTER: usize = 1 << 19;

/// What one launcher says to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// About which agreement.
    pub which: Which,
    /// What is agreed on.
    pub what: What,
    /// Names of worlds.
    pub worlds: Vec<[u8; 16]>,
    /// All members.
    pub members: Vec<Members>,
    /// Those of the worlds that are of the launcher that writes.
    pub owns: Vec<[u8; 16]>,
    /// What is said.
    pub says: Says,
}

/// What a letter says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// All of mine that live have asked, and yours are waited for.
    Waiting,
    /// What mine have said.
    Share(Share),
    /// What all are told: an answer, or why there is none.
    Result(Result<Agreed, String>),
}

/// What the members of one launcher have said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Their numbers, combined.
    pub flag: u32,
    /// Contexts of the first that lives.
    pub contexts: [u32; 3],
    /// The place of that one.
    pub first: u32,
    /// Those of them that are lost.
    pub lost: Vec<Places>,
    /// Members whose loss all of them that live have acknowledged.
    pub known: Vec<Places>,
}

/// What became of a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Back {
    /// The other launcher has it, and has done what it asks for.
    Delivered,
    /// Nobody to whom it may go can be reached.
    Nobody,
    /// The other launcher says no.
    Refused(String),
    /// The agreement is over at the other launcher, with this for all.
    Over(Result<Agreed, String>),
}

/// A letter that a process is to carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// The letter.
    pub letter: Letter,
    /// Places of members to whom it may go.
    pub to: Vec<Places>,
}

impl Letter {
    /// As processes give it to each other.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(2);
        self.write(&mut w);
        w.into_body()
    }

    /// The same, read.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        match r.u8("letter")? {
            2 => {}
            other => return Err(invalid("letter", other.into())),
        }
        let letter = Self::read(&mut r)?;
        r.end()?;
        Ok(letter)
    }

    /// Whether it has no more bytes than it may have.
    pub fn fits(&self) -> bool {
        self.encode().len() <= MAX_LETTER
    }

    pub(crate) fn write(&self, w: &mut Writer) {
        write_which(w, self.which);
        w.u8(self.what as u8);
        w.list(&self.worlds, |w, world| {
            w.fixed(world);
        });
        write_members(w, &self.members);
        w.list(&self.owns, |w, world| {
            w.fixed(world);
        });
        match &self.says {
            Says::Waiting => {
                w.u8(1);
            }
            Says::Share(share) => share.write(w.u8(2)),
            Says::Result(Ok(agreed)) => agreed.write(w.u8(3)),
            Says::Result(Err(why)) => {
                w.u8(4).text(cut(why));
            }
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if r.left() > 2 * MAX_LETTER {
            return Err(invalid("letter", r.left() as u64));
        }
        let which = read_which(r)?;
        let what = read_what(r)?;
        let worlds = read_worlds(r)?;
        let members = read_members(r, worlds.len())?;
        let owns = read_worlds(r)?;
        let says = match r.u8("what a letter says")? {
            1 => Says::Waiting,
            2 => Says::Share(Share::read(r)?),
            3 => Says::Result(Ok(Agreed::read(r)?)),
            4 => Says::Result(Err(read_reason(r)?)),
            other => return Err(invalid("what a letter says", other.into())),
        };
        Ok(Self {
            which,
            what,
            worlds,
            members,
            owns,
            says,
        })
    }
}

impl Share {
    fn write(&self, w: &mut Writer) {
        w.u32(self.flag);
        write_contexts(w, self.contexts);
        w.u32(self.first);
        write_places(w, &self.lost);
        write_places(w, &self.known);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            flag: r.u32("flag")?,
            contexts: read_contexts(r)?,
            first: r.u32("first member that lives")?,
            lost: read_places(r, "lost members")?,
            known: read_places(r, "members whose loss is known")?,
        })
    }
}

impl Back {
    /// As processes tell it each other.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(1);
        self.write(&mut w);
        w.into_body()
    }

    /// The same, read.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        match r.u8("what became of a letter")? {
            1 => {}
            other => return Err(invalid("what became of a letter", other.into())),
        }
        let back = Self::read(&mut r)?;
        r.end()?;
        Ok(back)
    }

    pub(crate) fn write(&self, w: &mut Writer) {
        match self {
            Self::Delivered => w.u8(1).text(""),
            Self::Nobody => w.u8(2).text(""),
            Self::Refused(why) => w.u8(3).text(cut(why)),
            Self::Over(Ok(agreed)) => {
                agreed.write(w.u8(4).text(""));
                w
            }
            Self::Over(Err(why)) => w.u8(5).text(cut(why)),
        };
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = r.u8("what became of a letter")?;
        let why = read_reason(r)?;
        match code {
            1 => Ok(Self::Delivered),
            2 => Ok(Self::Nobody),
            3 => Ok(Self::Refused(why)),
            4 => Ok(Self::Over(Ok(Agreed::read(r)?))),
            5 => Ok(Self::Over(Err(why))),
            _ => Err(invalid("what became of a letter", code.into())),
        }
    }
}

impl Errand {
    pub(crate) fn write(&self, w: &mut Writer) {
        self.letter.write(w);
        write_places(w, &self.to);
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            letter: Letter::read(r)?,
            to: read_places(r, "to whom a letter goes")?,
        })
    }
}

fn invalid(field: &'static str, value: u64) -> DecodeError {
    DecodeError::Invalid { field, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Message;
    use crate::question::{Answer, Ask, Question, Said};

    fn sample(says: Says) -> Letter {
        Letter {
            which: Which {
                scope: [7; 16],
                context: 18,
                round: 3,
            },
            what: What::Members,
            worlds: vec![[7; 16], [8; 16]],
            members: vec![
                Members {
                    world: 0,
                    first: 0,
                    count: 4,
                },
                Members {
                    world: 1,
                    first: 2,
                    count: 1,
                },
            ],
            owns: vec![[8; 16]],
            says,
        }
    }

    fn share() -> Says {
        Says::Share(Share {
            flag: 5,
            contexts: [20, 0, 0],
            first: 4,
            lost: vec![(0, 1)],
            known: vec![(0, 1), (3, 1)],
        })
    }

    fn agreed() -> Agreed {
        Agreed {
            flag: 5,
            contexts: [20, 22, 24],
            news: true,
            lost: vec![(0, 1), (2, 2)],
        }
    }

    fn all() -> Vec<Letter> {
        [
            Says::Waiting,
            share(),
            Says::Result(Ok(agreed())),
            Says::Result(Err("no".into())),
        ]
        .map(sample)
        .into()
    }

    #[test]
    fn letters_survive_the_wire_and_their_truncations_do_not() {
        for letter in all() {
            assert!(letter.fits());
            let whole = letter.encode();
            assert_eq!(Letter::decode(&whole), Ok(letter.clone()));
            for end in 0..whole.len() {
                assert!(Letter::decode(&whole[..end]).is_err(), "{end} bytes were accepted");
            }
            let ask = Ask::Brought(Box::new(letter.clone()));
            let back = Said::Back(Back::Refused("no".into()));
            let said = Said::Errand(Box::new(Errand {
                letter: letter.clone(),
                to: vec![(4, 1)],
            }));
            let which = letter.which;
            let carry = |back| Ask::Carry { which, back };
            for message in [
                Message::Question(Question { number: 9, ask }),
                Message::Question(Question {
                    number: 9,
                    ask: carry(None),
                }),
                Message::Question(Question {
                    number: 9,
                    ask: carry(Some(Back::Nobody)),
                }),
                Message::Answer(Answer {
                    number: 9,
                    said: Ok(said),
                }),
                Message::Answer(Answer {
                    number: 9,
                    said: Ok(back),
                }),
            ] {
                let whole = message.encode();
                assert_eq!(Message::decode(&whole[4..]), Ok(message));
                for end in 4..whole.len() {
                    assert!(Message::decode(&whole[4..end]).is_err(), "{end} bytes were accepted");
                }
            }
        }
    }

    #[test]
    fn members_worlds_and_places_have_the_bounds_of_an_agreement() {
        let back = |change: &dyn Fn(&mut Letter)| {
            let mut letter = sample(share());
            change(&mut letter);
            Letter::decode(&letter.encode())
        };
        assert!(back(&|_| ()).is_ok());
        assert!(back(&|l| l.worlds.clear()).is_err());
        assert!(back(&|l| l.members.clear()).is_err());
        assert!(back(&|l| l.members[1].world = 2).is_err(), "a world that is not there");
        let lost = |places: Vec<Places>| {
            back(&move |l| {
                if let Says::Share(share) = &mut l.says {
                    share.lost.clone_from(&places);
                }
            })
        };
        assert!(lost(vec![(1, 2), (2, 1)]).is_err(), "twice the same");
        assert!(lost(vec![(0, u32::MAX)]).is_err());
        assert!(back(&|l| l.owns.clear()).is_err(), "whose letter it is");
        let long = vec![b'x'; 2 * MAX_LETTER + 1];
        assert!(Letter::decode(&[&[2][..], &long].concat()).is_err());
    }

    #[test]
    fn what_became_of_a_letter_survives_the_wire_and_its_truncations_do_not() {
        for back in [
            Back::Delivered,
            Back::Nobody,
            Back::Refused("no".into()),
            Back::Over(Ok(agreed())),
            Back::Over(Err("no".into())),
        ] {
            let whole = back.encode();
            assert_eq!(Back::decode(&whole), Ok(back));
            for end in 0..whole.len() {
                assert!(Back::decode(&whole[..end]).is_err(), "{end} bytes were accepted");
            }
        }
        assert!(Back::decode(&[1, 6, 0, 0, 0, 0]).is_err());
    }
}
