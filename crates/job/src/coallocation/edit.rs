// SPDX-License-Identifier: Apache-2.0
//! Changes of the job before it is committed: substituting and dropping subjobs.

use super::subjobs::world_apart;
use super::{Action, Answer, Coallocation, LEAVE, Phase, Site, State, Verdict, apart, later};
use crate::terms::{Need, Substitute};
use std::time::Duration;

impl Coallocation {
    /// What the user wants to be done about a subjob; an error says why that cannot be.
    pub fn answer(&mut self, site: usize, answer: Answer, now: Duration) -> Result<(), String> {
        let Some(subject) = self.subjobs.get(site) else {
            return Err("there is no such subjob".to_owned());
        };
        let name = subject.name.clone();
        if !self.phase.is_open() {
            return Err("the job ends already".to_owned());
        }
        if !subject.is_live() {
            return Err(format!("the job goes on without '{name}' already"));
        }
        if subject.added.is_some() {
            return Err(format!(
                "'{name}' was started by the program, which alone decides about it"
            ));
        }
        if subject.world.is_some() {
            return Err(format!("'{name}' has begun and cannot be changed any more"));
        }
        let asked = self.subjobs.site_mut(site).asked.take();
        let problem = match &asked {
            Some(verdict) => verdict.problem.clone().unwrap_or_default(),
            None => format!("site '{name}': changed by the user"),
        };
        match answer {
            Answer::Drop => {
                let verdict = asked.unwrap_or_else(|| Verdict::launch(problem, ""));
                self.drop_site(site, verdict, now);
            }
            Answer::Substitute(place) => self.begin_again(site, Some(place), problem, now),
            // Who is only late is waited for; who failed begins again.
            Answer::Retry if self.subjobs.site(site).gone || self.subjobs.site(site).state == State::Failed => {
                self.begin_again(site, None, problem, now);
            }
            Answer::Retry => {
                self.subjobs.site_mut(site).since = now;
                self.last_progress = now;
            }
            Answer::Abort => {
                let verdict = asked.unwrap_or_else(|| Verdict::launch(problem, ""));
                self.fail(verdict, now);
            }
        }
        Ok(())
    }

    /// A subjob failed. What that means says its terms.
    pub(super) fn fail_site(&mut self, site: usize, verdict: Verdict, now: Duration) {
        let failed = self.subjobs.site(site);
        if !self.phase.is_open() || !failed.is_live() || failed.cast_off {
            return;
        }
        if failed.is_awaited_later() {
            return later::fail(self, site, verdict, now);
        }
        let problem = verdict.problem.clone().unwrap_or_default();
        let Site {
            terms, tried, world, ..
        } = self.subjobs.site(site);
        let need = terms.need;
        if world.is_some() {
            if let Some(sites) = world_apart(&self.subjobs, site) {
                return apart::lose_world(self, &sites, None, &verdict, now);
            }
            if self.subjobs.runs_apart(site) && need != Need::Required {
                return self.drop_site(site, verdict, now);
            }
            self.subjobs.site_mut(site).advance(State::Failed);
            return self.fail(verdict, now);
        }
        if let Some(place) = terms.substitutes.get(*tried).cloned() {
            self.subjobs.site_mut(site).tried += 1;
            return self.begin_again(site, Some(place), problem, now);
        }
        match need {
            Need::Optional => self.drop_site(site, verdict, now),
            Need::Interactive if self.watch.answers => self.ask(site, verdict),
            Need::Interactive | Need::Required => {
                self.subjobs.site_mut(site).advance(State::Failed);
                self.fail(verdict, now);
            }
        }
    }

    fn ask(&mut self, site: usize, verdict: Verdict) {
        let subject = self.subjobs.site_mut(site);
        if subject.asked.is_none() {
            self.actions.push_back(Action::Ask {
                site,
                problem: verdict.problem.clone().unwrap_or_default(),
                hint: verdict.hint.clone(),
            });
            // Who is only late may still come.
            let late = verdict.late && !subject.gone;
            if !late {
                subject.advance(State::Failed);
            }
            subject.asked = Some(verdict);
        }
    }

    /// A subjob that the user was asked about is there after all.
    pub(super) fn settle(&mut self, site: usize) {
        let subject = self.subjobs.site(site);
        let here = subject.is_complete() || (subject.has_begun() && !self.subjobs.somebody_waits());
        let subject = self.subjobs.site_mut(site);
        if here && subject.state != State::Failed && subject.asked.take().is_some() {
            self.actions.push_back(Action::Settled { site });
        }
    }

    fn drop_site(&mut self, site: usize, verdict: Verdict, now: Duration) {
        let dropped = self.subjobs.site_mut(site);
        dropped.advance(State::Failed);
        dropped.dropped = true;
        dropped.asked = None;
        dropped.end();
        let goes_on = self.subjobs.iter().any(Site::is_live);
        self.actions.push_back(Action::Drop {
            site,
            problem: verdict.problem.clone().unwrap_or_default(),
            goes_on,
        });
        if !goes_on {
            return self.fail(verdict, now);
        }
        self.subjobs.close_ranks();
        self.look_for_start(now);
        self.last_progress = now;
        self.open_barriers(now);
        self.look_for_hopeless_barrier(now);
        self.leave_when_ended(now);
    }

    fn begin_again(&mut self, site: usize, place: Option<Substitute>, problem: String, now: Duration) {
        self.last_progress = now;
        self.subjobs.site_mut(site).begin_again(now);
        self.actions.push_back(Action::Substitute { site, place, problem });
    }

    /// Nothing runs any more: the job is over but for its cleaning up.
    pub(super) fn leave_when_ended(&mut self, now: Duration) {
        let asked = self.subjobs.iter().any(|s| s.asked.is_some());
        let leaving = matches!(self.phase, Phase::Leaving { .. } | Phase::Over);
        if !leaving && !asked && self.subjobs.iter().all(|s| s.has_ended() || !s.is_live()) {
            self.leave(now + LEAVE);
        }
    }
}
