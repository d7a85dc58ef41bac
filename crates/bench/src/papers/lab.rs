// SPDX-License-Identifier: Apache-2.0
//! Running the programs of all libraries over one testbed after the other.

use std::time::{Duration, Instant};

use isthmus_testbed::{Testbed, Topology};

use super::grid::Grid;
use super::times::{Test, Times, times};
use crate::error::Error;
use crate::launch::over;
use crate::peers::Peer;
use crate::program::Program;

/// What all experiments share.
#[derive(Clone, Debug)]
pub(super) struct Lab {
    pub(super) peers: Vec<Peer>,
    /// Undisturbed repetitions of each test.
    pub(super) repetitions: usize,
    /// On the six machines that the bounds are measured on.
    pub(super) ranks_per_machine: usize,
    /// How long a job may take; what it printed until then counts.
    pub(super) patience: Duration,
}

/// Links below this rate, bits per second, get it after the files of our jobs have crossed them.
const SLOW: u64 = 20_000_000;

/// A testbed under way. It is built anew for another topology, and after a job that did not end well, whose ranks may
/// still be there.
#[derive(Default)]
pub(super) struct Field {
    bed: Option<(Testbed, Topology)>,
    /// Hosts that have the files of our jobs.
    staged: Vec<String>,
    /// What went wrong, and why times are not to be trusted.
    notes: Vec<String>,
}

impl Field {
    /// What a job printed, as far as it came.
    pub(super) fn run(
        &mut self,
        grid: &Grid,
        peer: &Peer,
        program: Program,
        arguments: &[&str],
        patience: Duration,
    ) -> Result<String, Error> {
        if self
            .bed
            .as_ref()
            .is_some_and(|(_, topology)| topology != grid.topology())
        {
            let notes = self.end();
            self.notes = notes;
        }
        let (bed, topology) = match self.bed.take() {
            Some(running) => running,
            None => {
                self.staged.clear();
                (Testbed::start(grid.topology())?, grid.topology().clone())
            }
        };
        self.stage(&bed, grid, peer)?;
        let start = Instant::now();
        let outcome = over(&bed, peer, &grid.hosts(), program, arguments, patience)?;
        eprintln!("  {:<10} {:.1} s", peer.name, start.elapsed().as_secs_f64());
        match outcome.failure {
            None => self.bed = Some((bed, topology)),
            Some(error) => {
                self.note(format!("{}: {error}", peer.name));
                self.doubt(&bed);
            }
        }
        Ok(outcome.output)
    }

    /// Where links are slow, a job of ours runs over fast ones first: what it brings along is there for those to come.
    fn stage(&mut self, bed: &Testbed, grid: &Grid, peer: &Peer) -> Result<(), Error> {
        let slow = grid.topology().link.rate.filter(|rate| *rate < SLOW);
        let hosts = grid.hosts();
        let all = hosts.iter().all(|placed| self.staged.contains(&placed.host));
        let Some(slow) = slow.filter(|_| peer.name == "isthmus" && !all) else {
            return Ok(());
        };
        let rate = |rate: u64| -> Result<(), Error> {
            for a in 0..grid.sites() {
                for b in a + 1..grid.sites() {
                    bed.change(grid.site_name(a), grid.site_name(b), |link| link.rate = Some(rate))?;
                }
            }
            Ok(())
        };
        rate(SLOW * 10)?;
        let arguments = ["-r", "1", "barrier"];
        let patience = Duration::from_secs(60);
        let outcome = over(bed, peer, &hosts, Program::Collectives, &arguments, patience)?;
        rate(slow)?;
        self.staged.extend(hosts.into_iter().map(|placed| placed.host));
        outcome.failure.map_or(Ok(()), Err)
    }

    /// Runs `bench/collectives.c`.
    pub(super) fn collectives(&mut self, lab: &Lab, grid: &Grid, peer: &Peer, tests: &[Test]) -> Result<Times, Error> {
        let (repetitions, places) = (lab.repetitions.to_string(), grid.places());
        let mut arguments = vec!["-r".to_owned(), repetitions, "-p".to_owned(), places];
        arguments.extend(tests.iter().map(Test::argument));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Ok(times(&self.run(
            grid,
            peer,
            Program::Collectives,
            &arguments,
            lab.patience,
        )?))
    }

    /// Ends the testbed; gives all notes.
    pub(super) fn end(&mut self) -> Vec<String> {
        if let Some((bed, _)) = self.bed.take() {
            self.doubt(&bed);
        }
        std::mem::take(&mut self.notes)
    }

    fn doubt(&mut self, bed: &Testbed) {
        if let Some(reason) = bed.report().distrust() {
            self.note(format!("do not trust these times, measure again: {reason}"));
        }
    }

    fn note(&mut self, note: String) {
        eprintln!("  {note}");
        self.notes.push(note);
    }
}
