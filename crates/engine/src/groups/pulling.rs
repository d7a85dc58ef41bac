// SPDX-License-Identifier: Apache-2.0
//! Steps together whose blocks are so long that members may copy them straight out of each other's memory, once, where
//! cells take two copies, side by side. Which is quicker depends on what caches the cores share and on how many members
//! a core has, so one of them, the *decider* (the root of a broadcast, else the first), tries it out
//! ([`isthmus_protocol::ways`]) and tells the others, in a short round of offers; in another one they say what became
//! of it.
//!
//! ```text
//!  offers      who gives                           cell: bytes of a block (u64, native)
//!                                                        what the decider wants (u64): 1 copy from each other,
//!                                                                                      2 say when it is over
//!                                                        the transport's offer, or nothing: data in pieces
//!  outcomes    everybody, when it has its blocks   cell: one byte, 1 if it could not copy them
//! ```
//! When the outcomes are known the memory is its owner's again; of a broadcast only the root waits for them. Not every
//! system lets processes copy from each other, nor from every kind of memory: where one could not, the step goes
//! through cells after all. The numbers of the long rounds for that were taken when the step began. If nobody needs
//! them, all leave them.

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_protocol::ways::{Delivery, Turn};
use isthmus_schedule::Operation as What;
use isthmus_transport::meeting::{CellSize, Meeting, OFFER, Round, Slab};

use crate::EngineError;
use crate::base::binding::{BoundBuffer, Side, Sides};
use crate::groups::cell_collective::{no_memory, wrong_length};
use crate::groups::known::{self, Known, Lesson};
use crate::groups::{CellCollective, Phase, Pulling};

/// Bytes before the transport's offer.
const WORDS: usize = 2 * size_of::<u64>();
/// What the decider wants.
const COPY: u64 = 1;
const TELL: u64 = 2;

/// Bytes that a member copies before it looks at anything else. (A look at which others get the core in between costs
/// 16 members on two cores as much as a block of 16 KiB.)
const AT_ONCE: u64 = 1 << 20;

/// Members among which, and all blocks for one of them, in bytes, up to which cells are worth a try in an alltoall: a
/// piece for each of many members is short, and long blocks leave the caches. (Through cells / copied, 4 members, us:
/// cores that share a cache, 64 KiB 38 / 56, 1 MiB 1140 / 1240; others, 64 KiB 170 / 59, 1 MiB 3300 / 870; 8 members,
/// 64 KiB: 180 / 250, and 760 / 260.)
const FEW: u32 = 8;
const CELLS: u64 = 1 << 20;

/// What the decider wants in a step whose blocks have so many bytes and go through so many rounds of cells; and what it
/// is timed for.
pub(crate) fn turn(
    known: &mut Known,
    what: What,
    members: u32,
    (block, pieces): (u64, u64),
    sides: &Sides,
    blocking: bool,
) -> (Turn, Option<Lesson>) {
    let untimed = |way| (Turn { way, timed: false }, None);
    let all = block.saturating_mul(u64::from(members));
    match what {
        _ if is_in_place(&sides.give, &sides.take) => untimed(Delivery::Stream),
        What::Alltoall if members > FEW || all > CELLS => untimed(Delivery::Pull),
        What::Bcast if blocking => known.way_in_bursts(block, known::burst(pieces)),
        // Its root waits for nobody while the program computes.
        What::Bcast => known.usual_way(block),
        _ => known.way(block),
    }
}

/// Whether what a member takes comes where something is that it gives: then nobody can copy from it.
fn is_in_place(give: &Option<Side>, take: &Option<Side>) -> bool {
    let (Some((give, _)), Some((take, _))) = (give, take) else {
        return false;
    };
    let span = |buffer: &BoundBuffer| {
        let memory = buffer.readable(0, buffer.length())?;
        Some(memory.address()..memory.address() + buffer.length() as usize)
    };
    // What lies in pieces is not offered.
    span(give)
        .zip(span(take))
        .is_some_and(|(give, take)| give.start < take.end && take.start < give.end)
}

/// Who decides how blocks go and how results are stored: the root, which all wait for or which has the result, else the
/// first.
pub(crate) fn decider(what: What, root: u32) -> u32 {
    match what {
        What::Bcast | What::Scatter | What::Gather | What::Reduce => root,
        _ => 0,
    }
}

impl Pulling {
    /// `first`: number of the first short round; `turn`: what the decider, if that is this member, wants.
    pub(crate) fn new(what: What, slab: &Slab, root: u32, first: u64, turn: Option<Turn>) -> Self {
        let Slab { members, me, .. } = *slab;
        // Everybody begins with another one.
        let missing = match what {
            What::Bcast if me == root => Vec::new(),
            What::Bcast => vec![root],
            _ => (0..members).rev().map(|step| (me + step) % members).collect(),
        };
        Self {
            first,
            decider: decider(what, root),
            turn,
            offered: what == What::Bcast && me != root,
            missing,
            failed: false,
            said: false,
            known: 0,
            others_failed: false,
        }
    }

    fn offers(&self) -> Round {
        Round {
            size: CellSize::Short,
            number: self.first,
        }
    }

    fn outcomes(&self) -> Round {
        Round {
            number: self.first + 1,
            ..self.offers()
        }
    }

    /// Looks at the outcomes of others; true if there were any.
    fn hear(&mut self, meeting: &dyn Meeting, slab: &Slab) -> bool {
        let before = self.known;
        self.known += meeting.have_arrived(slab, self.outcomes(), before..slab.members);
        for member in before..self.known {
            let (outcome, said) = meeting.given(slab, self.outcomes(), member, 1);
            self.others_failed |= said != 1 || outcome.with(0, 1, |failed| failed[0] != 0);
        }
        self.known > before
    }
}

/// The cell in which a member offers: the only giver of a round has the first one.
fn offering(meet: &CellCollective, member: u32) -> u32 {
    if meet.what == What::Bcast { 0 } else { member }
}

fn has_offered(meet: &CellCollective, member: u32, pulling: &Pulling, meeting: &dyn Meeting) -> bool {
    let cell = offering(meet, member);
    meeting.have_arrived(meet.slab(), pulling.offers(), cell..cell + 1) == 1
}

pub(crate) fn can_decide(meet: &mut CellCollective, meeting: &mut dyn Meeting) -> bool {
    let Phase::Deciding(pulling) = &meet.phase else {
        return false;
    };
    if !pulling.offered {
        return meeting.is_free(meet.slab(), pulling.offers());
    }
    match (pulling.turn, pulling.missing.last()) {
        (None, _) => has_offered(meet, pulling.decider, pulling, meeting),
        (
            Some(Turn {
                way: Delivery::Pull, ..
            }),
            Some(&member),
        ) => has_offered(meet, member, pulling, meeting),
        _ if pulling.said => {
            let (round, next) = (pulling.outcomes(), pulling.known);
            meeting.have_arrived(meet.slab(), round, next..next + 1) == 1
        }
        (
            Some(Turn {
                way: Delivery::Stream, ..
            }),
            _,
        ) if !meet.is_through_cells() => meet.can_use_cells(meeting),
        _ => meeting.is_free(meet.slab(), pulling.outcomes()),
    }
}

/// Does what can be done without waiting. What the step is then, and true if anything was done.
pub(crate) fn decide(
    meet: &mut CellCollective,
    mut pulling: Pulling,
    meeting: &mut dyn Meeting,
) -> Result<(Phase, bool), EngineError> {
    let slab = *meet.slab();
    let mut any = false;
    if !pulling.offered && meeting.is_free(&slab, pulling.offers()) {
        offer(meet, &pulling, meeting)?;
        (pulling.offered, any) = (true, true);
    }
    if pulling.turn.is_none() && has_offered(meet, pulling.decider, &pulling, meeting) {
        pulling.turn = Some(wanted(meet, &pulling, meeting));
        any = true;
    }
    let Some(turn) = pulling.turn.filter(|_| pulling.offered) else {
        return Ok((Phase::Deciding(pulling), any));
    };
    if turn.way == Delivery::Stream && !turn.timed {
        meeting.leave(&slab, pulling.offers());
        meeting.leave(&slab, pulling.outcomes());
        return Ok((Phase::Cells, true));
    }
    let done = match turn.way {
        Delivery::Pull => {
            any |= copy_some(meet, &mut pulling, meeting)?;
            pulling.missing.is_empty()
        }
        Delivery::Stream => {
            any |= meet.through_cells(meeting)?;
            meet.is_through_cells()
        }
    };
    if done && !pulling.said && meeting.is_free(&slab, pulling.outcomes()) {
        tell(&slab, &pulling, meeting)?;
        (pulling.said, any) = (true, true);
    }
    if !pulling.said {
        return Ok((Phase::Deciding(pulling), any));
    }
    let waits = slab.me == pulling.decider || (turn.way == Delivery::Pull && meet.what != What::Bcast);
    if !waits {
        pulling.known = slab.members;
        pulling.others_failed = pulling.failed;
    }
    any |= pulling.hear(meeting, &slab);
    if pulling.known < slab.members {
        return Ok((Phase::Deciding(pulling), any));
    }
    meeting.leave(&slab, pulling.outcomes());
    meet.failed = pulling.others_failed;
    let phase = match turn.way {
        // Over.
        Delivery::Stream => Phase::Cells,
        Delivery::Pull if pulling.others_failed => Phase::Cells,
        Delivery::Pull => Phase::Leaving(0),
    };
    Ok((phase, true))
}

fn offer(meet: &CellCollective, pulling: &Pulling, meeting: &mut dyn Meeting) -> Result<(), EngineError> {
    let (slab, cell, round) = (*meet.slab(), offering(meet, meet.slab().me), pulling.offers());
    let offer = given_whole(meet).map(|(memory, bytes)| meeting.offer(memory, bytes));
    let bytes = WORDS + if offer.is_some() { OFFER } else { 0 };
    let mut to = meeting.give(&slab, round, cell, bytes).map_err(no_memory)?;
    let wanted = pulling.turn.map_or(0, |turn| {
        u64::from(turn.way == Delivery::Pull) * COPY + u64::from(turn.timed) * TELL
    });
    to.write(0, &meet.block.to_ne_bytes());
    to.write(8, &wanted.to_ne_bytes());
    if let Some(offer) = offer {
        to.write(WORDS as isize, &offer);
    }
    meeting.arrive(&slab, round, cell..cell + 1);
    Ok(())
}

/// What a member has offered: bytes of a block, what it wants as decider, and the offer.
fn offered(
    meet: &CellCollective,
    member: u32,
    pulling: &Pulling,
    meeting: &dyn Meeting,
) -> (u64, u64, Option<[u8; OFFER]>) {
    let most = WORDS + OFFER;
    let (memory, said) = meeting.given(meet.slab(), pulling.offers(), offering(meet, member), most);
    let word = |at| {
        let mut bytes = [0; 8];
        memory.read(at, &mut bytes);
        u64::from_ne_bytes(bytes)
    };
    let offer = (said == most as u64).then(|| {
        let mut bytes = [0; OFFER];
        memory.read(WORDS as isize, &mut bytes);
        bytes
    });
    (word(0), word(8), offer)
}

fn wanted(meet: &CellCollective, pulling: &Pulling, meeting: &dyn Meeting) -> Turn {
    let (_, wanted, _) = offered(meet, pulling.decider, pulling, meeting);
    Turn {
        way: if wanted & COPY != 0 {
            Delivery::Pull
        } else {
            Delivery::Stream
        },
        timed: wanted & TELL != 0,
    }
}

/// This member has its blocks, or could not copy them.
fn tell(slab: &Slab, pulling: &Pulling, meeting: &mut dyn Meeting) -> Result<(), EngineError> {
    let (round, me) = (pulling.outcomes(), slab.me);
    let mut cell = meeting.give(slab, round, me, 1).map_err(no_memory)?;
    cell.write(0, &[u8::from(pulling.failed)]);
    meeting.leave(slab, pulling.offers());
    meeting.arrive(slab, round, me..me + 1);
    Ok(())
}

/// Copies the next blocks, if they have been offered. True if there were any.
fn copy_some(meet: &CellCollective, pulling: &mut Pulling, meeting: &mut dyn Meeting) -> Result<bool, EngineError> {
    let mut copied = 0;
    while let Some(&member) = pulling.missing.last().filter(|_| copied < AT_ONCE) {
        if !has_offered(meet, member, pulling, meeting) {
            break;
        }
        pulling.missing.pop();
        if !copy_from(meet, member, pulling, meeting)? {
            pulling.failed = true;
            pulling.missing.clear();
        }
        copied += meet.block;
    }
    Ok(copied > 0)
}

/// `Ok(false)`: its block cannot be copied. Members whose blocks differ in length do not go on together: they may not
/// even take as many rounds.
fn copy_from(
    meet: &CellCollective,
    member: u32,
    pulling: &Pulling,
    meeting: &mut dyn Meeting,
) -> Result<bool, EngineError> {
    let me = meet.slab().me;
    let (length, _, offer) = offered(meet, member, pulling, meeting);
    if length != meet.block {
        return Err(wrong_length(meet.rank_of(member), length, meet.block));
    }
    let Some(mut into) = taken_whole(meet, member) else {
        return Ok(false);
    };
    let before = if meet.what == What::Bcast { 0 } else { u64::from(me) };
    if member == me {
        let own = given_whole(meet);
        let copied = own.map(|(memory, _)| into.copy(0, &memory, (before * length) as isize, length as usize));
        return Ok(copied.is_some());
    }
    let peer = meet.members.peer(meet.rank_of(member));
    Ok(offer.is_some_and(|offer| meeting.fetch(peer, &offer, before * length, into, length)))
}

/// Everything that this member gives, if it lies in one piece and stays there.
fn given_whole(meet: &CellCollective) -> Option<(ReadMemory, u64)> {
    if is_in_place(&meet.give, &meet.take) {
        return None;
    }
    let (buffer, at) = meet.give.as_ref()?;
    let blocks = if meet.what == What::Bcast {
        1
    } else {
        meet.slab().members
    };
    let bytes = meet.block * u64::from(blocks);
    Some((buffer.readable(*at, bytes)?, bytes))
}

/// Where the block of a member belongs, if it lies in one piece.
fn taken_whole(meet: &CellCollective, member: u32) -> Option<WriteMemory> {
    let (buffer, at) = meet.take.as_ref()?;
    let before = if meet.what == What::Bcast { 0 } else { u64::from(member) };
    buffer.whole(at + before * meet.block, meet.block)
}

/// Leaves long rounds that nobody needed, from round `done` of them on. How many are left now.
pub(crate) fn leave_rest(meet: &CellCollective, meeting: &mut dyn Meeting, done: u64) -> u64 {
    done + meeting.leave_some(meet.slab(), meet.long_round(done), meet.pieces() - done)
}
