// SPDX-License-Identifier: Apache-2.0
//! Operations of blocks that may differ in length, where groups share memory ([`Rows`]).

use isthmus_transport::meeting::{Lane, Place};

use crate::base::core::Core;
use crate::groups::cut::Cut;
use crate::groups::meet::Meet;
use crate::groups::meeting::Groups;
use crate::groups::rows::{Rows, Slots, Unequal};
use crate::{Binding, Channel, EngineError, Request};

/// Says of a group that shares no memory that it should not be here.
const NOWHERE: EngineError = EngineError::Plan {
    what: "blocks in cells of a group that shares no memory",
};

impl Groups {
    /// Begins one; it is over, or has a request when `pause`, called after each look, has said no.
    pub(crate) fn unequal(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: Unequal,
        binding: &Binding,
        pause: impl FnMut() -> bool,
    ) -> Result<Option<Request>, EngineError> {
        if let Some(error) = core.lost_of(&channel.members) {
            return Err(error);
        }
        let meet = self.begin_unequal(core, channel, step, binding)?;
        self.see_through(core, meet, pause)
    }

    fn begin_unequal(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: Unequal,
        binding: &Binding,
    ) -> Result<Meet, EngineError> {
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
        let rows = Rows::new(step, &place, binding, slots, rounds);
        let meet = Meet::of_rows(step, rows, place, channel.members.clone(), cut, number, first);
        meeting.note(&place, number, meet.claim());
        Ok(meet)
    }
}
