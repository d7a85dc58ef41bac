// SPDX-License-Identifier: Apache-2.0
//! What a look at a site says: for the sites file, for people, as JSON.

use crate::diagnostic::at;
use crate::rates::span;
use crate::reach;
use isthmus_job::JobError;
use isthmus_job::catalogue::{Catalogue, Entry, Value};
use isthmus_job::quantity::show_rate;
use isthmus_reach::{Access, Remote, Seen};
use isthmus_wire::calendar;
use isthmus_wire::service::{Facts, Queue};
use isthmus_wire::word::counted;
use serde_json::json;
use std::time::Duration;

/// A site's look: how it is described, and what was seen.
pub(crate) type Look = Result<(Entry, Seen), JobError>;

/// Looks at all of these at once.
pub(crate) fn look_all(
    catalogue: &Catalogue,
    access: &Access,
    names: &[String],
    limit: Duration,
) -> Vec<(String, Look)> {
    std::thread::scope(|scope| {
        let looks: Vec<_> = names
            .iter()
            .map(|name| {
                let look = scope.spawn(move || -> Look {
                    let entry = reach::site(catalogue, name)?;
                    let remote = Remote {
                        access,
                        contact: &entry.contact,
                        setup: &entry.setup,
                    };
                    let seen = remote.look(limit).map_err(|failure| at(name, &failure))?;
                    Ok((entry, seen))
                });
                (name, look)
            })
            .collect();
        let lost = |_| Err(JobError::new("the look at it failed; please report this"));
        looks
            .into_iter()
            .map(|(name, look)| (name.clone(), look.join().unwrap_or_else(lost)))
            .collect()
    })
}

/// The queue that jobs go to: the one that is named, the usual one, the first open one.
pub(crate) fn queue<'a>(facts: &'a Facts, entry: &Entry) -> Option<&'a Queue> {
    let asked = entry.allocation.as_ref()?;
    let queues = || facts.queues.iter().filter(|q| q.scheduler == asked.scheduler);
    let named = queues().find(|q| !asked.queue.is_empty() && q.name == asked.queue);
    named
        .or_else(|| queues().find(|q| q.usual))
        .or_else(|| queues().find(|q| q.open))
}

/// What would be good to have in the sites file.
pub(crate) fn suggestions(seen: &Seen, entry: &Entry) -> Vec<(&'static str, Value)> {
    let facts = &seen.facts;
    let mut values = Vec::new();
    let scheduler = entry
        .allocation
        .as_ref()
        .map(|a| a.scheduler)
        .or_else(|| facts.schedulers.first().copied());
    if let Some(scheduler) = scheduler {
        values.push(("scheduler", Value::Text(scheduler.keyword().to_owned())));
        let of = || facts.queues.iter().filter(|q| q.scheduler == scheduler);
        let open: Vec<_> = of().filter(|q| q.open).collect();
        // A scheduler that has no usual queue wants one to be named.
        if !of().any(|q| q.usual) {
            values.extend(open.first().map(|q| ("queue", Value::Text(q.name.clone()))));
        }
        if let [account] = facts.accounts.as_slice() {
            values.push(("account", Value::Text(account.clone())));
        }
    }
    values
}

/// For the table `found` of the sites file.
pub(crate) fn table(seen: &Seen) -> Vec<(String, Value)> {
    let facts = &seen.facts;
    let mut rows: Vec<(&str, Value)> = vec![
        ("looked", Value::Text(calendar::day_of(isthmus_launch::now()))),
        ("host", Value::Text(facts.host.clone())),
        ("architecture", Value::Text(facts.architecture.clone())),
        ("system", Value::Text(facts.system.clone())),
        ("processors", Value::Number(facts.processors.into())),
        ("cores", Value::Number(cores(facts).into())),
        ("memory", Value::Text(size(facts.memory))),
        ("shared_home", Value::Flag(facts.shared_home)),
    ];
    rows.extend(facts.addresses.first().map(|a| ("address", Value::Text(a.clone()))));
    let lists = [
        (
            "queues",
            facts.queues.iter().map(|q| q.name.clone()).collect::<Vec<_>>(),
        ),
        ("accounts", facts.accounts.clone()),
        (
            "mpi",
            facts.mpis.iter().map(|m| format!("{} ({})", m.name, m.text)).collect(),
        ),
        ("compilers", facts.compilers.iter().map(|m| m.text.clone()).collect()),
    ];
    rows.extend(
        lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(key, list)| (key, Value::Texts(list))),
    );
    if !facts.modules.is_empty() {
        rows.push(("modules", Value::Text(facts.modules.clone())));
    }
    rows.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Processors that jobs can have there.
pub(crate) fn cores(facts: &Facts) -> u32 {
    let of_queues = facts.queues.iter().map(|q| q.cores).max().unwrap_or(0);
    if of_queues > 0 { of_queues } else { facts.processors }
}

/// For people.
pub(crate) fn lines(seen: &Seen) -> Vec<String> {
    let facts = &seen.facts;
    let mut lines = vec![format!(
        "{}, {}, {}, {}, {}",
        facts.host,
        facts.architecture,
        counted(facts.processors, "processor"),
        size(facts.memory),
        facts.system
    )];
    match facts.schedulers.as_slice() {
        [] => lines.push("no scheduler: processes are started there at once".to_owned()),
        list => {
            let names: Vec<_> = list.iter().map(|s| s.keyword()).collect();
            lines.push(format!("scheduler {}", names.join(", ")));
        }
    }
    lines.extend(facts.queues.iter().map(|q| {
        let limit = if q.limit > 0 {
            format!(", at most {}", span(q.limit))
        } else {
            String::new()
        };
        let state = if q.open { "" } else { ", closed" };
        format!(
            "queue {}: {} of {} free, {} waiting{limit}{state}",
            q.name,
            q.free,
            counted(q.cores, "core"),
            counted(q.pending, "job")
        )
    }));
    if !facts.accounts.is_empty() {
        lines.push(format!("accounts {}", facts.accounts.join(", ")));
    }
    lines.extend(facts.mpis.iter().map(|m| format!("MPI {} ({})", m.name, m.text)));
    if !facts.modules.is_empty() {
        lines.push(format!("modules: {}", facts.modules));
    }
    let home = if facts.shared_home {
        "on a file system that nodes share"
    } else {
        "local"
    };
    lines.push(format!("home {} ({home})", facts.home));
    if seen.round_trip > 0.0 {
        let rate = seen
            .rate
            .map_or_else(String::new, |r| format!(", {}", show_rate(rounded(r / 8.0))));
        lines.push(format!("round trip {:.1} ms{rate} through ssh", seen.round_trip * 1e3));
    }
    lines
}

/// Three digits.
fn rounded(value: f64) -> u64 {
    let value = value.max(1.0);
    let unit = 10f64.powi((value.log10().floor() as i32 - 2).max(0));
    ((value / unit).round() * unit) as u64
}

/// What is wrong with a site for jobs.
pub(crate) fn problems(entry: &Entry, seen: &Seen) -> Vec<String> {
    let facts = &seen.facts;
    let mut problems = Vec::new();
    let Some(asked) = &entry.allocation else {
        return problems;
    };
    let scheduler = asked.scheduler;
    if !facts.schedulers.contains(&scheduler) {
        problems.push(format!(
            "the sites file names {scheduler} as its scheduler, but its commands are missing or do not answer (are modules or set-up commands missing?)"
        ));
        return problems;
    }
    let queues: Vec<_> = facts.queues.iter().filter(|q| q.scheduler == scheduler).collect();
    if !asked.queue.is_empty() && !queues.is_empty() {
        match queues.iter().find(|q| q.name == asked.queue) {
            None => {
                let names: Vec<_> = queues.iter().map(|q| q.name.as_str()).collect();
                problems.push(format!("there is no queue '{}', but {}", asked.queue, names.join(", ")));
            }
            Some(queue) if !queue.open => problems.push(format!("queue '{}' is closed", queue.name)),
            Some(queue) if queue.limit > 0 && asked.limit > queue.limit => {
                problems.push(format!(
                    "queue '{}' allows {}, the sites file asks for {}",
                    queue.name,
                    span(queue.limit),
                    span(asked.limit)
                ));
            }
            Some(_) => {}
        }
    }
    if !asked.account.is_empty() && !facts.accounts.is_empty() && !facts.accounts.contains(&asked.account) {
        problems.push(format!(
            "account '{}' is not among {}",
            asked.account,
            facts.accounts.join(", ")
        ));
    }
    problems
}

/// As JSON, with everything that can be selected by.
pub(crate) fn json(name: &str, entry: &Entry, seen: &Seen) -> serde_json::Value {
    let facts = &seen.facts;
    let known = |n: u32| (n != Queue::UNKNOWN).then_some(n);
    let used = queue(facts, entry);
    let scheduled = entry.allocation.is_some();
    let idle = f64::from(facts.processors) - f64::from(facts.load) / 100.0;
    let queues: Vec<_> = facts
        .queues
        .iter()
        .map(|q| {
            json!({
                "scheduler": q.scheduler.keyword(), "name": q.name, "nodes": q.nodes, "cores": q.cores, "free": q.free,
                "memory_bytes": q.memory, "limit_seconds": q.limit, "running": q.running, "pending": q.pending,
                "wait_seconds": known(q.wait), "open": q.open, "usual": q.usual,
            })
        })
        .collect();
    let named = |list: &[isthmus_wire::service::Named]| -> Vec<_> {
        list.iter().map(|n| json!({ "name": n.name, "text": n.text })).collect()
    };
    json!({
        "site": name,
        "contact": entry.contact.to_string(),
        "lan": entry.lan.clone().unwrap_or_else(|| name.to_owned()),
        "host": facts.host,
        "architecture": facts.architecture,
        "system": facts.system,
        "scheduler": entry.allocation.as_ref().map_or("fork", |a| a.scheduler.keyword()),
        "queue": used.map(|q| q.name.clone()),
        "nodes": used.map_or(1, |q| q.nodes.max(1)),
        "cores": used.map_or(facts.processors, |q| q.cores).min(entry.processes.unwrap_or(u32::MAX)),
        "free": used.map_or_else(|| if scheduled { 0 } else { idle.max(0.0) as u32 }, |q| if q.open { q.free } else { 0 })
            .min(entry.processes.unwrap_or(u32::MAX)),
        "memory_bytes": used.map(|q| q.memory).filter(|m| *m > 0).unwrap_or(facts.memory),
        "load": f64::from(facts.load) / 100.0,
        "wait_seconds": if scheduled { used.and_then(|q| known(q.wait)) } else { Some(0) },
        "limit_seconds": used.map(|q| q.limit).filter(|l| *l > 0),
        "running": used.map(|q| q.running),
        "pending": used.map(|q| q.pending),
        "queues": queues,
        "schedulers": facts.schedulers.iter().map(|s| s.keyword()).collect::<Vec<_>>(),
        "accounts": facts.accounts,
        "compilers": named(&facts.compilers),
        "mpis": named(&facts.mpis),
        "modules": facts.module_names,
        "module_system": facts.modules,
        "addresses": facts.addresses,
        "interfaces": named(&facts.interfaces),
        "shared_home": facts.shared_home,
        "round_trip_seconds": seen.round_trip,
        "bits_per_second": seen.rate,
    })
}

/// A size with a unit.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 100.0 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!([0, 59, 3600, 90_061].map(span), ["0s", "59s", "1h", "1d 1h"]);
        assert_eq!([1, 1536, 1 << 34].map(size), ["1 B", "1.5 KiB", "16.0 GiB"]);
    }
}
