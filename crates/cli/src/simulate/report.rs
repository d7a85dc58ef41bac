// SPDX-License-Identifier: Apache-2.0
//! The result of a simulation as text and as JSON.

use super::ask::Form;
use super::budget::Coarse;
use super::simulated::Simulated;
use isthmus_schedule::{Blocks, Candidate, Factor, MARGIN};
use isthmus_simulate::{Kind, LinkUse, Record};
use isthmus_topology::Level;
use isthmus_wire::word::counted;
use serde_json::{Value, json};

/// Ranks and links that are listed one by one.
const LISTED: usize = 32;
/// Longest sequence of steps of a critical path of which repetitions are found.
const LONGEST: usize = 8;
/// Lines of a critical path that are shown of its beginning, and of its end; repetitions are one.
const SHOWN: usize = 16;

/// What `isthmus simulate` prints.
pub(super) fn simulated(all: &Simulated) -> String {
    format!("{}{}{}{}{}", head(all), levels(all), links(all), ranks(all), path(all))
}

/// What `isthmus explain` prints.
pub(super) fn explained(all: &Simulated, candidates: &[Candidate]) -> String {
    format!("{}{}{}{}", head(all), choices(candidates), levels(all), path(all))
}

/// What `isthmus simulate --json` prints.
pub(super) fn json(all: &Simulated) -> Value {
    let outcome = &all.outcome;
    let levels = Level::ALL.map(|level| {
        json!({
            "level": level.key(),
            "messages": outcome.crossings.messages[level.index()],
            "bytes": outcome.crossings.bytes[level.index()],
        })
    });
    let links = outcome.links.iter().map(|link| {
        json!({
            "level": link.level.key(),
            "from": end_of(all, link, link.from),
            "to": (link.to != u32::MAX).then(|| end_of(all, link, link.to)),
            "messages": link.messages,
            "bytes": link.bytes,
            "busy_seconds": seconds(link.busy),
        })
    });
    let path = outcome.critical_path();
    json!({
        "operation": all.asked.name,
        "block_bytes": bytes(all),
        "sizes": all.asked.size,
        "root": all.asked.call.root,
        "processes": outcome.finished.len(),
        "seconds": seconds(outcome.time()),
        "finished_seconds": outcome.finished.iter().map(|t| seconds(*t)).collect::<Vec<_>>(),
        "levels": levels,
        "links": links.collect::<Vec<Value>>(),
        "critical_path": path.iter().filter(|_| !outcome.path_dropped).map(step).collect::<Vec<_>>(),
        "critical_path_whole": !outcome.path_dropped,
        "events": outcome.events,
        "pieces": all.coarse.map(|c| json!({ "library_bytes": c.library, "simulated_bytes": c.simulated, "steps": c.steps })),
    })
}

/// What `isthmus explain --json` prints: the same, and what could be chosen.
pub(super) fn explained_json(all: &Simulated, candidates: &[Candidate]) -> Value {
    let factor = |f: &Factor| json!({ "name": f.name, "seconds": seconds(f.time) });
    let candidate = |c: &Candidate| {
        let tiers = c.tiers.iter().map(|t| {
            json!({ "level": t.level.key(), "councils": t.councils, "members": t.members, "algorithm": t.algorithm.to_string() })
        });
        json!({
            "algorithm": c.algorithm,
            "seconds": seconds(c.total),
            "opening_seconds": seconds(c.opening),
            "leaders": c.leaders,
            "pieces": c.pieces.0,
            "piece_bytes": c.pieces.1,
            "natively": c.natively,
            "chosen": c.chosen,
            "factors": c.factors.iter().map(factor).collect::<Vec<_>>(),
            "tiers": tiers.collect::<Vec<_>>(),
        })
    };
    let mut value = json(all);
    value["candidates"] = candidates.iter().map(candidate).collect();
    value
}

/// Of nanoseconds.
fn seconds(time: u64) -> f64 {
    time as f64 / 1e9
}

fn step(record: &Record) -> Value {
    json!({
        "kind": record.kind.name(),
        "level": record.level.key(),
        "rank": record.rank,
        "peer": record.peer,
        "bytes": record.bytes,
        "begin_seconds": seconds(record.begin),
        "end_seconds": seconds(record.end),
    })
}

/// Bytes of the call's block, where all are alike.
fn bytes(all: &Simulated) -> Option<u64> {
    let call = &all.asked.call;
    matches!(call.blocks, Blocks::Equal(_)).then(|| call.blocks.size(0) * call.unit_bytes)
}

fn head(all: &Simulated) -> String {
    let (processes, sites) = (all.outcome.finished.len(), all.grid.sites.len());
    let root = match all.asked.call.operation.is_rooted() {
        true => format!(", root {}", all.asked.call.root),
        false => String::new(),
    };
    let form = match &all.asked.form {
        Form::Whole => String::new(),
        Form::Grid(dims) => format!(" in a closed grid of {dims:?}"),
        Form::Groups(low) => format!(" in two groups, of {low} and {}", processes as u32 - low),
    };
    let mut text = format!(
        "{} of {}{root}, {} on {}{form}: {}\n",
        all.asked.name,
        all.asked.size,
        counted(processes, "process"),
        counted(sites, "site"),
        time(all.outcome.time())
    );
    text.push_str(&processors(all));
    if let Some(Coarse {
        library,
        simulated,
        steps,
    }) = all.coarse
    {
        text.push_str(&format!(
            "in pieces of {simulated} bytes; the library's are of {library}, so it is done sooner (--exact simulates those: {} million steps)\n",
            steps / 1_000_000
        ));
    }
    text
}

/// On what the choice rests that concerns nodes. (Simulated processes have a processor each.)
fn processors(all: &Simulated) -> String {
    match all.grid.links.processors {
        u32::MAX => "each process has a processor of its own, unless the topology file says 'processors'\n".to_owned(),
        few => format!("chosen for nodes of {few} processors\n"),
    }
}

/// All candidates in declared order with what they cost, the chosen one in detail.
fn choices(candidates: &[Candidate]) -> String {
    if candidates.is_empty() {
        return "\ncandidates: this operation knows one way only\n".to_owned();
    }
    let mut text = format!(
        "\n{:<18}{:>14}{:>10}{:>12}  made of\n",
        "candidate", "cost", "pieces", "bytes"
    );
    for candidate in candidates {
        let (pieces, size) = candidate.pieces;
        let mark = if candidate.chosen { "* " } else { "  " };
        let natively = if candidate.natively { ", vendor" } else { "" };
        let name = format!("{mark}{}{natively}", candidate.algorithm);
        let mut factors = candidate.factors.iter();
        let first = factors.next().map(factor).unwrap_or_default();
        text.push_str(&format!(
            "{name:<18}{:>14}{pieces:>10}{size:>12}  {first}\n",
            time(candidate.total)
        ));
        for other in factors {
            text.push_str(&format!("{:<56}{}\n", "", factor(other)));
        }
        if candidate.opening > 0 {
            let more = time(candidate.opening);
            text.push_str(&format!(
                "{:<56}({more} more over idle connections, whose windows open)\n",
                ""
            ));
        }
    }
    text.push_str(&reason(candidates));
    for choice in candidates.iter().filter(|c| c.chosen).flat_map(|c| &c.tiers) {
        text.push_str(&format!(
            "{:<14}{} of at most {}: {}\n",
            choice.level.name(),
            choice.councils,
            counted(choice.members, "member"),
            choice.algorithm
        ));
    }
    text
}

/// Why the chosen one is chosen, which need not cost least.
fn reason(candidates: &[Candidate]) -> String {
    let Some(chosen) = candidates.iter().find(|c| c.chosen) else {
        return String::new();
    };
    let rivals = candidates.iter().filter(|c| c.natively == chosen.natively);
    let least = rivals.min_by_key(|c| c.total).unwrap_or(chosen);
    let (is_least, cheapest) = (chosen.total <= least.total, time(least.total));
    let why = if is_least {
        "it costs least".to_owned()
    } else if chosen.total > least.total.saturating_add(least.total / MARGIN) {
        format!(
            "the processes share memory and meet there, although '{}' is estimated at {cheapest}",
            least.algorithm
        )
    } else {
        let idle = match chosen.opening < least.opening {
            true => " and need not wait for windows to open",
            false => "",
        };
        format!(
            "the first in the list of those that cost at most {:.1} % more than the cheapest ('{}', {cheapest}){idle}; estimates are no better \
             than that, and what loads slow links least stands first",
            100.0 / MARGIN as f64,
            least.algorithm
        )
    };
    format!(
        "* chosen: {why}\n  (costs are estimates by formula, from which all processes choose alike; the time above is that of every message simulated)\n"
    )
}

fn factor(factor: &Factor) -> String {
    format!("{} {}", time(factor.time), factor.name)
}

fn levels(all: &Simulated) -> String {
    let mut text = format!("\n{:<12}{:>14}{:>20}\n", "level", "messages", "bytes");
    let crossings = &all.outcome.crossings;
    for level in Level::ALL {
        let (messages, bytes) = (crossings.messages[level.index()], crossings.bytes[level.index()]);
        if messages > 0 {
            text.push_str(&format!("{:<12}{messages:>14}{bytes:>20}\n", level.name()));
        }
    }
    text
}

/// The links of the slow levels, busiest first.
fn links(all: &Simulated) -> String {
    let mut slow: Vec<&LinkUse> = all.outcome.links.iter().collect();
    slow.retain(|l| l.level <= Level::LocalArea);
    slow.sort_by_key(|l| std::cmp::Reverse(l.busy));
    if slow.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<44}{:>10}{:>18}{:>12}{:>6}\n",
        "link", "messages", "bytes", "occupied", "use"
    );
    for link in slow.iter().take(LISTED) {
        let name = format!("{} -> {}", end_of(all, link, link.from), end_of(all, link, link.to));
        let part = u128::from(link.busy) * 100 / u128::from(all.outcome.time().max(1));
        let busy = time(link.busy);
        text.push_str(&format!(
            "{name:<44}{:>10}{:>18}{busy:>12}{part:>5}%\n",
            link.messages, link.bytes
        ));
    }
    if slow.len() > LISTED {
        text.push_str(&format!("and {} links more\n", slow.len() - LISTED));
    }
    text
}

/// Name of an end of a link.
fn end_of(all: &Simulated, link: &LinkUse, end: u32) -> String {
    match link.level {
        Level::WideArea => all.grid.sites[end as usize].clone(),
        Level::LocalArea => format!("machine {end}"),
        Level::Machine | Level::Vendor => format!("node {end}"),
        Level::Node => format!("rank {end}"),
    }
}

fn ranks(all: &Simulated) -> String {
    let finished = &all.outcome.finished;
    let mut order: Vec<usize> = (0..finished.len()).collect();
    order.sort_by_key(|&rank| finished[rank]);
    let say = |rank: usize| format!("rank {rank} after {}", time(finished[rank]));
    if finished.len() > LISTED {
        let (first, middle, last) = (order[0], order[order.len() / 2], order[order.len() - 1]);
        return format!(
            "\ndone: first {}, half of them until {}, last {}\n",
            say(first),
            time(finished[middle]),
            say(last)
        );
    }
    let lines: Vec<String> = (0..finished.len()).map(|rank| format!("  {}\n", say(rank))).collect();
    format!("\ndone:\n{}", lines.concat())
}

fn path(all: &Simulated) -> String {
    if all.outcome.path_dropped {
        return "\ncritical path: not kept, there are too many messages\n".to_owned();
    }
    let path = all.outcome.critical_path();
    let steps: Vec<String> = path.iter().map(told).collect();
    let runs = runs(&steps);
    let mut text = "\ncritical path:\n".to_owned();
    let mut at = 0;
    for (i, &(period, times)) in runs.iter().enumerate() {
        let run = &path[at..at + period * times];
        at += period * times;
        if i >= SHOWN && i + SHOWN < runs.len() {
            if i == SHOWN {
                text.push_str(&format!("  ... {} lines more\n", runs.len() - 2 * SHOWN));
            }
            continue;
        }
        // Of steps that follow one another again and again, the first ones; alone, how long all of them take.
        for record in &run[..period] {
            let end = if period == 1 { run[times - 1].end } else { record.end };
            let (begin, length) = (time(record.begin), time(end - record.begin));
            let often = if period == 1 && times > 1 {
                format!(", {times} times")
            } else {
                String::new()
            };
            text.push_str(&format!("  at {begin:>11} for {length:>11}  {}{often}\n", told(record)));
        }
        if period > 1 && times > 1 {
            let end = time(run[run.len() - 1].end);
            text.push_str(&format!("  the last {period} lines {times} times, until {end}\n"));
        }
    }
    text
}

/// Steps as runs: the length of what is repeated, and how often it stands there.
fn runs(steps: &[String]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < steps.len() {
        let left = &steps[at..];
        let times = |period: &usize| {
            let same = |n: &usize| left[n * period..].get(..*period) == Some(&left[..*period]);
            (1..).take_while(same).count() + 1
        };
        let periods = (1..=LONGEST.min(left.len())).map(|period| (period, times(&period)));
        let (period, times) = periods
            .filter(|(_, times)| *times > 1)
            .max_by_key(|(period, times)| (period * times, std::cmp::Reverse(*period)))
            .unwrap_or((1, 1));
        runs.push((period, times));
        at += period * times;
    }
    runs
}

fn told(record: &Record) -> String {
    let Record { rank, peer, bytes, .. } = record;
    match record.kind {
        Kind::Send => format!("rank {rank} sends {bytes} bytes to rank {peer}"),
        Kind::Link => format!("{}: rank {rank} to rank {peer}, {bytes} bytes", record.level),
        Kind::Receive => format!("rank {rank} receives {bytes} bytes from rank {peer}"),
        Kind::Compute => format!("rank {rank} combines or copies"),
    }
}

/// Nanoseconds with a unit, four digits.
pub(super) fn time(nanoseconds: u64) -> String {
    let n = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.3} us", n / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", n / 1e6),
        _ => format!("{:.3} s", n / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn repetitions_are_found() {
        let steps = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        assert_eq!(runs(&steps("abbbbc")), [(1, 1), (1, 4), (1, 1)]);
        assert_eq!(runs(&steps("xabcabcabcy")), [(1, 1), (3, 3), (1, 1)]);
        assert_eq!(runs(&steps("aaaa")), [(1, 4)]);
        assert_eq!(runs(&steps("")), []);
    }
}
