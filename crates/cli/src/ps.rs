// SPDX-License-Identifier: Apache-2.0
//! `isthmus ps`: the jobs on this machine, and those whose coordinators are at other sites.

use crate::{elsewhere, reach};
use clap::Args;
use isthmus_job::JobError;
use isthmus_launch::session::Entry;
use isthmus_launch::{expected, queued};
use isthmus_wire::control::{Reply, Request};
use isthmus_wire::joined::Joined;
use serde_json::{Value, json};
use std::process::ExitCode;

/// List your jobs
///
/// Lists running jobs, and ended ones whose logs still exist, on this machine or at other sites.
#[derive(Args, Debug)]
pub(crate) struct Ps {
    /// A line for each subjob
    #[arg(short, long)]
    long: bool,
    /// List the jobs whose launchers are at this site; `home` is this machine; repeatable
    #[arg(short, long = "site", value_name = "SITE")]
    sites: Vec<String>,
    /// List the jobs of this machine and of all sites in the sites file
    #[arg(short, long, conflicts_with = "sites")]
    all: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What the list is made of.
#[derive(Default)]
struct Listed {
    /// The jobs, as JSON, in the order of the sites.
    jobs: Vec<Value>,
    /// Sites that did not tell, and why.
    problems: Vec<Problem>,
}

struct Problem {
    site: String,
    error: JobError,
}

/// `isthmus ps`.
pub(crate) fn ps(arguments: &Ps) -> ExitCode {
    let sites = match (arguments.all, arguments.sites.as_slice()) {
        (false, []) => vec!["home".to_owned()],
        (_, named) => match reach::catalogue().and_then(|catalogue| reach::named_sites(&catalogue, named)) {
            Ok(names) => names,
            Err(errors) => return crate::diagnostic::refuse(&errors),
        },
    };
    let listed = list(&sites);
    if arguments.json {
        let problems = listed.problems.iter();
        let problems: Vec<Value> = problems
            .map(|p| json!({ "site": p.site, "problem": p.error.problem }))
            .collect();
        crate::json::print("ps", json!({ "jobs": listed.jobs, "problems": problems }));
    } else {
        print(&listed.jobs, arguments.long);
        if listed.jobs.is_empty() && listed.problems.is_empty() {
            crate::complain(match sites.as_slice() {
                [home] if home == "home" => "isthmus: no jobs are running on this machine",
                _ => "isthmus: no jobs are running there",
            });
        }
    }
    for Problem { site, error } in &listed.problems {
        let problem = format!("site '{site}': {}", error.problem);
        crate::diagnostic::refuse(&JobError {
            problem,
            ..error.clone()
        });
    }
    match listed.problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Asks all sites at the same time.
fn list(sites: &[String]) -> Listed {
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asking: Vec<_> = sites.iter().map(|site| scope.spawn(move || of_site(site))).collect();
        asking.into_iter().map(|thread| thread.join()).collect()
    });
    let mut listed = Listed::default();
    for (site, answer) in sites.iter().zip(answers) {
        let broken = |_| Err(JobError::new("asking it failed"));
        match answer.unwrap_or_else(broken) {
            Ok(jobs) => listed.jobs.extend(jobs),
            Err(error) => listed.problems.push(Problem {
                site: site.clone(),
                error,
            }),
        }
    }
    listed
}

fn of_site(site: &str) -> Result<Vec<Value>, JobError> {
    if site == "home" {
        return Ok(Entry::all().into_iter().map(|entry| Row::of(entry).json()).collect());
    }
    let mut jobs = elsewhere::jobs(site)?;
    for job in &mut jobs {
        job["site"] = json!(site);
    }
    Ok(jobs)
}

/// As a table.
fn print(jobs: &[Value], long: bool) {
    if jobs.is_empty() {
        return;
    }
    let text = |value: &Value, key: &str| isthmus_reach::one_line(value[key].as_str().unwrap_or_default());
    let identifiers: Vec<String> = jobs
        .iter()
        .map(|job| match job["site"].as_str() {
            Some(site) => format!("{site}/{}", text(job, "job")),
            None => text(job, "job"),
        })
        .collect();
    let wide = identifiers.iter().map(|i| i.chars().count()).max().unwrap_or(0).max(8) + 2;
    // As wide as the longest name; no column where no job has one.
    let widest = jobs.iter().filter_map(|job| job["name"].as_str()).map(str::len).max();
    let name = |name: &str| widest.map_or_else(String::new, |most| format!("{name:<0$}", most.max(4) + 2));
    crate::print(&format!(
        "{:<wide$}{}{:<10}{:>6}  {:<14}COMMAND",
        "JOB",
        name("NAME"),
        "AGE",
        "RANKS",
        "STATE"
    ));
    let now = isthmus_launch::now();
    for (job, identifier) in jobs.iter().zip(&identifiers) {
        let until = job["ended_unix_seconds"].as_u64().unwrap_or(now);
        let age = age(until.saturating_sub(job["started_unix_seconds"].as_u64().unwrap_or(until)));
        let status = job["status"].as_i64().map(|status| format!(" ({status})"));
        let state = format!("{}{}", text(job, "state"), status.unwrap_or_default());
        let words = job["words"].as_array().into_iter().flatten().filter_map(Value::as_str);
        crate::print(&isthmus_reach::one_line(&format!(
            "{identifier:<wide$}{}{age:<10}{:>6}  {state:<14}{}",
            name(&text(job, "name")),
            job["processes"].as_u64().unwrap_or(0),
            words.collect::<Vec<_>>().join(" ")
        )));
        if let Some(left) = job["seconds_left"].as_u64() {
            crate::print(&format!(
                "  lost its launcher, {left} s left; isthmus attach {identifier} takes it up again"
            ));
        }
        for subjob in job["subjobs"].as_array().into_iter().flatten().filter(|_| long) {
            let (site, state) = (text(subjob, "site"), text(subjob, "state"));
            let since = subjob["since_unix_seconds"].as_u64().filter(|_| state == "queued");
            let detail = expected(
                &queued(&text(subjob, "detail"), since, now),
                subjob["expected_start_unix_seconds"].as_u64(),
                now,
            );
            let processes = subjob["processes"].as_u64().unwrap_or(0);
            crate::print(format!("  {site:<18}{processes:>6}  {state:<14}{detail}").trim_end());
        }
        for line in crate::joined::lines(&crate::joined::read(&job["joined"]))
            .iter()
            .filter(|_| long)
        {
            crate::print(&format!("  {line}"));
        }
    }
}

struct Row {
    entry: Entry,
    committed: bool,
    subjobs: Vec<Value>,
    joined: Vec<Joined>,
}

impl Row {
    fn of(entry: Entry) -> Self {
        let (committed, subjobs, joined) = match isthmus_launch::request(&entry, &Request::Status) {
            Ok(Reply::Status {
                committed,
                subjobs,
                joined,
            }) => (committed, subjobs, joined),
            _ => (false, Vec::new(), Vec::new()),
        };
        let subjobs = subjobs.into_iter().map(|s| {
            json!({
                "site": s.name, "state": s.state, "detail": s.detail, "processes": s.processes,
                "since_unix_seconds": (s.since > 0).then_some(s.since),
                "expected_start_unix_seconds": (s.starts > 0).then_some(s.starts),
            })
        });
        Self {
            entry,
            committed,
            subjobs: subjobs.collect(),
            joined,
        }
    }

    fn state(&self) -> &'static str {
        match self.entry.outcome() {
            Some(_) => "ended",
            None if self.entry.seconds_left().is_some() => "lost",
            None if !self.entry.lives => "killed",
            None if self.committed => "running",
            // Nothing of the job runs before the last of its subjobs has left its queue.
            None if self.subjobs.iter().any(|subjob| subjob["state"] == "queued") => "queued",
            None => "starting",
        }
    }

    fn json(&self) -> Value {
        let outcome = self.entry.outcome();
        json!({
            "job": self.entry.name,
            "name": self.entry.chosen_name(),
            "site": null,
            "pid": self.entry.pid(),
            "started_unix_seconds": self.entry.started(),
            "ended_unix_seconds": self.entry.ended(),
            "processes": self.entry.processes(),
            "background": self.entry.is_background(),
            "state": self.state(),
            "seconds_left": self.entry.seconds_left(),
            "status": outcome.map(|(status, _, _)| status),
            "words": self.entry.words(),
            "subjobs": self.subjobs,
            "joined": crate::joined::json(&self.joined),
        })
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        s @ 0..120 => format!("{s}s"),
        s @ 120..7200 => format!("{}min", s / 60),
        s @ 7200..172_800 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        assert_eq!([5, 300, 7300, 200_000].map(age), ["5s", "5min", "2h", "2d"]);
    }
}
