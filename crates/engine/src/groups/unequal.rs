// SPDX-License-Identifier: Apache-2.0
//! Operations of blocks that may differ in length, where groups share memory ([`Rows`]).

use isthmus_transport::slabs::{CellSize, Round, Slab};

use crate::groups::data::{Bound, Data, Unequal};
use crate::groups::rows::Rows;
use crate::groups::rows::slots::Slots;
use crate::groups::state::{Groups, messages};
use crate::groups::strays::Called;
use crate::groups::words::claim;
use crate::groups::{CellCollective, Cut, Numbers};
use crate::p2p::Core;
use crate::{Binding, Channel, EngineError, Request};

/// Says of a group that shares no memory that it should not be here.
const NOWHERE: EngineError = EngineError::Plan {
    what: "blocks in cells of a group that shares no memory",
};

/// One that has begun.
struct Begun {
    slab: Slab,
    slots: Slots,
    cut: Cut,
    numbers: Numbers,
}

impl Begun {
    /// The short round and the middle one.
    fn rounds(&self) -> [Round; 2] {
        [CellSize::Short, CellSize::Middle].map(|size| self.numbers.round(size, 0))
    }

    /// The same as a step that goes on.
    fn meet(self, channel: &Channel, step: Unequal, rows: Rows<Bound>) -> CellCollective {
        let members = channel.members.clone();
        let mut meet = CellCollective::of_rows(step, rows, self.slab, members, self.cut, self.numbers);
        meet.context = channel.context;
        meet
    }
}

impl Groups {
    /// Begins one; it is over, or has a request when `pause`, called after each look, has said no. What is over soon
    /// needs no [`CellCollective`].
    pub(crate) fn unequal<D: Data>(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        called: Called,
        step: Unequal,
        slots: Option<Slots>,
        data: D,
        mut pause: impl FnMut() -> bool,
    ) -> Result<Option<Request>, EngineError> {
        if let Some(error) = core.lost_of(&channel.members) {
            return Err(error);
        }
        let begun = self.begin_rows(core, channel, step, slots)?;
        let (slab, mut mistake) = (begun.slab, None);
        let mut rows = Rows::new(step, &slab, data, begun.slots, begun.rounds());
        let Some(slabs) = self.slabs(core) else {
            return Err(NOWHERE);
        };
        let mut goes_on = rows.begin(slabs, &slab, &mut pause);
        while !rows.is_over() && matches!(goes_on, Ok(true)) {
            goes_on = rows
                .advance(slabs, &slab, &mut mistake)
                .map(|_| rows.is_over() || pause());
        }
        if let Err(error) = goes_on {
            return Err(self.give_up(core, &slab, error));
        }
        if rows.is_over() && mistake.is_none() {
            return Ok(None);
        }
        let over = rows.is_over();
        if over {
            messages::keep(self, rows.take_strays(), channel.context, &channel.members, called);
        }
        let mut meet = begun.meet(channel, step, rows.bound(&slab));
        if let Some(mistake) = mistake.take_if(|_| over) {
            return Err(self.after_mistake(core, &meet, mistake));
        }
        meet.mistake = mistake;
        meet.called = Some(called);
        let index = self.go_on_with(core, meet);
        Ok(Some(core.state.requests().name(index)))
    }

    /// One in which this member neither gives nor takes anything: it waits for nobody. It is over, or has a request if
    /// it is still to leave rounds long before. `None`: it does not go in cells at any member; nothing was done.
    pub(crate) fn pass(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: Unequal,
    ) -> Result<Option<Option<Request>>, EngineError> {
        let Some(slots) = self.slots(core, channel, step.what) else {
            return Ok(None);
        };
        let begun = self.begin_rows(core, channel, step, Some(slots))?;
        let slab = begun.slab;
        let Some(slabs) = self.slabs(core) else {
            return Err(NOWHERE);
        };
        let [short, middle] = begun.rounds();
        let left = [slabs.pass(&slab, short), slabs.leave_soon(&slab, middle)];
        if left == [true; 2] {
            return Ok(Some(None));
        }
        let nothing = Bound::of(&Binding::nothing());
        let rows = Rows::passing(step, &slab, nothing, begun.slots, [short, middle], left);
        let meet = begun.meet(channel, step, rows);
        let index = self.go_on_with(core, meet);
        Ok(Some(Some(core.state.requests().name(index))))
    }

    /// The step has begun here, and the others can see what it is.
    fn begin_rows(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: Unequal,
        slots: Option<Slots>,
    ) -> Result<Begun, EngineError> {
        // (Not `ok_or`, which makes an error and drops it each time.)
        let (Some(slots), Some(number)) = (slots, channel.slab) else {
            return Err(NOWHERE);
        };
        let slab = Slab {
            number,
            members: channel.members.count(),
            me: channel.rank,
        };
        let Some(begun) = self.begun(slab.number) else {
            return Err(NOWHERE);
        };
        if let Some(error) = begun.broken() {
            return Err(error.clone());
        }
        let cut = Cut::of_rows();
        let first = begun.begin(&cut);
        let claim = claim(step.what, step.root, step.operator, 0);
        let Some(slabs) = self.slabs(core) else {
            return Err(NOWHERE);
        };
        let numbers = Numbers::noted(slabs, &slab, first, claim);
        Ok(Begun {
            slab,
            slots,
            cut,
            numbers,
        })
    }
}
