// SPDX-License-Identifier: Apache-2.0
//! What people and other commands want of a running job.

use super::board::standing;
use super::losing::shortened;
use super::{Coordinator, TICK, spawning};
use crate::console::Print;
use crate::events::JobEvent;
use crate::hang;
use crate::question;
use crate::session::Session;
use isthmus_job::Substitute;
use isthmus_job::coallocation::{Answer, State, has_begun};
use isthmus_reach::asking::Turn;
use isthmus_wire::control::{Edit, Passed, Reply, Request, Whereabouts};
use isthmus_wire::grid::ToAgent;
use isthmus_wire::joined::Joined;
use isthmus_wire::waiting::LONGEST_REASON;
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
        self.printer
            .notice("the terminal was closed (SIGHUP): the job ends; nohup or --detach keeps it running".to_owned());
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

    fn prompt(&self, site: usize) {
        let session = self.session.as_ref().map(Session::name);
        let text = question::prompt(&self.subjobs[site].site, self.terminal, session);
        self.printer.print(Print::Notice(text));
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

    /// Something was typed.
    pub(super) fn take_answer(&mut self, line: &str, now: Duration) {
        if self.shared.access.asking.give(line.as_bytes()) {
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
                let all = progress.zip(&self.subjobs).enumerate();
                let all = all.filter(|(site, _)| !self.machine.subjobs().is_retired(*site));
                let subjobs = all.map(|(site, (p, s))| standing(p, s, self.board.since(site)));
                Reply::Status {
                    committed: self.machine.is_committed(),
                    subjobs: subjobs.collect(),
                    joined: connected(self),
                }
            }
            Request::Traffic => Reply::Traffic(Passed {
                links: self.tally.links(),
                trunks: self.crossings.trunks(),
                times: self.tally.site_times(&self.subjobs),
                age: self.tally.age(),
                joined: connected(self),
                lost: self.waits.lost(&self.subjobs),
            }),
            Request::Where => Reply::Where(whereabouts(self)),
            Request::Names => Reply::Names(self.names.of_job()),
            Request::Add { job, to } => spawning::add_for_user(self, &job, &to),
            // It is answered when there is news.
            Request::Adding(number) => Reply::Adding(number),
            Request::Signal { number, site } => match signal(self, number, &site) {
                Ok(()) => Reply::Done,
                Err(why) => Reply::Refused(why),
            },
            Request::End => {
                interrupt(self, 15, now);
                Reply::Done
            }
            Request::Edit { site, edit } => match self.edit(&site, edit, now) {
                Ok(()) => Reply::Done,
                Err(why) => Reply::Refused(why),
            },
        }
    }

    /// Ends a job whose processes wait for others that are in MPI_Finalize: a program that an exception ends may get
    /// there on its way out. Tells once when all processes have only waited for as long as the user has chosen.
    pub(super) fn look_at_waits(&mut self) {
        let processes = self.subjobs.iter().map(|s| s.count).sum();
        if let Some(limit) = self.shared.options.hang {
            if self.waits.begin_to_hang(processes, limit) {
                let text = hang::text(&whereabouts(self));
                let limit = hang::time(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
                let text = text.trim_end();
                self.printer
                    .notice(format!("for {limit} all ranks have only waited:\n{text}"));
            }
        }
        let whole = self.machine.is_committed() && self.tally.cuts().is_empty();
        if let Some(found) = self.waits.stranded(processes, STRANDED).filter(|_| whole) {
            let hint = "look at the last output of that process: an uncaught exception or exit() in one process is a common cause; MPI_Abort ends all processes";
            self.machine.handle_failed(&found.problem(), hint, self.began.elapsed());
        }
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

/// The user here wants the end. Those of other parts read that it was here.
pub(super) fn interrupt(job: &mut Coordinator, signal: u32, now: Duration) {
    let here = job.shared.gathered.here();
    job.machine.handle_interrupt(here, signal, now);
}

/// Sends a signal to the processes of a subjob with this name, or to all.
fn signal(job: &Coordinator, number: u32, name: &str) -> Result<(), String> {
    if !(1..=64).contains(&number) {
        return Err(format!("there is no signal {number}"));
    }
    let all = job.subjobs.iter().enumerate();
    let meant = all
        .filter(|(site, subjob)| !job.machine.subjobs().is_retired(*site) && (name.is_empty() || subjob.site == name));
    let meant: Vec<usize> = meant.map(|(site, _)| site).collect();
    if meant.is_empty() && !name.is_empty() {
        return Err(format!("the job has no subjob '{name}' (isthmus ps --long)"));
    }
    // What waits in a queue, say, has no process that would get it.
    let unstarted = unstarted(job);
    if let Some(&first) = meant
        .first()
        .filter(|_| meant.iter().all(|site| !unstarted[*site].is_empty()))
    {
        let (site, state) = (&job.subjobs[first].site, &unstarted[first]);
        return Err(format!(
            "no process has started yet that could get it: '{site}' is {state}"
        ));
    }
    match name {
        "" => job.connections.send_all(&ToAgent::Signal(number)),
        _ => job.connections.send_some(&meant, &ToAgent::Signal(number)),
    }
    Ok(())
}

/// The processes of a job in the background have begun: from here on nobody is asked at the terminal.
pub(super) fn detach(job: &mut Coordinator) {
    if !job.detaching || !has_begun(&job.machine, job.began.elapsed()) {
        return;
    }
    job.detaching = false;
    job.terminal = false;
    job.shared.access.leave_terminal();
    job.questions.leave_terminal();
    job.printer.print_progress(Vec::new());
    let standings = job.board.progress(job.machine.subjobs());
    for queued in standings.iter().filter(|s| s.word == "queued") {
        job.printer
            .notice_of(&queued.site, &format!("queued as {}", queued.told()));
    }
    job.printer.print(Print::Begun);
}

/// With whom processes are connected, of other jobs.
fn connected(job: &Coordinator) -> Vec<Joined> {
    let rank = |(site, index)| job.machine.subjobs().number_of(site, index);
    job.joined.shown(rank, |world| !job.agreements.knows(world))
}

/// By subjob: where one stands that has not started its processes yet; empty: it has.
fn unstarted(coordinator: &Coordinator) -> Vec<String> {
    let standings = coordinator.board.progress(coordinator.machine.subjobs());
    let words = standings.into_iter().map(|stands| {
        let is_early = matches!(stands.state, State::Connecting | State::Staging) || stands.word == "queued";
        match &*stands.told() {
            _ if !is_early => String::new(),
            "" => stands.word,
            told => shortened(&format!("{}: {told}", stands.word), LONGEST_REASON).to_owned(),
        }
    });
    words.collect()
}

/// What all processes wait for, and which of them are not heard. Of parts that were added and have ended, or never
/// began, there is nothing to say but who was lost.
fn whereabouts(coordinator: &Coordinator) -> Whereabouts {
    let heard = |ticks| u32::try_from((TICK * ticks).as_secs().max(1)).unwrap_or(u32::MAX);
    let unheard: Vec<u32> = (0..coordinator.subjobs.len())
        .map(|subjob| coordinator.connections.unheard(subjob).map_or(0, heard))
        .collect();
    let waits = &coordinator.waits;
    let mut told = waits.tell(&coordinator.subjobs, coordinator.tally.cuts(), &unheard);
    let counts = coordinator.subjobs.iter().map(|subjob| subjob.count as usize);
    let unstarted = unstarted(coordinator).into_iter().zip(counts);
    let unstarted = unstarted.flat_map(|(words, count)| std::iter::repeat_n(words, count));
    for (process, words) in told.processes.iter_mut().zip(unstarted) {
        process.unstarted = words;
    }
    let subjobs = coordinator.subjobs.iter().enumerate();
    let mut is_there = subjobs.flat_map(|(site, subjob)| {
        let is_retired = coordinator.machine.subjobs().is_retired(site);
        (0..subjob.count).map(move |_| !is_retired)
    });
    told.processes
        .retain(|process| is_there.next() == Some(true) || !process.lost.is_empty());
    Whereabouts {
        joined: connected(coordinator),
        ..told
    }
}
