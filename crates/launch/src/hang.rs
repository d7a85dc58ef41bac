// SPDX-License-Identifier: Apache-2.0
//! Why a job does not go on: what all processes wait for, put together. Facts in, sentences out.

use isthmus_wire::control::Whereabouts;
use isthmus_wire::waiting::{ANY_TAG, ANYBODY, Item, Kind, Process};
use isthmus_wire::word::counted;
use std::collections::{BTreeMap, BTreeSet};

/// Most sentences of each kind.
const MOST: usize = 8;
/// Milliseconds without an arrival after which an operation that all have come to does not go on by itself.
const STUCK: u64 = 2000;

/// Ranks that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they do, as people read it.
    pub what: String,
    /// Who.
    pub ranks: Vec<u32>,
    /// For how long nothing has come for the one that waits shortest, milliseconds; `None`: they do not wait.
    pub idle: Option<u64>,
}

/// What all do, the largest group first.
pub fn groups(all: &Whereabouts) -> Vec<Group> {
    let mut found: BTreeMap<String, Group> = BTreeMap::new();
    for process in &all.processes {
        let what = doing(process);
        let group = found.entry(what.clone()).or_insert_with(|| Group {
            what,
            ranks: Vec::new(),
            idle: None,
        });
        group.ranks.push(process.rank);
        if let Some(waiting) = &process.waiting {
            group.idle = Some(group.idle.map_or(waiting.idle, |least| least.min(waiting.idle)));
        }
    }
    let mut groups: Vec<Group> = found.into_values().collect();
    groups.sort_by_key(|g| (std::cmp::Reverse(g.ranks.len()), g.ranks[0]));
    groups
}

fn of_rank(all: &Whereabouts, rank: u32) -> Option<&Process> {
    Some(&all.processes[all.processes.binary_search_by_key(&rank, |process| process.rank).ok()?])
}

/// What is probably wrong, the likeliest cause first.
pub fn suspicions(all: &Whereabouts) -> Vec<String> {
    let mut found = Vec::new();
    stopped(all, &mut found);
    for (from, to) in all.cuts.iter().take(MOST) {
        found.push(format!(
            "the link from {from} to {to} is cut off: messages wait until it is back or ISTHMUS_AWAY has passed"
        ));
    }
    let missed = unmatched(all, &mut found);
    collectives(all, &mut found);
    if missed.is_empty() {
        circles(all, &mut found);
    }
    awaited(all, &missed, &mut found);
    found
}

/// Ranks as ranges: `0-3, 7`.
pub fn ranges(ranks: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => parts.push((rank, rank)),
        }
    }
    let shown = parts.iter().take(16).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let more = if parts.len() > 16 { ", ..." } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

/// `rank 3`, `ranks 0-3`.
pub fn named(ranks: &[u32]) -> String {
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}", ranges(ranks))
}

fn is(ranks: &[u32]) -> &'static str {
    if ranks.len() == 1 { "is" } else { "are" }
}

/// Milliseconds as people say them.
pub fn time(milliseconds: u64) -> String {
    match milliseconds / 1000 {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3600),
    }
}

fn doing(process: &Process) -> String {
    let stopped = if process.stopped { "stopped by a signal, " } else { "" };
    let Some(waiting) = &process.waiting else {
        return match (process.ended, process.stopped) {
            (true, _) if !process.lost.is_empty() => format!("lost: {}", process.lost),
            (true, _) => "ended".to_owned(),
            _ if !process.unstarted.is_empty() => format!("not started: {}", process.unstarted),
            _ if process.unheard > 0 => format!("not heard: nothing has come from its site for {} s", process.unheard),
            (_, true) => "stopped by a signal".to_owned(),
            _ => "not waiting inside MPI: computing, or polling".to_owned(),
        };
    };
    let call = if waiting.call.is_empty() { "MPI" } else { &waiting.call };
    let pending: Vec<String> = waiting
        .items
        .iter()
        .filter(|item| item.kind != Kind::Unexpected)
        .take(3)
        .map(|item| pending(item, &waiting.call))
        .filter(|text| !text.is_empty())
        .collect();
    let old = match process.unheard {
        0 => String::new(),
        seconds => format!("; nothing has come from its site for {seconds} s"),
    };
    match pending.is_empty() {
        true => format!("{stopped}in {call}{old}"),
        false => format!("{stopped}in {call}: {}{old}", pending.join("; ")),
    }
}

/// A pending thing in words; nothing where the call says it all.
fn pending(item: &Item, call: &str) -> String {
    let bytes = match item.bytes {
        0 => String::new(),
        bytes => format!(", {}", counted(bytes, "byte")),
    };
    let tag = match item.tag {
        ANY_TAG => "any tag".to_owned(),
        tag => format!("tag {tag}"),
    };
    let place = communicator(item.context);
    match item.kind {
        Kind::Receive if !item.name.is_empty() => format!("{} to answer a {}", peer(item.peer), item.name),
        Kind::Receive => format!("a message from {}, {tag}{place}", peer(item.peer)),
        Kind::Incoming => format!("the data of a message from {}{bytes}", peer(item.peer)),
        Kind::Send => format!("{} to take a message, {tag}{place}{bytes}", peer(item.peer)),
        Kind::Outgoing => format!("{} to take the data of a message, {tag}{place}{bytes}", peer(item.peer)),
        Kind::Collective if is_call(call, &item.name) => communicator(item.context).trim_start_matches(", ").to_owned(),
        Kind::Collective => format!("{} of {}{place}", item.name, counted(item.size, "process")),
        Kind::Unexpected => String::new(),
    }
}

/// Whether a function is the blocking form of this operation.
fn is_call(call: &str, operation: &str) -> bool {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let call = call.strip_prefix("MPI_").unwrap_or(call);
    plain(call.strip_suffix("_c").unwrap_or(call)) == plain(operation)
}

/// Of messages that construct a communicator beside another one.
const ASIDE: u32 = 1 << 31;

fn communicator(context: u32) -> String {
    let made = match context & ASIDE {
        0 => "",
        _ => ", for a new communicator",
    };
    match context & !ASIDE {
        _ if context == u32::MAX => String::new(),
        2 | 3 => format!(", MPI_COMM_WORLD{made}"),
        4 | 5 => format!(", MPI_COMM_SELF{made}"),
        other => format!(", communicator {}{made}", other >> 1),
    }
}

fn peer(peer: u32) -> String {
    match peer {
        ANYBODY => "any rank".to_owned(),
        rank => format!("rank {rank}"),
    }
}

/// What is pending but messages that nobody has asked for.
fn items(process: &Process) -> impl Iterator<Item = &Item> {
    let all = process.waiting.iter().flat_map(|w| &w.items);
    all.filter(|item| item.kind != Kind::Unexpected)
}

fn stopped(all: &Whereabouts, found: &mut Vec<String>) {
    for process in all.processes.iter().filter(|p| p.stopped).take(MOST) {
        let Process { rank, site, pid, .. } = process;
        found.push(format!(
            "rank {rank} has been stopped by a signal (process {pid} at {site}); kill -CONT {pid} there continues it"
        ));
    }
    for process in all.processes.iter().filter(|p| p.swapped > 0).take(MOST) {
        let Process {
            rank, site, swapped, ..
        } = process;
        let megabytes = swapped >> 20;
        found.push(format!(
            "rank {rank} at {site} has {megabytes} MiB of its memory swapped out: it may only be slow"
        ));
    }
}

/// Receives beside messages that they do not match: wrong tags, sources, communicators. Gives the ranks that wait so.
fn unmatched(all: &Whereabouts, found: &mut Vec<String>) -> BTreeSet<u32> {
    let mut ranks = BTreeSet::new();
    for process in &all.processes {
        let Some(waiting) = &process.waiting else { continue };
        let there: Vec<&Item> = waiting.items.iter().filter(|i| i.kind == Kind::Unexpected).collect();
        for wanted in items(process).filter(|i| i.kind == Kind::Receive && i.name.is_empty()) {
            let from = |m: &&&Item| wanted.peer == ANYBODY || m.peer == wanted.peer;
            let near = there.iter().find(from).or_else(|| there.first());
            let Some(message) = near else { continue };
            let differs = match () {
                () if message.context != wanted.context => "another communicator",
                () if wanted.peer != ANYBODY && message.peer != wanted.peer => "another rank",
                () => "another tag",
            };
            ranks.insert(process.rank);
            if ranks.len() <= MOST {
                found.push(format!(
                    "rank {} waits for {}, but what has come is {differs}: {} from rank {}, tag {}{}",
                    process.rank,
                    pending(wanted, ""),
                    counted(message.bytes, "byte"),
                    message.peer,
                    message.tag,
                    communicator(message.context)
                ));
            }
        }
    }
    ranks
}

/// Operations that not all members have come to, different ones, and the same ones that do not go on.
fn collectives(all: &Whereabouts, found: &mut Vec<String>) {
    // Not all numbers up to the last: of processes that were added, some have ended.
    let everybody: Vec<u32> = all.processes.iter().map(|process| process.rank).collect();
    let mut groups: BTreeMap<(u32, Vec<u32>), Attendance<'_>> = BTreeMap::new();
    for process in &all.processes {
        for item in items(process).filter(|i| i.kind == Kind::Collective) {
            let members = match item.members.is_empty() && item.size as usize == everybody.len() {
                true => everybody.clone(),
                false => item.members.clone(),
            };
            let attendance = groups
                .entry((item.size, members.clone()))
                .or_insert((members, BTreeMap::new()));
            attendance.1.entry(process.rank).or_default().push(item);
        }
    }
    for (members, there) in groups.into_values().take(MOST) {
        let operations = alike(&there, |items| {
            let names: BTreeSet<&str> = items.iter().map(|item| &*item.name).collect();
            names.into_iter().collect::<Vec<_>>().join(" and ")
        });
        if operations.len() > 1 {
            let each = operations
                .iter()
                .map(|(name, ranks)| format!("{} {} in {name}", named(ranks), is(ranks)));
            found.push(format!(
                "members of one group have called different collective operations: {}",
                each.collect::<Vec<_>>().join(", ")
            ));
        }
        let missing: Vec<u32> = members.iter().copied().filter(|m| !there.contains_key(m)).collect();
        if !missing.is_empty() && missing.iter().all(|&rank| waits_outside(all, rank, &there)) {
            continue;
        }
        if missing.is_empty() {
            found.extend(stuck(all, &there).filter(|_| operations.len() == 1));
            continue;
        }
        found.push(not_come(all, &operations, &missing));
    }
}

/// Whether a process has come to the call in which others wait for it, and waits there for what is outside of the job,
/// as for somebody who connects.
fn waits_outside(all: &Whereabouts, rank: u32, there: &BTreeMap<u32, Vec<&Item>>) -> bool {
    let call = |rank| Some(&of_rank(all, rank)?.waiting.as_ref()?.call).filter(|call| !call.is_empty());
    let alone = of_rank(all, rank).is_some_and(|process| items(process).next().is_none());
    alone && call(rank).is_some() && there.keys().all(|&other| call(other) == call(rank))
}

/// Members of a group, and for each that has come what it waits for.
type Attendance<'a> = (Vec<u32>, BTreeMap<u32, Vec<&'a Item>>);

/// The ranks of which the same can be said, by what that is.
fn alike<T: Ord>(there: &BTreeMap<u32, Vec<&Item>>, of: impl Fn(&[&Item]) -> T) -> BTreeMap<T, Vec<u32>> {
    let mut found: BTreeMap<T, Vec<u32>> = BTreeMap::new();
    for (rank, items) in there {
        found.entry(of(items)).or_default().push(*rank);
    }
    found
}

/// Some members have come to operations, others have not.
fn not_come(all: &Whereabouts, operations: &BTreeMap<String, Vec<u32>>, missing: &[u32]) -> String {
    let there = sorted(&operations.values().flatten().copied().collect::<Vec<_>>());
    let names: Vec<&str> = operations.keys().map(String::as_str).collect();
    let mut where_they_are: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for &rank in missing {
        let doing = of_rank(all, rank).map_or_else(String::new, doing);
        where_they_are.entry(doing).or_default().push(rank);
    }
    let each = where_they_are
        .iter()
        .take(3)
        .map(|(doing, ranks)| format!("{} {} {doing}", named(ranks), is(ranks)));
    format!(
        "{} {} in {}; {} {} not: {}",
        named(&there),
        is(&there),
        names.join(" or "),
        named(missing),
        is(missing),
        each.collect::<Vec<_>>().join(", ")
    )
}

/// Why all members wait in an operation of the same name, and nothing has come to any of them for a while.
fn stuck(all: &Whereabouts, there: &BTreeMap<u32, Vec<&Item>>) -> Option<String> {
    let waits = |rank: &u32| {
        let waiting = of_rank(all, *rank).and_then(|p| p.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.idle >= STUCK)
    };
    let name = &there.values().next()?.first()?.name;
    let alone = there.values().all(|items| items.len() == 1);
    if !all.cuts.is_empty() || !alone || !there.keys().all(waits) {
        return None;
    }
    let contexts = alike(there, |items| items[0].context);
    if contexts.len() > 1 {
        let each = contexts.values().map(|ranks| named(ranks)).collect::<Vec<_>>();
        return Some(format!(
            "members of one group are in {name} on different communicators: {}",
            each.join("; ")
        ));
    }
    let steps = alike(there, |items| items[0].sequence);
    if steps.len() > 1 {
        let each = steps.values().map(|ranks| named(ranks)).collect::<Vec<_>>();
        return Some(format!(
            "members of one group are in {name}, but not in the same one: {}; before it they have not all called the same \
             operations",
            each.join("; ")
        ));
    }
    Some(format!(
        "all members of a group are in {name}, and nothing comes to any of them: they may have given different roots, lengths or \
         datatypes"
    ))
}

/// The rank that a process waits for, if it is one.
fn awaits(process: &Process) -> Option<u32> {
    // Processes that wait for answers of each other answer meanwhile.
    let mut items = items(process).filter(|i| i.name.is_empty() && matches!(i.kind, Kind::Receive | Kind::Send));
    items.find_map(|i| (i.peer != ANYBODY).then_some(i.peer))
}

/// Ranks that wait for each other.
fn circles(all: &Whereabouts, found: &mut Vec<String>) {
    let next: BTreeMap<u32, u32> = all
        .processes
        .iter()
        .filter_map(|p| Some((p.rank, awaits(p)?)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for &start in next.keys() {
        let (mut path, mut at) = (Vec::new(), start);
        while seen.insert(at) {
            path.push(at);
            match next.get(&at) {
                Some(&other) => at = other,
                None => break,
            }
        }
        let Some(begin) = path.iter().position(|&rank| rank == at && next.contains_key(&rank)) else {
            continue;
        };
        let circle = &path[begin..];
        if circle.len() < 2 || count == MOST {
            continue;
        }
        count += 1;
        let each = circle.iter().take(6).filter_map(|&rank| of_rank(all, rank));
        let each: Vec<String> = each.map(|p| format!("rank {} is {}", p.rank, doing(p))).collect();
        let more = if circle.len() > 6 {
            format!(", and {} more", circle.len() - 6)
        } else {
            String::new()
        };
        found.push(format!(
            "deadlock: {} wait for each other: {}{more}",
            named(&sorted(circle)),
            each.join("; ")
        ));
    }
}

fn sorted(ranks: &[u32]) -> Vec<u32> {
    let mut all = ranks.to_vec();
    all.sort_unstable();
    all
}

/// Ranks that wait for one that is elsewhere.
fn awaited(all: &Whereabouts, missed: &BTreeSet<u32>, found: &mut Vec<String>) {
    let mut count = 0;
    for process in all.processes.iter().filter(|p| !missed.contains(&p.rank)) {
        let Some(other) = awaits(process).and_then(|peer| of_rank(all, peer)) else {
            continue;
        };
        // Who waits for somebody itself is told of elsewhere.
        if awaits(other).is_some() || other.rank == process.rank || count == MOST {
            continue;
        }
        count += 1;
        found.push(format!(
            "rank {} is {}; rank {} is {}",
            process.rank,
            doing(process),
            other.rank,
            doing(other)
        ));
    }
}

/// Everything as text.
pub fn text(all: &Whereabouts) -> String {
    let mut text = String::new();
    for group in groups(all).iter().take(40) {
        let since = group
            .idle
            .map_or_else(String::new, |idle| format!(" for {}", time(idle)));
        text.push_str(&format!("{}: {}{since}\n", named(&group.ranks), group.what));
    }
    for suspicion in suspicions(all) {
        text.push_str(&format!("suspicion: {suspicion}\n"));
    }
    text
}

#[cfg(test)]
mod tests;
