// SPDX-License-Identifier: Apache-2.0
//! How the members of a communicator agree by their coordinator, whoever of them fails meanwhile: each asks
//! ([`Ask::Agree`](crate::question::Ask)), and all that live are answered the same when the last of them has asked.
//!
//! ```text
//!  what    1: on a number   2: on a communicator of those that are left
//!  scope   16 bytes: the world of the members, or what they have met as
//!  context u32   round u64: which communicator of these, and its how manieth agreement
//!  flag    u32: all are combined by AND
//!  contexts 3 u32: taken for the new communicator; those of the first member that lives count
//!  worlds  list of 16 bytes: that of who asks first
//!  members list of (world u16, first u32, count u32): in one order at all of them
//!  known   list of (first u32, count u32): places of members whose loss the program has acknowledged
//! ```
//! The answer is `flag`, `contexts`, `news` (u8: a loss that not all have acknowledged), and the places of the lost
//! members as `known`. A place is that of a member in the list of all.

use crate::codec::{DecodeError, Reader, Writer};

/// Most members of a communicator that agree.
pub const MAX_MEMBERS: u32 = 1 << 20;
/// Most worlds that they are of.
pub const MAX_WORLDS: usize = 1024;

/// What is agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A number.
    Number = 1,
    /// A communicator of those that are left.
    Members = 2,
}

/// Which agreement it is: the same at all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Which {
    /// The world of the members, or what they have met as.
    pub scope: [u8; 16],
    /// Number of the communicator's context.
    pub context: u32,
    /// Its how manieth agreement.
    pub round: u64,
}

/// Processes of a world with consecutive ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    /// Index into the worlds.
    pub world: u16,
    /// Rank of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// Places with consecutive numbers: the first, and how many.
pub type Places = (u32, u32);

/// A member asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agree {
    /// What is agreed on.
    pub what: What,
    /// Which agreement.
    pub which: Which,
    /// The member's number.
    pub flag: u32,
    /// Contexts for a new communicator.
    pub contexts: [u32; 3],
    /// Names of worlds, that of the member first.
    pub worlds: Vec<[u8; 16]>,
    /// All members.
    pub members: Vec<Members>,
    /// Those whose loss is acknowledged.
    pub known: Vec<Places>,
}

/// What all that live are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// All numbers combined.
    pub flag: u32,
    /// Contexts of the first member that lives.
    pub contexts: [u32; 3],
    /// A member is lost whose loss not all have acknowledged.
    pub news: bool,
    /// Members that are lost.
    pub lost: Vec<Places>,
}

impl Agree {
    /// How many members there are.
    pub fn count(&self) -> u32 {
        self.members.iter().map(|range| range.count).sum()
    }

    pub(crate) fn write(&self, w: &mut Writer) {
        w.u8(self.what as u8);
        write_which(w, self.which);
        w.u32(self.flag);
        write_contexts(w, self.contexts);
        w.list(&self.worlds, |w, world| {
            w.fixed(world);
        });
        write_members(w, &self.members);
        write_places(w, &self.known);
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let what = read_what(r)?;
        let which = read_which(r)?;
        let (flag, contexts) = (r.u32("flag")?, read_contexts(r)?);
        let worlds = read_worlds(r)?;
        let members = read_members(r, worlds.len())?;
        Ok(Self {
            what,
            which,
            flag,
            contexts,
            worlds,
            members,
            known: read_places(r, "members whose loss is known")?,
        })
    }
}

impl Agreed {
    pub(crate) fn write(&self, w: &mut Writer) {
        w.u32(self.flag);
        write_contexts(w, self.contexts);
        w.u8(self.news.into());
        write_places(w, &self.lost);
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            flag: r.u32("flag")?,
            contexts: read_contexts(r)?,
            news: match r.u8("whether a loss is news")? {
                0 => false,
                1 => true,
                other => return Err(invalid("whether a loss is news", u64::from(other))),
            },
            lost: read_places(r, "lost members")?,
        })
    }
}

/// Places, which rise, in as few pieces as there are.
pub fn pieces(places: impl IntoIterator<Item = u32>) -> Vec<Places> {
    let mut all: Vec<Places> = Vec::new();
    for place in places {
        match all.last_mut() {
            Some((first, count)) if first.wrapping_add(*count) == place => *count += 1,
            _ => all.push((place, 1)),
        }
    }
    all
}

/// All places of some pieces.
pub fn places(pieces: &[Places]) -> impl Iterator<Item = u32> + '_ {
    pieces
        .iter()
        .flat_map(|&(first, count)| first..first.saturating_add(count))
}

pub(crate) fn write_which(w: &mut Writer, which: Which) {
    w.fixed(&which.scope).u32(which.context).u64(which.round);
}

pub(crate) fn read_which(r: &mut Reader<'_>) -> Result<Which, DecodeError> {
    Ok(Which {
        scope: r.fixed("scope")?,
        context: r.u32("context")?,
        round: r.u64("round")?,
    })
}

pub(crate) fn read_what(r: &mut Reader<'_>) -> Result<What, DecodeError> {
    match r.u8("what is agreed on")? {
        1 => Ok(What::Number),
        2 => Ok(What::Members),
        other => Err(invalid("what is agreed on", u64::from(other))),
    }
}

pub(crate) fn read_worlds(r: &mut Reader<'_>) -> Result<Vec<[u8; 16]>, DecodeError> {
    let worlds = r.list("worlds", |r| r.fixed("world"))?;
    match (1..=MAX_WORLDS).contains(&worlds.len()) {
        true => Ok(worlds),
        false => Err(invalid("worlds", worlds.len() as u64)),
    }
}

pub(crate) fn write_members(w: &mut Writer, members: &[Members]) {
    w.list(members, |w, range| {
        w.u16(range.world).u32(range.first).u32(range.count);
    });
}

/// Of so many worlds.
pub(crate) fn read_members(r: &mut Reader<'_>, worlds: usize) -> Result<Vec<Members>, DecodeError> {
    let mut total = 0;
    let members = r.list("members", |r| {
        let range = Members {
            world: r.u16("world of members")?,
            first: r.u32("first member")?,
            count: r.u32("members")?,
        };
        let end = u64::from(range.first) + u64::from(range.count);
        total += u64::from(range.count);
        let is_right = range.count > 0 && usize::from(range.world) < worlds && end <= u64::from(u32::MAX);
        match is_right && total <= u64::from(MAX_MEMBERS) {
            true => Ok(range),
            false => Err(invalid("members", total)),
        }
    })?;
    match total {
        0 => Err(invalid("members", 0)),
        _ => Ok(members),
    }
}

pub(crate) fn write_contexts(w: &mut Writer, contexts: [u32; 3]) {
    contexts.into_iter().for_each(|context| {
        w.u32(context);
    });
}

pub(crate) fn read_contexts(r: &mut Reader<'_>) -> Result<[u32; 3], DecodeError> {
    Ok([r.u32("context")?, r.u32("context")?, r.u32("context")?])
}

pub(crate) fn write_places(w: &mut Writer, places: &[Places]) {
    w.list(places, |w, (first, count)| {
        w.u32(*first).u32(*count);
    });
}

/// They rise, and none is there twice.
pub(crate) fn read_places(r: &mut Reader<'_>, field: &'static str) -> Result<Vec<Places>, DecodeError> {
    let mut end = 0;
    r.list(field, |r| {
        let (first, count) = (r.u32(field)?, r.u32(field)?);
        match first >= end && count > 0 && u64::from(first) + u64::from(count) <= u64::from(MAX_MEMBERS) {
            true => end = first + count,
            false => return Err(invalid(field, u64::from(first))),
        }
        Ok((first, count))
    })
}

fn invalid(field: &'static str, value: u64) -> DecodeError {
    DecodeError::Invalid { field, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Message;
    use crate::question::{Answer, Ask, Question, Said};

    fn agree() -> Agree {
        Agree {
            what: What::Members,
            which: Which {
                scope: [7; 16],
                context: 18,
                round: 3,
            },
            flag: 0xffff_fff0,
            contexts: [20, 0, 0],
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
            known: vec![(1, 2), (4, 1)],
        }
    }

    fn back(agree: Agree) -> Result<Message, DecodeError> {
        let ask = Ask::Agree(Box::new(agree));
        Message::decode(&Message::Question(Question { number: 1, ask }).encode()[4..])
    }

    #[test]
    fn they_survive_the_wire_and_their_truncations_do_not() {
        let agreed = Agreed {
            flag: 5,
            contexts: [20, 22, 24],
            news: true,
            lost: vec![(0, 1), (2, 2)],
        };
        let ask = Ask::Agree(Box::new(agree()));
        for message in [
            Message::Question(Question { number: 9, ask }),
            Message::Answer(Answer {
                number: 9,
                said: Ok(Said::Agreed(Box::new(agreed))),
            }),
        ] {
            let whole = message.encode();
            assert_eq!(Message::decode(&whole[4..]), Ok(message));
            for end in 4..whole.len() {
                assert!(Message::decode(&whole[4..end]).is_err(), "{end} bytes were accepted");
            }
        }
        assert_eq!(agree().count(), 5);
    }

    #[test]
    fn members_and_places_have_bounds() {
        assert!(back(agree()).is_ok());
        let of = |change: &dyn Fn(&mut Agree)| {
            let mut agree = agree();
            change(&mut agree);
            back(agree)
        };
        assert!(of(&|a| a.worlds.clear()).is_err());
        assert!(of(&|a| a.worlds = vec![[0; 16]; MAX_WORLDS + 1]).is_err());
        assert!(of(&|a| a.members.clear()).is_err());
        assert!(of(&|a| a.members[1].world = 2).is_err(), "a world that is not there");
        assert!(of(&|a| a.members[0].count = 0).is_err());
        assert!(of(&|a| a.members[0].count = MAX_MEMBERS).is_err(), "too many");
        assert!(of(&|a| a.members[0].first = u32::MAX).is_err());
        assert!(of(&|a| a.known = vec![(1, 2), (2, 1)]).is_err(), "twice the same");
        assert!(of(&|a| a.known = vec![(0, u32::MAX)]).is_err());
        assert!(of(&|a| a.known = vec![(0, MAX_MEMBERS)]).is_ok());
    }

    #[test]
    fn places_are_told_in_pieces() {
        let all = [0, 1, 2, 5, 7, 8];
        assert_eq!(pieces(all), [(0, 3), (5, 1), (7, 2)]);
        assert!(places(&pieces(all)).eq(all));
    }
}
