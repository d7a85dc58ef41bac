// SPDX-License-Identifier: Apache-2.0
//! What happens to a job, as lines of JSON: one object a line, `time` in seconds since 1970 and `event` in each.
//!
//! | event | fields |
//! |---|---|
//! | `begin` | job, processes, subjobs |
//! | `state` | site, state, detail; expected_start_unix_seconds: when a scheduler expects to start it, or null |
//! | `start` | sites, processes: a barrier opens |
//! | `drop` | site, problem |
//! | `lost` | site, ranks, problem: the job goes on without these processes |
//! | `substitute` | site, place, problem |
//! | `question` | site, problem |
//! | `exit` | rank, site, status or signal |
//! | `notice` | text |
//! | `end` | status, problem, hint |

use crate::progress::Progress;
use isthmus_wire::grid::Exit;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// One thing that happens to a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobEvent(Value);

impl JobEvent {
    pub(crate) fn begin(job: &str, processes: u32, subjobs: &[&str]) -> Self {
        Self::new(json!({"event": "begin", "job": job, "processes": processes, "subjobs": subjobs}))
    }

    pub(crate) fn state(now: &Progress) -> Self {
        Self::new(json!({
            "event": "state", "site": now.site, "state": now.word, "detail": now.detail,
            "expected_start_unix_seconds": now.starts,
        }))
    }

    pub(crate) fn start(sites: &[&str], processes: u32) -> Self {
        Self::new(json!({"event": "start", "sites": sites, "processes": processes}))
    }

    pub(crate) fn drop(site: &str, problem: &str) -> Self {
        Self::new(json!({"event": "drop", "site": site, "problem": problem}))
    }

    pub(crate) fn lost(site: &str, ranks: &[u32], problem: &str) -> Self {
        Self::new(json!({"event": "lost", "site": site, "ranks": ranks, "problem": problem}))
    }

    pub(crate) fn substitute(site: &str, place: &str, problem: &str) -> Self {
        Self::new(json!({"event": "substitute", "site": site, "place": place, "problem": problem}))
    }

    pub(crate) fn question(site: &str, problem: &str) -> Self {
        Self::new(json!({"event": "question", "site": site, "problem": problem}))
    }

    pub(crate) fn exit(rank: u32, site: &str, exit: Exit) -> Self {
        Self::new(match exit {
            Exit::Status(status) => json!({"event": "exit", "rank": rank, "site": site, "status": status}),
            Exit::Signal(signal) => json!({"event": "exit", "rank": rank, "site": site, "signal": signal}),
        })
    }

    pub(crate) fn notice(text: &str) -> Self {
        Self::new(json!({"event": "notice", "text": text}))
    }

    pub(crate) fn end(status: i32, problem: Option<&str>, hint: &str) -> Self {
        Self::new(json!({"event": "end", "status": status, "problem": problem, "hint": hint}))
    }

    /// Anything else, for the record of the job alone.
    pub(crate) fn other(value: Value) -> Self {
        Self::new(value)
    }

    fn new(mut value: Value) -> Self {
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64());
        value["time"] = json!((time * 1000.0).round() / 1000.0);
        Self(value)
    }

    /// As one line, without its newline.
    pub(crate) fn line(&self) -> String {
        self.0.to_string()
    }
}
