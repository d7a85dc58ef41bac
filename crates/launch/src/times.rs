// SPDX-License-Identifier: Apache-2.0
//! Where the time of the processes went, for people and as JSON.

use isthmus_wire::time::{SiteTime, Time, Wait};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Names of the levels of the network, by number.
pub(crate) const LEVELS: [&str; 5] = ["wide area", "local area", "machine", "vendor", "node"];
/// Most rows of calls for people.
const MOST_ROWS: usize = 20;

/// What of the time was computed, waited for messages, waited in collective operations, and waits now; of 1.
fn shares(time: &Time) -> [f64; 4] {
    let all = time.elapsed.max(1) as f64;
    [time.computed(), time.waited(false), time.waited(true), time.going_on].map(|part| part as f64 / all)
}

/// As JSON; times are sums over the processes, in seconds.
pub fn json(of: &SiteTime) -> Value {
    let time = &of.time;
    let calls = time.waits.iter().map(|wait| {
        json!({
            "call": wait.call, "kind": kind(wait), "level": level(wait), "waits": wait.times,
            "seconds": seconds(wait.nanoseconds),
        })
    });
    json!({
        "site": of.site, "processes": time.processes, "seconds": seconds(time.elapsed),
        "computing_seconds": seconds(time.computed()),
        "message_wait_seconds": seconds(time.waited(false)),
        "collective_wait_seconds": seconds(time.waited(true)),
        "waiting_now_seconds": seconds(time.going_on),
        "calls": calls.collect::<Vec<_>>(),
    })
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn kind(wait: &Wait) -> &'static str {
    if wait.collective { "collective" } else { "message" }
}

fn level(wait: &Wait) -> &'static str {
    LEVELS.get(usize::from(wait.level)).copied().unwrap_or("unknown")
}

/// A row per site: what its processes did with their time; `now`: also what they wait for at this moment.
pub fn by_site(times: &[SiteTime], now: bool) -> String {
    let mut text = format!(
        "{:<18}{:>10}{:>12}{:>12}{:>12}{:>13}",
        "SITE", "PROCESSES", "TIME EACH", "COMPUTING", "MESSAGES", "COLLECTIVES"
    );
    if now {
        let _ = write!(text, "{:>12}", "WAITING NOW");
    }
    for one in times {
        let each = seconds(one.time.elapsed) / f64::from(one.time.processes.max(1));
        let [computed, messages, collectives, going_on] =
            shares(&one.time).map(|share| format!("{:.1} %", share * 100.0));
        let _ = write!(
            text,
            "\n{:<18}{:>10}{:>12}{computed:>12}{messages:>12}{collectives:>13}",
            one.site,
            one.time.processes,
            format!("{each:.1} s")
        );
        if now {
            let _ = write!(text, "{going_on:>12}");
        }
    }
    text
}

/// A row per call and level, those that waited longest first.
pub fn by_call(times: &[SiteTime]) -> String {
    let mut all: Vec<(&str, &Wait)> = times
        .iter()
        .flat_map(|one| one.time.waits.iter().map(|wait| (one.site.as_str(), wait)))
        .collect();
    all.sort_by_key(|(_, wait)| std::cmp::Reverse(wait.nanoseconds));
    let mut text = format!(
        "{:<18}{:<26}{:<12}{:<12}{:>10}{:>12}{:>12}",
        "SITE", "CALL", "FOR", "LEVEL", "WAITS", "TOGETHER", "MEAN"
    );
    for (site, wait) in all.iter().take(MOST_ROWS) {
        let mean = seconds(wait.nanoseconds) / wait.times.max(1) as f64;
        let _ = write!(
            text,
            "\n{site:<18}{:<26}{:<12}{:<12}{:>10}{:>12}{:>12}",
            wait.call,
            kind(wait),
            level(wait),
            wait.times,
            format!("{:.2} s", seconds(wait.nanoseconds)),
            short(mean)
        );
    }
    if all.len() > MOST_ROWS {
        let _ = write!(text, "\n{} more that waited less", all.len() - MOST_ROWS);
    }
    text
}

fn short(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> SiteTime {
        let wait = |call: &str, collective, level, nanoseconds| Wait {
            call: call.into(),
            collective,
            level,
            times: 4,
            nanoseconds,
        };
        SiteTime {
            site: "home".into(),
            time: Time {
                processes: 2,
                elapsed: 20_000_000_000,
                going_on: 0,
                waits: vec![
                    wait("MPI_Recv", false, 0, 4_000_000_000),
                    wait("MPI_Allreduce", true, 4, 6_000_000_000),
                ],
            },
        }
    }

    #[test]
    fn sites_and_calls_are_tables() {
        let all = [home()];
        let sites = by_site(&all, false);
        for part in ["home", "10.0 s", "50.0 %", "20.0 %", "30.0 %"] {
            assert!(sites.contains(part), "{part}: {sites}");
        }
        let calls = by_call(&all);
        let first = calls.lines().nth(1).unwrap_or_default();
        for part in ["MPI_Allreduce", "collective", "node", "6.00 s", "1.5 s"] {
            assert!(first.contains(part), "{part}: {calls}");
        }
    }

    #[test]
    fn json_has_sums_and_calls() {
        let all = json(&home());
        assert_eq!(
            (all["computing_seconds"].as_f64(), all["message_wait_seconds"].as_f64()),
            (Some(10.0), Some(4.0))
        );
        assert_eq!(
            (&all["calls"][0]["level"], &all["calls"][0]["kind"]),
            (&json!("wide area"), &json!("message"))
        );
    }
}
