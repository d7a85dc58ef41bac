// SPDX-License-Identifier: Apache-2.0
//! Processes carry [letters](isthmus_wire::letter) between the launchers of jobs whose processes agree.
//!
//! Here is what passes between processes: a letter, whose receiver gives it to its launcher, and what became of it.
//! `errands` in [`crate::faults`] is the side of whoever carries it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_engine::{
    Core, Engine, EngineError, Machine, Peer, Port, SendBuffer, Sending, Shared, Taken, awaken, register_later,
    with_port,
};
use isthmus_wire::frame::{Header, Kind, protocol};
use isthmus_wire::letter::{Back, Letter, MAX_LETTER};
use isthmus_wire::question::{Ask, Said};
use rustc_hash::FxHashMap;

use crate::asker::Asker;

/// Most letters of others that are here and not answered; who brings more goes to somebody else.
const MOST: usize = 64;

const ALONE: &str = "the communicator has processes of a program that was started without a launcher, and processes agree on losses by their \
                     launchers; start both with isthmus run or mpiexec";

/// Letters of this process, on their way and here.
#[derive(Default)]
pub(crate) struct Carrying(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    /// Own ones by number: where each is, and what became of it.
    out: FxHashMap<u64, (Peer, Option<Back>)>,
    /// Those of others.
    brought: VecDeque<Brought>,
    /// Of each peer the first bytes of what comes in pieces.
    pieces: FxHashMap<Peer, Vec<u8>>,
}

struct Brought {
    by: Peer,
    number: u64,
    letter: Letter,
    /// The question to the launcher; `None`: as many as there may be are open.
    question: Option<u64>,
}

impl Carrying {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this process takes letters of others, for whom it asks; `None`: it has no launcher. `has_met`:
    /// whether a process has met this one as what this is the name of.
    pub(crate) fn begin(
        self: &Arc<Self>,
        engine: &Shared,
        has_met: impl Fn([u8; 16], Peer) -> bool + Send + 'static,
        asker: Option<Arc<dyn Asker>>,
    ) {
        let machine = Carrier {
            carrying: self.clone(),
            has_met: Box::new(has_met),
            asker,
        };
        register_later(&mut engine.lock(), protocol::LETTERS, move || Box::new(machine));
    }

    /// Sends a letter to a process; its number.
    pub(crate) fn send(&self, engine: &mut Engine, peer: Peer, letter: &[u8]) -> Result<u64, EngineError> {
        awaken(engine, protocol::LETTERS);
        let number = {
            let mut state = self.state();
            state.last += 1;
            let number = state.last;
            state.out.insert(number, (peer, None));
            number
        };
        let sent = with_port(engine, protocol::LETTERS, |port| tell(port, peer, number, 0, letter));
        if sent.is_err() {
            self.forget(number);
        }
        sent.map(|_| number)
    }

    /// What became of it, once that is known. [`Back::Nobody`]: not by this process.
    pub(crate) fn look(&self, number: u64) -> Option<Back> {
        let mut state = self.state();
        let back = state.out.get_mut(&number)?.1.take()?;
        state.out.remove(&number);
        Some(back)
    }

    /// Nobody asks any more what becomes of it.
    pub(crate) fn forget(&self, number: u64) {
        self.state().out.remove(&number);
    }
}

/// `tag`: 0 for a letter, 1 for what became of one.
fn tell(port: &mut Port<'_>, peer: Peer, number: u64, tag: i32, payload: &[u8]) -> Result<Sending, EngineError> {
    let mut header = Header::control(Kind::Protocol, number, (payload.len() as u64) << 32, 0);
    header.tag = tag;
    port.send(peer, header, SendBuffer::owned(payload.into()), None)
}

fn answer(port: &mut Port<'_>, peer: Peer, number: u64, back: &Back) {
    // Whoever is lost waits for nothing.
    let _ = tell(port, peer, number, 1, &back.encode());
}

/// What takes letters of others.
struct Carrier {
    carrying: Arc<Carrying>,
    has_met: Box<dyn Fn([u8; 16], Peer) -> bool + Send>,
    asker: Option<Arc<dyn Asker>>,
}

impl Carrier {
    /// Whether a process has brought a letter before: it waits for what becomes of it under another number from now on.
    fn is_here(&self, peer: Peer, number: u64, letter: &Letter) -> bool {
        let mut state = self.carrying.state();
        let mut all = state.brought.iter_mut();
        let before = all.find(|brought| brought.by == peer && brought.letter == *letter);
        before.map(|brought| brought.number = number).is_some()
    }

    fn take(&self, port: &mut Port<'_>, peer: Peer, number: u64, letter: Letter) {
        if self.is_here(peer, number, &letter) {
            return;
        }
        if !(self.has_met)(letter.which.scope, peer) || self.carrying.state().brought.len() >= MOST {
            return answer(port, peer, number, &Back::Nobody);
        }
        if self.asker.is_none() {
            return answer(port, peer, number, &Back::Refused(ALONE.to_owned()));
        }
        self.carrying.state().brought.push_back(Brought {
            by: peer,
            number,
            letter,
            question: None,
        });
    }

    /// What is to be told of a letter now, if anything is.
    fn look(&self, brought: &mut Brought) -> Option<Back> {
        let Some(asker) = &self.asker else {
            return Some(Back::Nobody);
        };
        if brought.question.is_none() {
            match asker.ask(Ask::Brought(Box::new(brought.letter.clone()))) {
                Ok(asked) => brought.question = asked,
                Err(_) => return Some(Back::Nobody),
            }
        }
        let question = brought.question?;
        match asker.answered(question)? {
            Ok(Said::Back(back)) => Some(back),
            // This process is about to leave, or its launcher is gone.
            Ok(_) | Err(_) => Some(Back::Nobody),
        }
    }

    /// Asks for letters that have come, and tells what is known of others; true if anything is.
    fn work(&self, port: &mut Port<'_>) -> bool {
        let mut all = std::mem::take(&mut self.carrying.state().brought);
        let before = all.len();
        all.retain_mut(|brought| match self.look(brought) {
            Some(back) => {
                answer(port, brought.by, brought.number, &back);
                false
            }
            None => true,
        });
        let done = all.len() < before;
        self.carrying.state().brought.extend(all);
        done
    }
}

/// Adds a piece; all of it once it is there.
fn collect(state: &mut State, peer: Peer, header: &Header, payload: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let (total, offset) = ((header.auxiliary() >> 32) as usize, header.auxiliary() as u32 as usize);
    let begun = state.pieces.remove(&peer);
    let mut all = begun.unwrap_or_default();
    if total > MAX_LETTER || offset != all.len() || offset + payload.len() > total {
        return Err("pieces of its letter do not fit together");
    }
    all.extend_from_slice(payload);
    if all.len() == total {
        return Ok(Some(all));
    }
    if payload.is_empty() {
        return Err("a piece of its letter is empty");
    }
    state.pieces.insert(peer, all);
    Ok(None)
}

impl Machine for Carrier {
    fn frame(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, payload: &[u8]) -> Taken {
        let collected = collect(&mut self.carrying.state(), peer, header, payload);
        let whole = match collected {
            Ok(Some(whole)) => whole,
            Ok(None) => return Taken::Done,
            Err(lie) => {
                port.accuse(peer, lie);
                return Taken::Done;
            }
        };
        if header.tag == 0 {
            match Letter::decode(&whole) {
                Ok(letter) => self.take(port, peer, header.token, letter),
                Err(_) => port.accuse(peer, "its letter cannot be read"),
            }
            self.work(port);
            return Taken::Done;
        }
        let back = Back::decode(&whole).ok().filter(|_| header.tag == 1);
        let Some(back) = back else {
            port.accuse(peer, "what it says of a letter cannot be");
            return Taken::Done;
        };
        // It may have been forgotten. Nobody answers for others.
        if let Some(out) = self
            .carrying
            .state()
            .out
            .get_mut(&header.token)
            .filter(|out| out.0 == peer)
        {
            out.1.get_or_insert(back);
        }
        Taken::Done
    }

    fn advance(&mut self, core: &mut Core) -> bool {
        !self.carrying.state().brought.is_empty() && self.work(&mut core.port(protocol::LETTERS))
    }

    fn lose(&mut self, _: &mut Core, peer: Peer) {
        let mut state = self.carrying.state();
        state.pieces.remove(&peer);
        for out in state.out.values_mut().filter(|out| out.0 == peer) {
            out.1.get_or_insert(Back::Nobody);
        }
        state.brought.retain(|brought| {
            if let (true, Some(question), Some(asker)) = (brought.by == peer, brought.question, &self.asker) {
                asker.forget(question);
            }
            brought.by != peer
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(total: usize, offset: usize) -> Header {
        Header::control(Kind::Protocol, 1, (total as u64) << 32 | offset as u64, 0)
    }

    #[test]
    fn a_letter_is_put_together_and_nothing_else_is() {
        let mut state = State::default();
        let peer = Peer::new(3);
        assert_eq!(collect(&mut state, peer, &piece(5, 0), b"abc"), Ok(None));
        // Those of others do not mix with it.
        assert_eq!(
            collect(&mut state, Peer::new(4), &piece(1, 0), b"x"),
            Ok(Some(b"x".to_vec()))
        );
        assert_eq!(
            collect(&mut state, peer, &piece(5, 3), b"de"),
            Ok(Some(b"abcde".to_vec()))
        );
        assert_eq!(collect(&mut state, peer, &piece(0, 0), b""), Ok(Some(Vec::new())));
        assert!(
            collect(&mut state, peer, &piece(5, 1), b"bc").is_err(),
            "the beginning is lacking"
        );
        assert!(
            collect(&mut state, peer, &piece(2, 0), b"abc").is_err(),
            "more than was said"
        );
        assert!(collect(&mut state, peer, &piece(MAX_LETTER + 1, 0), b"abc").is_err());
        assert!(
            collect(&mut state, peer, &piece(5, 0), b"").is_err(),
            "nothing, for ever"
        );
        assert!(state.pieces.is_empty());
    }
}
