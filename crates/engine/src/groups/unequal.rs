// SPDX-License-Identifier: Apache-2.0
//! Operations of blocks that may differ in length, where groups share memory ([`Rows`]).

use isthmus_transport::meeting::{Claim, Lane, Place};

use crate::base::core::Core;
use crate::groups::cut::Cut;
use crate::groups::data::{Bound, Data, Given, Unequal};
use crate::groups::meet::Meet;
use crate::groups::meeting::Groups;
use crate::groups::rows::{Rows, Slots};
use crate::{Channel, EngineError, Request};

/// Says of a group that shares no memory that it should not be here.
const NOWHERE: EngineError = EngineError::Plan {
    what: "blocks in cells of a group that shares no memory",
};

/// One that has begun.
struct Begun<D> {
    place: Place,
    rows: Rows<D>,
    cut: Cut,
    /// Number of the step, and of its first round in each lane.
    number: u64,
    first: [u64; Lane::COUNT],
}

impl Groups {
    /// Whether it can be done in cells: pieces may be too long for that. (Of what is bound, long blocks go beside.)
    pub(crate) fn fits(&self, core: &mut Core, channel: &Channel, step: Unequal, given: &Given<'_>) -> bool {
        let Given::Pieces(pieces) = given else { return true };
        let Some(meeting) = self.meeting(core) else {
            return false;
        };
        let slots = Slots::of(meeting, step.what, channel.members.count());
        slots.is_some_and(|slots| pieces.longest() <= slots.longest())
    }

    /// Begins one; it is over, or has a request when `pause`, called after each look, has said no. What is over soon
    /// needs no [`Meet`].
    pub(crate) fn unequal(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: Unequal,
        given: Given<'_>,
        pause: impl FnMut() -> bool,
    ) -> Result<Option<Request>, EngineError> {
        match given {
            Given::Bound(binding) => self.in_rows(core, channel, step, Bound::of(binding), pause),
            Given::Pieces(pieces) => self.in_rows(core, channel, step, pieces, pause),
        }
    }

    fn in_rows<D: Data>(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: Unequal,
        data: D,
        mut pause: impl FnMut() -> bool,
    ) -> Result<Option<Request>, EngineError> {
        if let Some(error) = core.lost_of(&channel.members) {
            return Err(error);
        }
        let mut begun = self.begin_unequal(core, channel, step, data)?;
        let (place, mut mistake) = (begun.place, None);
        loop {
            let meeting = self.meeting(core).ok_or(NOWHERE)?;
            if let Err(error) = begun.rows.advance(meeting, &place, &mut mistake) {
                return Err(self.give_up(core, &place, error));
            }
            if begun.rows.is_over() || !pause() {
                break;
            }
        }
        if begun.rows.is_over() && mistake.is_none() {
            return Ok(None);
        }
        let Begun {
            rows,
            cut,
            number,
            first,
            ..
        } = begun;
        let over = rows.is_over();
        let rows = rows.bound(&place);
        let mut meet = Meet::of_rows(step, rows, place, channel.members.clone(), cut, number, first);
        if let Some(mistake) = mistake.take_if(|_| over) {
            return Err(self.after_mistake(core, &meet, mistake));
        }
        meet.mistake = mistake;
        let index = self.go_on_with(core, meet);
        Ok(Some(core.state.requests.name(index)))
    }

    fn begin_unequal<D: Data>(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: Unequal,
        data: D,
    ) -> Result<Begun<D>, EngineError> {
        let place = Place {
            frame: channel.frame.ok_or(NOWHERE)?,
            members: channel.members.count(),
            me: channel.rank,
        };
        let meeting = self.meeting(core).ok_or(NOWHERE)?;
        let slots = Slots::of(meeting, step.what, place.members).ok_or(NOWHERE)?;
        let begun = self.begun(place.frame).ok_or(NOWHERE)?;
        if let Some(error) = begun.broken() {
            return Err(error.clone());
        }
        let cut = Cut::of_rows();
        let (number, first) = begun.begin(&cut);
        let rounds = [Lane::Short, Lane::Middle].map(|lane| first[lane as usize]);
        let claim = Claim {
            what: step.what as u8,
            root: step.root,
            block: 0,
        };
        meeting.note(&place, number, claim);
        Ok(Begun {
            place,
            rows: Rows::new(step, &place, data, slots, rounds),
            cut,
            number,
            first,
        })
    }
}
