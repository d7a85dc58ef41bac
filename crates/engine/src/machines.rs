// SPDX-License-Identifier: Apache-2.0
//! Machines that have registered themselves, and the frames that are theirs.

use isthmus_datatype::raw::WriteMemory;
use isthmus_transport::{Peer, Placement};
use isthmus_wire::frame::{Header, protocol};

use crate::machine::{Machine, Port, Taken};
use crate::mismatch::asking::heard;
use crate::p2p::arrivals::Beside;
use crate::p2p::beside::{budget, go_on, known_budget};
use crate::p2p::{Core, State};

/// Makes a machine when its first frame comes.
pub type Maker = Box<dyn FnOnce() -> Box<dyn Machine> + Send>;

/// Those that have registered themselves, by number, and those that nobody has needed yet: these cost nothing.
#[derive(Default)]
pub(crate) struct Machines {
    awake: Vec<(u8, Box<dyn Machine>)>,
    asleep: Vec<(u8, Maker)>,
}

impl Machines {
    pub(crate) fn add(&mut self, number: u8, machine: Box<dyn Machine>) {
        self.awake.retain(|(of, _)| *of != number);
        self.awake.push((number, machine));
    }

    /// The machine with this number is made when it is needed.
    pub(crate) fn expect_one(&mut self, number: u8, make: Maker) {
        self.asleep.push((number, make));
    }

    /// Makes the machine with this number, if there is one that nobody has needed yet.
    pub(crate) fn awaken(&mut self, number: u8) {
        if let Some(at) = self.asleep.iter().position(|(of, _)| *of == number) {
            let (number, make) = self.asleep.swap_remove(at);
            self.add(number, make());
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.awake.is_empty()
    }

    /// Whether one of them [expects](Machine::expects) frames.
    pub(crate) fn expect(&self) -> bool {
        self.awake.iter().any(|(_, machine)| machine.expects())
    }

    pub(crate) fn get(&self, number: u8) -> Option<&dyn Machine> {
        let (_, machine) = self.awake.iter().find(|(of, _)| *of == number)?;
        Some(&**machine)
    }

    /// The machine with this number, if it is there.
    pub(crate) fn find(&mut self, number: u8) -> Option<&mut (dyn Machine + 'static)> {
        let (_, machine) = self.awake.iter_mut().find(|(of, _)| *of == number)?;
        Some(&mut **machine)
    }

    /// Whether one of them says yes; all are asked.
    #[inline]
    pub(crate) fn each(&mut self, core: &mut Core, mut ask: impl FnMut(&mut dyn Machine, &mut Core) -> bool) -> bool {
        let mut any = false;
        for (_, machine) in &mut self.awake {
            any |= ask(&mut **machine, core);
        }
        any
    }
}

impl Beside for Machines {
    #[inline(never)]
    fn frame(&mut self, state: &mut State, peer: Peer, world: u32, header: &Header, payload: &[u8]) {
        let number = header.flags;
        match number {
            protocol::AGREEMENT => return heard(state, peer, world, header),
            protocol::CREDIT => return credited(state, peer, header),
            _ => self.awaken(number),
        }
        let Some(machine) = self.find(number) else {
            return state.broken(peer, "a frame of a protocol that this process does not know");
        };
        if has_credit(state, peer, header) {
            // Threads may sleep until the machine knows more, without a request.
            state.happened();
            let mut port = Port::within(number, state);
            if machine.frame(&mut port, peer, header, payload) == Taken::Done {
                port.done(peer, header.length);
            }
        }
    }

    fn place(&mut self, state: &mut State, peer: Peer, header: &Header) -> Placement {
        let Some(machine) = self.find(header.flags) else {
            return Placement::Collect;
        };
        let lent = machine.place(&mut Port::within(header.flags, state), peer, header);
        let has_room = |memory: &mut WriteMemory| {
            let (low, high) = memory.window();
            low <= 0 && i64::try_from(header.length).is_ok_and(|length| length <= high as i64)
        };
        match lent {
            Some(lent) if lent.with(has_room) == Some(true) => Placement::Into(lent),
            _ => Placement::Collect,
        }
    }

    fn placed(&mut self, state: &mut State, peer: Peer, header: &Header) {
        let Some(machine) = self.find(header.flags) else {
            return;
        };
        if has_credit(state, peer, header) {
            state.happened();
            let mut port = Port::within(header.flags, state);
            machine.placed(&mut port, peer, header);
            port.done(peer, header.length);
        }
    }
}

/// Charges a frame that has arrived.
fn has_credit(state: &mut State, peer: Peer, header: &Header) -> bool {
    let fits = budget(state, peer, header.flags).arrives(header.length);
    if !fits {
        let what = format!(
            "it sent more frames of protocol {} than it had credit for",
            header.flags
        );
        state.broken(peer, &what);
    }
    fits
}

/// The peer is done with frames of a machine.
fn credited(state: &mut State, peer: Peer, header: &Header) {
    let number = u8::try_from(header.token).unwrap_or(protocol::CREDIT);
    let fits = known_budget(state, peer, number).map(|budget| budget.credited(header.auxiliary()));
    if fits.filter(|_| header.length == 0) != Some(true) {
        return state.broken(peer, "it gave more credit back than it had been lent");
    }
    go_on(state, peer, number);
}
