// SPDX-License-Identifier: Apache-2.0
//! The end: outputs come back, the last lines are printed.

use super::{Coordinator, Event};
use crate::Outcome;
use crate::console::Print;
use crate::emptying::{self, Emptied, Tell};
use crate::events::JobEvent;
use crate::links::JobLinks;
use crate::record::Sums;
use isthmus_job::Subjob;
use isthmus_wire::word::counted;
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
    /// Why some are lost: a job whose outputs are lost has not ended well.
    problem: Option<String>,
}

impl Came {
    /// Takes what has come from a site; gives what the user should know now. `failed`: the job has. The cause comes
    /// first, and alone.
    fn take(&mut self, emptied: Emptied, failed: bool) -> impl Iterator<Item = String> + use<> {
        self.files += emptied.files;
        self.sites.push((emptied.site, emptied.missing));
        let news = emptied.problem.clone().filter(|_| failed);
        if !failed && self.problem.is_none() {
            self.problem = emptied.problem;
        }
        emptied.left.into_iter().chain(news)
    }

    /// Patterns that nothing matches at any site.
    fn nowhere(&self) -> BTreeSet<String> {
        let all: BTreeSet<String> = self.sites.iter().flat_map(|(_, missing)| missing).cloned().collect();
        let everywhere = |pattern: &String| self.sites.iter().all(|(_, missing)| missing.contains(pattern));
        all.into_iter().filter(everywhere).collect()
    }

    /// Where the outputs are, unless the user has chosen that.
    fn place(&self, subjobs: &[Subjob], job: &str) -> Option<String> {
        let unnamed = |s: &&Subjob| !s.files.outputs.is_empty() && s.files.results.is_none();
        let subjob = subjobs.iter().find(unnamed).filter(|_| self.files > 0)?;
        let place = crate::outputs::results(&subjob.files, job);
        Some(format!(
            "outputs are in {} ({})",
            place.display(),
            counted(self.files, "file")
        ))
    }

    /// Which outputs there are none of.
    fn missing(&self) -> Vec<String> {
        let nowhere = self.nowhere();
        let mut news = Vec::new();
        for (site, missing) in &self.sites {
            let here = missing.iter().filter(|p| !nowhere.contains(*p));
            let here: Vec<String> = here.map(|p| format!("'{p}'")).collect();
            if !here.is_empty() {
                let names = here.join(" or ");
                news.push(format!("site '{site}': it has left nothing that is called {names}"));
            }
        }
        news.extend(nowhere.iter().map(|pattern| {
            format!(
                "no process has left a file that is called '{pattern}': --output fetches files that the processes write; \
                 what they print goes into files with --output-dir or --outfile-pattern, or with '> FILE'"
            )
        }));
        news
    }
}

/// Whoever waits for the outputs of a job that has failed knows already why. `silence`: how long sites may be away.
fn fetching(problem: Option<String>, silence: Duration) -> String {
    let away = emptying::patience(silence).as_secs();
    let why = problem.map(|p| format!("{p}; ")).unwrap_or_default();
    format!("{why}what the sites give back is being fetched; a site that is out of reach is waited for {away} s")
}

/// Until when there may be something left at a site: for so many seconds.
fn unconfirmed(most: u64) -> String {
    format!(
        "its agent has not confirmed its end; any processes there end by themselves within {most} s (1.5 times ISTHMUS_AWAY)"
    )
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
        let mut emptying = emptying::empty(&shared, &silent, &tell);
        let mut came = Came::default();
        let mut quiet = tokio::time::interval_at(Instant::now() + QUIET, QUIET);
        loop {
            tokio::select! {
                done = emptying.join_next() => match done {
                    Some(Ok(emptied)) => {
                        let failed = self.machine.verdict().problem.is_some();
                        came.take(emptied, failed).for_each(|news| self.printer.notice(news));
                    }
                    Some(Err(_)) => {}
                    None => break,
                },
                _ = quiet.tick() => {
                    let problem = self.machine.verdict().problem;
                    self.printer.notice(fetching(problem, self.silence));
                    quiet.reset_after(Duration::from_secs(3600));
                }
                Some(event) = events.recv() => match event {
                    Event::Interrupt(_) | Event::PartInterrupt { .. } | Event::PrintFailed => break,
                    Event::Fetching { site, how } => {
                        self.board.say(site, how);
                        self.tell_states();
                        self.show_progress();
                    }
                    event @ Event::FileFailed { .. } => self.handle(event),
                    _ => {}
                },
            }
        }
        emptying.abort_all();
        if let Some(problem) = came.problem.take() {
            self.unwritten.get_or_insert(problem);
        }
        let failed = self.machine.verdict().problem.is_some();
        let place = came.place(&self.subjobs, &self.name).into_iter();
        let missing = came.missing().into_iter().filter(|_| !failed);
        place.chain(missing).for_each(|news| self.printer.notice(news));
        self.machine.handle_staged_out();
        self.tell_states();
        self.show_progress();
    }

    /// Prints what is left and says how it went. Only a further interrupt stops the printing.
    pub(super) async fn finish(mut self, events: &mut mpsc::UnboundedReceiver<Event>) -> Outcome {
        for ways in self.meeting.take().into_iter().chain(self.carrying.take()) {
            ways.end().await;
        }
        let mut verdict = self.machine.verdict();
        self.printer.print(Print::Mark);
        loop {
            match events.recv().await {
                Some(event @ Event::FileFailed { .. }) => self.handle(event),
                Some(Event::Interrupt(_) | Event::PartInterrupt { .. } | Event::PrintFailed | Event::Marked) | None => {
                    break;
                }
                Some(_) => {}
            }
        }
        // What runs at a site that does not answer ends by itself.
        let most = self.shared.options.agents_silence().as_secs() + LEAVING;
        for site in self.connections.unconfirmed() {
            self.printer.notice_of(&self.subjobs[site].site, &unconfirmed(most));
        }
        // A job that is leaving takes no further verdict; one that lost output has not ended well.
        if let (0, Some(problem)) = (verdict.status, self.unwritten.take()) {
            (verdict.status, verdict.problem) = (1, Some(problem));
        }
        self.printer.tell(&JobEvent::end(
            verdict.status,
            verdict.problem.as_deref(),
            &verdict.hint,
        ));
        let links = self.worlds.links();
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
                Some(event) = events.recv() => if let Event::Interrupt(_) | Event::PartInterrupt { .. } | Event::PrintFailed = event { break },
            }
        }
        let problem = verdict.problem.as_deref();
        self.shared.gathered.over(verdict.status, problem, &verdict.hint).await;
        if let Some(session) = self.session {
            session.close(verdict.status, verdict.problem.as_deref(), &verdict.hint);
        }
        self.shared.access.close();
        let links = self.worlds.links();
        Outcome {
            notice: links.and_then(JobLinks::keep),
            links: links.map(JobLinks::report).unwrap_or_default(),
            paths: self.crossings.report(),
            began: self.worlds.have_begun(),
            unreached: self.unreached,
            status: verdict.status,
            problem: verdict.problem,
            hint: verdict.hint,
            statistics: self.statistics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_everywhere_is_told_once_and_what_is_missing_somewhere_with_its_site() {
        let site = |name: &str, missing: &[&str]| (name.to_owned(), missing.iter().map(|p| (*p).to_owned()).collect());
        let came = Came {
            files: 1,
            sites: vec![site("a", &["x", "y"]), site("b", &["x"])],
            problem: None,
        };
        let news = came.missing();
        assert_eq!(news[0], "site 'a': it has left nothing that is called 'y'");
        assert!(news[1].starts_with("no process has left a file that is called 'x': "));
        assert_eq!(news.len(), 2);
    }
}
