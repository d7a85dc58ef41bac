// SPDX-License-Identifier: Apache-2.0
//! A process has ended.

use super::site::{Process, State};
use super::subjobs::world_apart;
use super::{Coallocation, Loss, apart, goes_on, later, lose};
use isthmus_wire::grid::Exit;
use std::time::Duration;

impl Coallocation {
    /// A process ended.
    pub fn handle_exited(&mut self, site: usize, index: u32, exit: Exit, now: Duration) {
        let ended = self.subjobs.site_mut(site);
        let Some(process) = ended.processes.get_mut(index as usize) else {
            return;
        };
        let was = std::mem::replace(process, Process::Ended);
        if was == Process::Ended || !ended.is_live() {
            return;
        }
        ended.ended += 1;
        let verdict = self.subjobs.judge_exit(site, index, was, exit);
        if let Some(verdict) = later::judge(self, site, index, was, verdict) {
            if goes_on(self, site) {
                let loss = Loss {
                    site,
                    whole: false,
                    processes: vec![(index, was)],
                };
                lose(self, &loss, &verdict, now);
            } else if let Some(sites) = world_apart(&self.subjobs, site).filter(|_| self.phase.is_open()) {
                apart::lose_world(self, &sites, Some((site, index, was)), &verdict, now);
            } else {
                if was == Process::Arrived {
                    self.tell_gone(site, index..index + 1, &verdict);
                }
                self.fail_site(site, verdict, now);
            }
        }
        // A subjob that begins again elsewhere has no process that ended.
        let ended = self.subjobs.site_mut(site);
        if ended.has_ended() && !ended.cast_off {
            let next = if ended.gives_back { State::Fetching } else { State::Done };
            ended.advance(next);
            later::retire(self, site);
        }
        self.look_for_hopeless_barrier(now);
        self.leave_when_ended(now);
    }
}
