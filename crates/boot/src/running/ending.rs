// SPDX-License-Identifier: Apache-2.0
//! The end of a process.

use std::os::fd::BorrowedFd;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use isthmus_engine::unreceived;
use isthmus_net::Prober;

use super::{Running, print_counters, say};
use crate::BootError;
use crate::listening::lose;
use crate::traffic;

/// How long what is on its way may take at the end, when all processes are there.
const ANSWERS: Duration = Duration::from_secs(1);
/// How often it is looked at.
const STEP: Duration = Duration::from_millis(5);

impl Running {
    /// Ends communication: everything that was sent has left, every process of the job has come here. Until then this
    /// one serves the others, so connections are closed only after the agent's word, and by then nobody needs them.
    /// `end`: where this process is, for people.
    pub fn finish(&self, end: &str, files: impl FnOnce() -> Vec<isthmus_wire::usage::Usage>) -> Result<(), BootError> {
        let engine = self.world().engine();
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            engine.keeper().stop();
            // It ends without an error or with the process.
            let _ = keeper.join();
        }
        engine.wait(|engine| engine.settle().then_some(()));
        let mut counters = engine.lock().core.tools().counters();
        counters.links = self.world().measured_in_all();
        (counters.choices, counters.files) = (self.world().choices(), files());
        let summary = |prober: &Prober| traffic::summary(prober.traffic(), self.world());
        counters.traffic = self.prober.as_ref().map(summary).unwrap_or_default();
        drop(self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take());
        match &self.agent {
            Some(agent) => {
                let mut agent = agent.lock().unwrap_or_else(PoisonError::into_inner);
                // Others are not there yet. What they have sent may need an answer of the vendor MPI here, or of ours.
                let wait = |answer: BorrowedFd<'_>| engine.wait_beside(answer);
                agent.finish(counters, wait, |gone| {
                    lose(self.world(), &mut engine.lock(), gone);
                })?;
            }
            None => {
                crate::own_names::forget();
                print_counters(&counters);
            }
        }
        self.forget_unreceived(end);
        engine.wait(|engine| engine.close().then_some(()));
        engine.lock().core.finish();
        Ok(())
    }

    /// At MPI_Finalize where sessions go on: the program may use the memory of what it sent without waiting for it.
    pub fn give_memory_back(&self) {
        let engine = self.world().engine();
        engine.wait(|engine| engine.is_flushed(true).then_some(()));
        engine.lock().core.keep_unanswered(true);
    }

    /// Between two uses of MPI, and before the end of a program that has used sessions: what was sent has left. Whoever
    /// is late may still receive, so messages that nobody receives are kept, in memory of the library.
    pub fn rest(&self) {
        let engine = self.world().engine();
        let until = Instant::now() + ANSWERS;
        loop {
            engine.wait(|engine| engine.is_flushed(true).then_some(()));
            let mut engine = engine.lock();
            engine.progress();
            if engine.is_flushed(false) {
                return;
            }
            // A vendor MPI has the program's memory until it says otherwise.
            if Instant::now() >= until && engine.is_flushed(true) {
                engine.core.keep_unanswered(false);
                return;
            }
            drop(engine);
            std::thread::sleep(STEP);
        }
    }

    /// All processes are at the end, so what nobody has received nobody will. What is on its way gets a moment, since
    /// saying so of a message that was received would be wrong.
    fn forget_unreceived(&self, end: &str) {
        let engine = self.world().engine();
        let until = Instant::now() + ANSWERS;
        loop {
            let mut engine = engine.lock();
            engine.progress();
            let unreceived = unreceived(&engine);
            if unreceived.is_none() && engine.core.gauges().sends == 0 {
                return;
            }
            if Instant::now() >= until {
                engine.core.give_up_sends();
                drop(engine);
                if let Some(unreceived) = unreceived {
                    let name = &self.name;
                    say(&format!("{name}: warning: at {end} nobody had received {unreceived}"));
                }
                return;
            }
            drop(engine);
            std::thread::sleep(STEP);
        }
    }
}
