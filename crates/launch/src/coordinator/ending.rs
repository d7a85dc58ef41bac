// SPDX-License-Identifier: Apache-2.0
//! The end: outputs come back, the last lines are printed.

use super::{Coordinator, Event};
use crate::Outcome;
use crate::console::Print;
use crate::events::JobEvent;
use crate::files::{Emptied, Tell};
use crate::links::JobLinks;
use crate::record::Sums;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// When fetching takes longer than this, the user hears of it once.
const QUIET: Duration = Duration::from_secs(9);

/// What has come back.
#[derive(Default)]
struct Came {
    /// Number of outputs.
    files: usize,
    /// By subjob: its name, and patterns that nothing there matches.
    sites: Vec<(String, Vec<String>)>,
}

impl Came {
    /// Patterns that nothing matches at any site.
    fn nowhere(&self) -> BTreeSet<String> {
        let all: BTreeSet<String> = self.sites.iter().flat_map(|(_, missing)| missing).cloned().collect();
        let everywhere = |pattern: &String| self.sites.iter().all(|(_, missing)| missing.contains(pattern));
        all.into_iter().filter(everywhere).collect()
    }
}

/// Seconds that an agent takes at most to end what it has started.
const LEAVING: u64 = 5;

impl Coordinator {
    /// Fetches what the subjobs give back. An interrupt ends it; the directories then wait for their leases to end.
    pub(super) async fn stage_out(&mut self, events: &mut mpsc::UnboundedReceiver<Event>) {
        let shared = Arc::clone(&self.shared);
        let sender = self.events.clone();
        let tell: Tell = Arc::new(move |site, how| {
            let _ = sender.send(Event::Fetching { site, how });
        });
        let silent: Vec<bool> = (0..self.subjobs.len())
            .map(|site| self.connections.is_lost(site))
            .collect();
        let mut emptying = shared.directories.empty(&shared, &silent, &tell);
        let mut came = Came::default();
        let mut quiet = tokio::time::interval_at(Instant::now() + QUIET, QUIET);
        loop {
            tokio::select! {
                done = emptying.join_next() => match done {
                    Some(Ok(emptied)) => self.take_emptied(emptied, &mut came),
                    Some(Err(_)) => {}
                    None => break,
                },
                _ = quiet.tick() => {
                    self.tell_fetching();
                    quiet.reset_after(Duration::from_secs(3600));
                }
                Some(event) = events.recv() => match event {
                    Event::Interrupt(_) | Event::PrintFailed => break,
                    Event::Fetching { site, how } => {
                        self.known[site].detail = how;
                        self.tell_states();
                        self.show_progress();
                    }
                    event @ Event::FileFailed(_) => self.handle(event),
                    _ => {}
                },
            }
        }
        emptying.abort_all();
        self.tell_outputs(&came);
        self.machine.handle_staged_out();
        self.tell_states();
        self.show_progress();
    }

    /// A job whose outputs are lost has not ended well.
    fn take_emptied(&mut self, emptied: Emptied, came: &mut Came) {
        if let Some(left) = emptied.left {
            self.notice(left);
        }
        came.files += emptied.files;
        came.sites.push((emptied.site, emptied.missing));
        let Some(problem) = emptied.problem else { return };
        match self.machine.verdict().problem {
            // The cause comes first, and alone.
            Some(_) => self.notice(problem),
            None => {
                self.unwritten.get_or_insert(problem);
            }
        }
    }

    /// Where the outputs are, and which there are none of.
    fn tell_outputs(&self, came: &Came) {
        let unnamed = self
            .subjobs
            .iter()
            .find(|s| !s.files.outputs.is_empty() && s.files.results.is_none());
        if let Some(subjob) = unnamed.filter(|_| came.files > 0) {
            let place = crate::outputs::results(&subjob.files, &self.name);
            self.notice(format!("outputs are in {} ({} files)", place.display(), came.files));
        }
        if self.machine.verdict().problem.is_some() {
            return;
        }
        let nowhere = came.nowhere();
        for (site, missing) in &came.sites {
            let here: Vec<String> = missing
                .iter()
                .filter(|p| !nowhere.contains(*p))
                .map(|p| format!("'{p}'"))
                .collect();
            if !here.is_empty() {
                self.notice(format!(
                    "site '{site}': it has left nothing that is called {}",
                    here.join(" or ")
                ));
            }
        }
        for pattern in nowhere {
            self.notice(format!(
                "no process has left a file that is called '{pattern}': --output fetches files that the processes write; \
                 what they print goes into files with --output-dir or --outfile-pattern, or with '> FILE'"
            ));
        }
    }

    /// What runs at a site that does not answer ends by itself: until when.
    fn tell_unconfirmed(&self) {
        let most = self.shared.options.agents_silence().as_secs() + LEAVING;
        for site in self.connections.unconfirmed() {
            self.notice_of(
                site,
                &format!("its agent has not confirmed its end; what is left there ends by itself within {most} s (1.5 times ISTHMUS_AWAY)"),
            );
        }
    }

    /// Whoever waits for the outputs of a job that has failed knows already why.
    fn tell_fetching(&self) {
        let away = crate::files::patience(self.silence).as_secs();
        let why = self
            .machine
            .verdict()
            .problem
            .map(|p| format!("{p}; "))
            .unwrap_or_default();
        self.notice(format!(
            "{why}what the sites give back is being fetched; a site that is out of reach is waited for {away} s"
        ));
    }

    /// Prints what is left and says how it went. Only a further interrupt stops the printing.
    pub(super) async fn finish(mut self, events: &mut mpsc::UnboundedReceiver<Event>) -> Outcome {
        let mut verdict = self.machine.verdict();
        self.printer.print(Print::Mark);
        loop {
            match events.recv().await {
                Some(event @ Event::FileFailed(_)) => self.handle(event),
                Some(Event::Interrupt(_) | Event::PrintFailed | Event::Marked) | None => break,
                Some(_) => {}
            }
        }
        self.tell_unconfirmed();
        // A job that is leaving takes no further verdict; one that lost output has not ended well.
        if let (0, Some(problem)) = (verdict.status, self.unwritten.take()) {
            (verdict.status, verdict.problem) = (1, Some(problem));
        }
        self.tell(&JobEvent::end(
            verdict.status,
            verdict.problem.as_deref(),
            &verdict.hint,
        ));
        let links = self.known_links.as_ref();
        self.printer.print(Print::Sums(Box::new(Sums {
            traffic: self.statistics.traffic().unwrap_or_else(|| self.tally.links()),
            links: links.map(JobLinks::report).unwrap_or_default(),
            paths: self.crossings.report(),
            statistics: self.statistics.clone(),
        })));
        self.printer.close();
        loop {
            tokio::select! {
                () = self.printer.finished() => break,
                Some(event) = events.recv() => if let Event::Interrupt(_) | Event::PrintFailed = event { break },
            }
        }
        if let Some(session) = self.session {
            session.close(verdict.status, verdict.problem.as_deref(), &verdict.hint);
        }
        self.shared.access.close();
        let links = self.known_links.as_ref();
        Outcome {
            notice: links.and_then(JobLinks::keep),
            links: links.map(JobLinks::report).unwrap_or_default(),
            paths: self.crossings.report(),
            began: self.known_links.is_some(),
            unreached: self.unreached,
            status: verdict.status,
            problem: verdict.problem,
            hint: verdict.hint,
            statistics: self.statistics,
        }
    }
}
