// SPDX-License-Identifier: Apache-2.0
//! `isthmus where`: what the processes of a job wait for, and why it may hang.

use crate::sessions::find;
use clap::Args;
use isthmus_launch::hang;
use isthmus_launch::session::Entry;
use isthmus_wire::control::{Reply, Request, Whereabouts};
use isthmus_wire::waiting::{ANY_TAG, ANYBODY, Item, Kind};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;
use std::time::Duration;

/// Show what each rank of a job waits for, and why the job may hang. A rank that has waited for a second or more says what for
#[derive(Args, Debug)]
pub(crate) struct Where {
    /// The job, as `isthmus ps` names it; not needed where only one runs
    job: Option<String>,
    /// Look again and again, until the job ends
    #[arg(long)]
    watch: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Seconds between two looks with --watch
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = crate::top::seconds)]
    interval: f64,
}

/// `isthmus where`.
pub(crate) fn whereabouts(arguments: &Where) -> ExitCode {
    match look(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            crate::complain(&format!("isthmus: error: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn look(arguments: &Where) -> Result<(), String> {
    let entry = find(arguments.job.as_deref())?;
    let clears = io::stdout().is_terminal() && arguments.watch && !arguments.json;
    loop {
        let all = match ask(&entry) {
            Ok(all) => all,
            // The job has ended meanwhile.
            Err(_) if arguments.watch && !entry.still_lives() => return Ok(()),
            Err(why) => return Err(why),
        };
        let text = match arguments.json {
            true => format!("{}\n", json(&entry.name, &all)),
            false => format!(
                "job {}, {} ranks\n{}",
                entry.name,
                all.processes.len(),
                hang::text(&all)
            ),
        };
        let before = if clears { "\x1b[H\x1b[2J" } else { "" };
        if write!(io::stdout(), "{before}{text}").is_err() || !arguments.watch {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs_f64(arguments.interval));
    }
}

fn ask(entry: &Entry) -> Result<Whereabouts, String> {
    match isthmus_launch::request(entry, &Request::Where)? {
        Reply::Where(all) => Ok(all),
        Reply::Refused(why) => Err(why),
        _ => Err(format!("the coordinator of job {} is of another version", entry.name)),
    }
}

fn json(job: &str, all: &Whereabouts) -> Value {
    let ranks = all.processes.iter().map(|p| {
        let waiting = p.waiting.as_ref().map(|w| {
            json!({
                "call": w.call,
                "seconds": w.idle as f64 / 1000.0,
                "pending": w.items.iter().map(item).collect::<Vec<_>>(),
                "more": w.more,
            })
        });
        json!({
            "rank": p.rank, "site": p.site, "pid": p.pid, "stopped": p.stopped, "swapped_bytes": p.swapped,
            "ended": p.ended, "waiting": waiting,
        })
    });
    json!({
        "job": job,
        "ranks": ranks.collect::<Vec<_>>(),
        "cut_links": all.cuts.iter().map(|(from, to)| json!({"from": from, "to": to})).collect::<Vec<_>>(),
        "suspicions": hang::suspicions(all),
    })
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
