// SPDX-License-Identifier: Apache-2.0
//! What others call.

use std::sync::Arc;

use isthmus_core::error::{Error, Result};
use isthmus_core::joining;
use isthmus_core::world::World;
use isthmus_engine::{Caller, Maker};
use isthmus_wire::frame::protocol;
use isthmus_wire::requests::Target;

use crate::handlers::Function;
use crate::machine::{Answers, Taker};
use crate::origin::Work;
use crate::run::{run, send_out};
use crate::state::{Desk, Out};

/// Remote service requests of this process.
#[derive(Clone, Default)]
pub struct Requests(pub(crate) Arc<Desk>);

impl Requests {
    /// What takes the frames, by the numbers of the protocols.
    pub fn machines(&self) -> [(u8, Maker); 2] {
        let (taker, answers) = (self.0.clone(), self.0.clone());
        [
            (protocol::REQUESTS, Box::new(|| Box::new(Taker(taker)))),
            (protocol::ANSWERS, Box::new(|| Box::new(Answers(answers)))),
        ]
    }

    /// There is a world: handlers can be called.
    pub fn begin(&self, world: &'static World) {
        let _ = self.0.me.set((world.me(), world.rank()));
        let desk = self.0.clone();
        let callbacks = world.engine().callbacks();
        callbacks.provide(move |caller| run(&desk, world, caller));
    }

    /// Gives a name to a function; its number here. `short`: the keeper may call it, beside the program.
    pub fn register(&self, name: &str, function: Option<Function>, short: bool) -> Result<u32> {
        self.0.may_be_called("isthmus_handler_register")?;
        self.0.lock().handlers.add(name, function, short)
    }

    /// Memory that others may have pointers to, from now on; its number.
    pub fn add_memory(&self, address: usize, length: u64) -> Result<u32> {
        self.0.lock().regions.add(address as u64, length)
    }

    /// Requests to it fail from now on.
    pub fn remove_memory(&self, number: u32) -> Result<()> {
        self.0.lock().regions.remove(number)
    }

    /// A part of it.
    pub fn part(&self, number: u32, offset: u64, length: u64) -> Result<Target> {
        self.0.lock().regions.part(number, offset, length)
    }

    /// Calls the handlers for which requests have come; how many. `wait`: until there was one.
    pub fn serve(&self, world: &World, wait: bool) -> Result<u64> {
        self.0.may_be_called("isthmus_handlers_run")?;
        let before = self.0.lock().ran;
        world.engine().lock().progress();
        run(&self.0, world, Caller::Program);
        let ran = || self.0.lock().ran - before;
        if wait && ran() == 0 {
            let everybody = joining::connected(world);
            world.engine().wait(|engine| match ran() {
                0 => engine.core.lost_of(&everybody).map(|lost| Err(Error::from(&lost))),
                _ => Some(Ok(())),
            })?;
        }
        Ok(ran())
    }

    /// The handler is not called any more; waits until it is over where it is being called.
    pub fn unregister(&self, world: &World, number: u32) -> Result<()> {
        self.0.may_be_called("isthmus_handler_unregister")?;
        self.0.lock().handlers.remove(number)?;
        let is_over = || self.0.lock().running.is_none_or(|(_, running)| running != number);
        world.engine().wait(|_| is_over().then_some(()));
        Ok(())
    }

    /// Before this process leaves the job: no handler is called any more, and what asks for one fails.
    pub fn close(&self, world: &World) {
        {
            let mut state = self.0.lock();
            if std::mem::replace(&mut state.closed, true) {
                return;
            }
            state.regions.clear();
            for (peer, mut ready) in state.give_up() {
                let outcome = match ready.work.take() {
                    Some(Work::Call { handler, target, data }) => {
                        let refused = self.0.work(&state, &handler.name, target, data);
                        refused.map(|_| Vec::new())
                    }
                    _ => Ok(Vec::new()),
                };
                self.0.leave(&mut state, Out::Ended { peer, ready, outcome });
            }
        }
        world.engine().wait(|_| self.0.lock().running.is_none().then_some(()));
        send_out(&self.0, world);
    }
}
