// SPDX-License-Identifier: Apache-2.0
//! What people and other commands want of a running job.

use super::Coordinator;
use super::board::standing;
use crate::asking::Turn;
use crate::console::Print;
use crate::events::JobEvent;
use crate::hang;
use crate::question;
use isthmus_job::Substitute;
use isthmus_job::coallocation::Answer;
use isthmus_wire::control::{Edit, Passed, Reply, Request, Whereabouts};
use isthmus_wire::grid::ToAgent;
use std::time::Duration;

/// Processes that nobody can help any more are given so much time, for messages that are on their way.
const STRANDED: Duration = Duration::from_secs(10);

impl Coordinator {
    /// The terminal is gone: what there is to say goes into the logs.
    pub(super) fn hang_up(&mut self) {
        self.terminal = false;
        if let Some(session) = &mut self.session {
            session.keep();
        }
        self.printer.print(Print::HangUp);
        self.printer.notice(
            "the terminal was closed (SIGHUP): the job is ended; with nohup, or with --detach, it goes on".to_owned(),
        );
    }

    pub(super) fn ask(&mut self, site: usize, problem: &str, hint: &str) {
        self.printer
            .tell(&JobEvent::question(&self.subjobs[site].site, problem));
        self.board.say(site, problem.to_owned());
        let mut text = problem.to_owned();
        if !hint.is_empty() {
            text.push_str(&format!("\n  hint: {hint}"));
        }
        self.printer.notice(text);
        if self.questions.ask(site, self.terminal, &self.events) {
            self.prompt(site);
        }
    }

    pub(super) fn prompt(&self, site: usize) {
        let name = &self.subjobs[site].site;
        let how = match (self.terminal, &self.session) {
            (true, _) => question::CHOICES.to_owned(),
            (false, Some(session)) => format!("isthmus edit {} {name} drop|retry|use CONTACT|abort", session.name()),
            (false, None) => String::new(),
        };
        self.printer
            .print(Print::Notice(format!("what shall be done about '{name}'? {how}")));
    }

    pub(super) fn settle(&mut self, site: usize, how: &str) {
        self.notice_of(site, how);
        self.questions_settled(site);
    }

    pub(super) fn questions_settled(&mut self, site: usize) {
        if let Some(next) = self.questions.close(site) {
            self.prompt(next);
        }
    }

    /// An ssh client asks something: until it has its answer nothing else is on the terminal.
    pub(super) fn let_ask(&mut self, turn: Turn) {
        self.asked = matches!(turn, Turn::Begins(_));
        self.printer.print_progress(Vec::new());
        let free = match turn {
            Turn::Begins(free) => Some(free),
            Turn::Over => None,
        };
        self.printer.print(Print::Asking(free));
    }

    /// What was typed is the answer that an ssh client waits for: false when none does.
    pub(super) fn answer_client(&self, bytes: &[u8]) -> bool {
        let line = String::from_utf8_lossy(bytes);
        self.shared.access.asking.give(line.trim_end_matches(['\r', '\n']))
    }

    /// Something was typed.
    pub(super) fn take_answer(&mut self, line: &str, now: Duration) {
        if self.answer_client(line.as_bytes()) {
            return;
        }
        let Some(site) = self.questions.now() else {
            // Nothing is asked: it was meant for the program.
            let bytes = format!("{line}\n").into_bytes();
            let readers = self.inputs.take_typed(bytes.len());
            return self.connections.send_some(&readers, &ToAgent::Input(bytes));
        };
        let done = question::parse(line).and_then(|answer| self.machine.answer(site, answer, now));
        match done {
            Ok(()) => self.questions_settled(site),
            Err(why) => self.printer.notice(why),
        }
    }

    pub(super) fn answer(&mut self, request: Request, now: Duration) -> Reply {
        match request {
            Request::Status => {
                let progress = self.board.progress(self.machine.subjobs()).into_iter();
                let subjobs = progress.zip(&self.subjobs).map(|(p, s)| standing(p, s.count));
                Reply::Status {
                    committed: self.machine.is_committed(),
                    subjobs: subjobs.collect(),
                }
            }
            Request::Traffic => Reply::Traffic(Passed {
                links: self.tally.links(),
                trunks: self.crossings.trunks(),
                times: self.site_times(),
                age: self.tally.age(),
            }),
            Request::Where => Reply::Where(self.whereabouts()),
            Request::Signal(signal @ 1..=64) => {
                self.connections.send_all(&ToAgent::Signal(signal));
                Reply::Done
            }
            Request::Signal(other) => Reply::Refused(format!("there is no signal {other}")),
            Request::End => {
                self.machine.handle_interrupt(15, now);
                Reply::Done
            }
            Request::Edit { site, edit } => match self.edit(&site, edit, now) {
                Ok(()) => Reply::Done,
                Err(why) => Reply::Refused(why),
            },
        }
    }

    /// What every process waits for.
    pub(super) fn whereabouts(&self) -> Whereabouts {
        let away = self.tally.links().into_iter().filter(|link| link.away > 0);
        let cuts = away.map(|link| (link.from, link.to)).collect();
        self.waits
            .tell(self.subjobs.iter().map(|s| (s.site.as_str(), s.count)), cuts)
    }

    /// Ends a job whose processes wait for others that are in MPI_Finalize: a program that an exception ends may get
    /// there on its way out.
    pub(super) fn end_stranded(&mut self) {
        let processes = self.subjobs.iter().map(|s| s.count).sum();
        let whole = self.machine.is_committed() && self.tally.links().iter().all(|link| link.away == 0);
        let Some(found) = self.waits.stranded(processes, STRANDED).filter(|_| whole) else {
            return;
        };
        let (gone, left) = (hang::named(&found.finished), hang::named(&found.waiting));
        let problem = format!(
            "{left} will wait in {} for ever: {gone} called MPI_Finalize, or ended, without taking part",
            match found.call.as_str() {
                "" => "MPI",
                call => call,
            }
        );
        let hint = "look at what that program printed last: an exception or exit() in one process leads there; MPI_Abort ends all";
        self.machine.handle_failed(&problem, hint, self.began.elapsed());
    }

    /// Tells once when all processes have only waited for as long as the user has chosen.
    pub(super) fn tell_hang(&mut self) {
        let Some(limit) = self.shared.options.hang else { return };
        let processes = self.subjobs.iter().map(|s| s.count).sum();
        let hangs = self.waits.hanging(processes).is_some_and(|time| time >= limit);
        if hangs && !self.hangs {
            let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            let text = hang::text(&self.whereabouts());
            self.printer.notice(format!(
                "for {} all ranks have only waited:\n{}",
                hang::time(limit),
                text.trim_end()
            ));
        }
        self.hangs = hangs;
    }

    fn edit(&mut self, name: &str, edit: Edit, now: Duration) -> Result<(), String> {
        let site = self.subjobs.iter().position(|s| s.site == name);
        let site = site.ok_or_else(|| format!("the job has no subjob '{name}'"))?;
        let answer = match edit {
            Edit::Drop => Answer::Drop,
            Edit::Retry => Answer::Retry,
            Edit::Abort => Answer::Abort,
            Edit::Substitute(contact) => Answer::Substitute(Substitute::parse(&contact).map_err(|e| e.to_string())?),
        };
        self.machine.answer(site, answer, now)?;
        self.questions_settled(site);
        Ok(())
    }
}
