// SPDX-License-Identifier: Apache-2.0
//! `isthmus where`: what the processes of a job wait for, and why it may hang.

use crate::joined;
use crate::sessions::with;
use clap::Args;
use isthmus_launch::hang;
use isthmus_launch::session::Entry;
use isthmus_wire::control::{Reply, Request, Whereabouts};
use isthmus_wire::waiting::{ANY_TAG, ANYBODY, Item, Kind, Process};
use isthmus_wire::word::counted;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Show what each rank waits for, and why the job may hang
///
/// Ranks report waits of a second or more.
#[derive(Args, Debug)]
pub(crate) struct Where {
    /// The job: its name, its identifier or the beginning of one, or SITE/JOB; not needed where only one runs
    job: Option<String>,
    /// Repeat until the job ends
    #[arg(long)]
    watch: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Seconds between updates with --watch
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = crate::top::seconds)]
    interval: f64,
}

impl Where {
    /// The job that is meant.
    pub(crate) fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }
}

/// `isthmus where`.
pub(crate) fn whereabouts(arguments: &Where) -> ExitCode {
    with(arguments.job.as_deref(), |entry| look(entry, arguments))
}

fn look(entry: Entry, arguments: &Where) -> Result<ExitCode, String> {
    let interval = Duration::from_secs_f64(arguments.interval);
    if crate::screen::there_is_one() && arguments.watch && !arguments.json {
        return on_screen(entry, interval);
    }
    loop {
        let all = match ask(&entry) {
            Ok(all) => all,
            // The job has ended meanwhile.
            Err(_) if arguments.watch && !entry.still_lives() => return Ok(ExitCode::SUCCESS),
            Err(why) => return Err(why),
        };
        let text = match arguments.json {
            true => format!("{}\n", json(&entry.name, &all)),
            false => text(&entry.name, &all),
        };
        if !crate::put(text.as_bytes()) || !arguments.watch || !crate::reader::waits(interval) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn text(job: &str, all: &Whereabouts) -> String {
    let mut joined = joined::lines(&all.joined).join("\n");
    if !joined.is_empty() {
        joined.push('\n');
    }
    format!(
        "job {job}, {}{}\n{joined}{}",
        counted(all.processes.len(), "rank"),
        parts(all),
        hang::text(all)
    )
}

/// Whose ranks are where, if there are several sites or programs: `: 0-3 home, 4-5 home+1`, `: 0-3 atm, 4-5 ocn`.
/// Processes that were spawned or added
/// have numbers behind those of MPI_COMM_WORLD.
fn parts(all: &Whereabouts) -> String {
    let differ = |of: fn(&Process) -> &str| all.processes.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]));
    let (sites, programs) = (differ(|p| &p.site), differ(|p| &p.program));
    let alike = all
        .processes
        .chunk_by(|a, b| a.site == b.site && a.program == b.program);
    let parts: Vec<String> = alike
        .map(|those| {
            let ranks: Vec<u32> = those.iter().map(|p| p.rank).collect();
            let mut words = vec![hang::ranges(&ranks)];
            words.extend(sites.then(|| isthmus_reach::one_line(&those[0].site)));
            words.extend(programs.then(|| isthmus_reach::one_line(&those[0].program)));
            words.join(" ")
        })
        .collect();
    match parts.as_slice() {
        [] | [_] => String::new(),
        several => format!(": {}", several.join(", ")),
    }
}

fn on_screen(entry: Entry, interval: Duration) -> Result<ExitCode, String> {
    crate::screen::show(interval, move || match ask(&entry) {
        Ok(all) => {
            let text = text(&entry.name, &all);
            Ok(Some(Box::new(move |_| text.clone()) as crate::screen::Picture))
        }
        Err(_) if !entry.still_lives() => Ok(None),
        Err(why) => Err(why),
    })
}

fn ask(entry: &Entry) -> Result<Whereabouts, String> {
    match isthmus_launch::request(entry, &Request::Where)? {
        Reply::Where(all) => Ok(all),
        Reply::Refused(why) => Err(why),
        _ => Err(format!("the launcher of job {} is of another version", entry.name)),
    }
}

fn json(job: &str, all: &Whereabouts) -> Value {
    let ranks = all.processes.iter().map(|p| {
        let waiting = p.waiting.as_ref().map(|w| {
            json!({
                "call": w.call,
                "waited_seconds": w.idle as f64 / 1000.0,
                "pending": w.items.iter().map(item).collect::<Vec<_>>(),
                "more": w.more,
            })
        });
        json!({
            "rank": p.rank, "site": p.site, "program": p.program, "pid": p.pid, "stopped": p.stopped, "swapped_bytes": p.swapped,
            "unheard_seconds": p.unheard, "unstarted": (!p.unstarted.is_empty()).then_some(&p.unstarted),
            "ended": p.ended, "lost": (!p.lost.is_empty()).then_some(&p.lost), "waiting": waiting,
        })
    });
    let fields = json!({
        "job": job,
        "ranks": ranks.collect::<Vec<_>>(),
        "cut_links": all.cuts.iter().map(|(from, to)| json!({"from": from, "to": to})).collect::<Vec<_>>(),
        "joined": joined::json(&all.joined),
        "suspicions": hang::suspicions(all),
    });
    crate::json::document("where", fields)
}

fn item(item: &Item) -> Value {
    let kind = match item.kind {
        Kind::Receive => "receive",
        Kind::Incoming => "incoming",
        Kind::Send => "send",
        Kind::Outgoing => "outgoing",
        Kind::Collective => "collective",
        Kind::Unexpected => "unexpected",
    };
    json!({
        "kind": kind,
        "peer": (item.peer != ANYBODY).then_some(item.peer),
        "tag": (item.tag != ANY_TAG).then_some(item.tag),
        "context": (item.context != u32::MAX).then_some(item.context),
        "bytes": (item.bytes > 0).then_some(item.bytes),
        "operation": (!item.name.is_empty()).then_some(&item.name),
    })
}
