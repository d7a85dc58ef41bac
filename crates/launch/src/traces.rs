// SPDX-License-Identifier: Apache-2.0
//! Traces of the parts of a world that were started by hand, put together as one on one time line.
//!
//! Each part has recorded its own processes by the clock of its own launcher ([`crate::trace`]). Which message is which
//! both files say, so messages between parts tell how far their clocks are from each other: what goes there and back
//! bounds it from both sides, and the middle is right to half of the shortest round trip and what the times in both
//! files are right to.
//!
//! ```text
//!  sent by A at a, came to B at b:   b - a = way + (B's clock - A's), and no way is shorter than nothing
//! ```
//!
//! Files are read line by line, three times: ranks, then messages between parts, then everything. They may come from
//! anywhere, so lines, parts and messages that are remembered have bounds.

use crate::trace::{HEAD, LINKS, nanoseconds, shown};
use between::{Between, End, Set, pid, time};
use isthmus_job::gathering::MAX_PARTS;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

mod between;

/// Longest line. The last one says how good the clock of each site was: of each subjob of a job, with a name of 255
/// bytes, each of which may be written as six.
const LONGEST: u64 = 16 << 20;
/// Most processes of all parts.
const RANKS: usize = 1 << 20;
const TAIL: &str = "],\"otherData\":";

/// A trace of one part.
#[derive(Debug)]
pub struct Part<R> {
    /// For people.
    pub name: String,
    /// The file.
    pub file: R,
}

/// What was found out.
#[derive(Debug)]
pub struct Merged {
    /// That of the part with the lowest rank first.
    pub clocks: Vec<Clock>,
    /// Messages between parts that were too many to be remembered: they have no arrows, and tell nothing of clocks.
    pub forgotten: u64,
}

/// What was found out of the clock of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The part.
    pub name: String,
    /// How far it is ahead of that of the part with the lowest rank, nanoseconds.
    pub ahead: i64,
    /// How far it is ahead of that of a part that messages compare it with.
    pub compared: Compared,
}

/// How far the clock of a part is ahead of that of another one, with which it has exchanged messages both ways, or by
/// way of others. Parts that have done so with each other, and not with the one with the lowest rank, are compared with
/// one of them: how far that one is ahead is not known. It is taken as it was, as far as messages allow that went one
/// way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The other part; it may be itself.
    pub with: String,
    /// Nanoseconds.
    pub ahead: i64,
    /// Right to so many nanoseconds.
    pub right_to: u64,
}

/// Why there is no trace of all.
#[derive(Debug)]
pub enum Fault {
    /// A sentence about a part.
    Part(String),
    /// It cannot be written.
    Output(io::Error),
}

/// Writes the trace of all parts; what was found out.
///
/// # Errors
/// A part is no trace, or not of another part of the same world; or the trace cannot be written.
pub fn merge<R: BufRead + Seek>(parts: &mut [Part<R>], out: &mut impl Write) -> Result<Merged, Fault> {
    if parts.is_empty() {
        return Err(Fault::Part("no trace is named".to_owned()));
    }
    if parts.len() > MAX_PARTS as usize {
        return Err(Fault::Part(format!(
            "these are more than {MAX_PARTS} traces, and no world has more parts"
        )));
    }
    let mut heads = Vec::with_capacity(parts.len());
    let mut owners = HashMap::new();
    for number in 0..parts.len() {
        heads.push(look(parts, number, &mut owners)?);
    }
    let mut between = Between::new(parts.len());
    for (number, part) in parts.iter_mut().enumerate() {
        each_event(part, |event| {
            let Some(end) = End::of(event) else { return Ok(()) };
            if let Some(&other) = owners.get(&end.peer).filter(|owner| **owner != number) {
                between.note(end, number, other, heads[number].began);
            }
            Ok(())
        })?;
    }
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&number| heads[number].lowest);
    let rights: Vec<u64> = heads.iter().map(Head::right_to).collect();
    let clocks = between.clocks(&order, &rights);
    write(parts, &heads, &mut between, order[0], &clocks, out)?;
    let others = (0..parts.len()).filter(|number| *number != order[0]);
    let clock = |number: usize| {
        let Set { ahead, with, .. } = clocks[number];
        Clock {
            name: parts[number].name.clone(),
            ahead,
            compared: Compared {
                with: parts[with].name.clone(),
                ahead: ahead.saturating_sub(clocks[with].ahead),
                right_to: clocks[number].right_to,
            },
        }
    };
    Ok(Merged {
        clocks: std::iter::once(order[0]).chain(others).map(clock).collect(),
        forgotten: between.forgotten(),
    })
}

/// What a part's file says of all of it.
struct Head {
    /// Nanoseconds since 1970 by its clock.
    began: i64,
    lowest: u32,
    other: Value,
}

impl Head {
    /// What the worst clock inside the part is right to, nanoseconds: a message may go to one of its sites and another
    /// one come back from another.
    fn right_to(&self) -> u64 {
        let clocks = self.other["clocks"].as_object().into_iter().flatten();
        let rights = clocks.filter_map(|(_, clock)| clock["right_to_us"].as_f64());
        let worst = rights.map(nanoseconds).max().unwrap_or(0);
        u64::try_from(worst).unwrap_or(0)
    }
}

/// Reads who is in a part.
fn look<R: BufRead + Seek>(
    parts: &mut [Part<R>],
    number: usize,
    owners: &mut HashMap<u32, usize>,
) -> Result<Head, Fault> {
    // In order, so that the same is said of the same files each time.
    let mut ranks = BTreeSet::new();
    let other = each_event(&mut parts[number], |event| {
        let is_name = event["ph"] == "M" && event["name"] == "process_name";
        let rank = pid(event).filter(|rank| is_name && *rank != LINKS);
        ranks.extend(rank.filter(|_| ranks.len() < RANKS));
        Ok(())
    })?;
    let name = &parts[number].name;
    if owners.len() + ranks.len() > RANKS {
        return Err(Fault::Part(format!(
            "'{name}' has more than {RANKS} processes with those before"
        )));
    }
    let Some(began) = other["began_nanoseconds"].as_i64().filter(|began| *began >= 0) else {
        return Err(Fault::Part(format!("'{name}' does not say when it began")));
    };
    for &rank in &ranks {
        if let Some(there) = owners.insert(rank, number) {
            return Err(Fault::Part(format!(
                "'{}' and '{name}' both have rank {rank}: they are not traces of two parts of one world",
                parts[there].name
            )));
        }
    }
    Ok(Head {
        began,
        lowest: ranks.into_iter().min().unwrap_or(u32::MAX),
        other,
    })
}

/// Hands on each event of a file; what stands behind them.
fn each_event<R: BufRead + Seek>(
    part: &mut Part<R>,
    mut act: impl FnMut(&mut Value) -> Result<(), Fault>,
) -> Result<Value, Fault> {
    let Part { name, file } = part;
    file.seek(SeekFrom::Start(0))
        .map_err(|error| Fault::Part(format!("cannot read '{name}' more than once: {error}; name a file")))?;
    let mut number = 0_u64;
    let mut next = || -> Result<(u64, String), Fault> {
        number += 1;
        let mut line = Vec::new();
        let read = file.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        read.map_err(|error| Fault::Part(format!("cannot read '{name}': {error}")))?;
        let is_whole = line.last() == Some(&b'\n');
        line.truncate(line.len() - usize::from(is_whole));
        match String::from_utf8(line) {
            Ok(line) if is_whole => Ok((number, line)),
            Ok(line) if line.is_empty() && number > 1 => Err(Fault::Part(format!(
                "'{name}' has no end: the launcher that wrote it did not end well, or runs"
            ))),
            _ => Err(no_trace(name, number)),
        }
    };
    if next()?.1 != HEAD {
        return Err(no_trace(name, 1));
    }
    loop {
        let (number, line) = next()?;
        if let Some(other) = line.strip_prefix(TAIL).and_then(|rest| rest.strip_suffix('}')) {
            let other = serde_json::from_str(other).ok().filter(Value::is_object);
            return other.ok_or_else(|| no_trace(name, number));
        }
        let line = line.strip_suffix(',').unwrap_or(&line);
        if line.is_empty() {
            continue;
        }
        let event: Option<Value> = serde_json::from_str(line).ok().filter(Value::is_object);
        act(&mut event.ok_or_else(|| no_trace(name, number))?)?;
    }
}

fn no_trace(name: &str, line: u64) -> Fault {
    Fault::Part(format!(
        "'{name}' is not a trace that isthmus run --trace has written: line {line} is none of its lines"
    ))
}

fn write<R: BufRead + Seek>(
    parts: &mut [Part<R>],
    heads: &[Head],
    between: &mut Between,
    first: usize,
    clocks: &[Set],
    out: &mut impl Write,
) -> Result<(), Fault> {
    writeln!(out, "{HEAD}").map_err(Fault::Output)?;
    let (began, count) = (heads[first].began, parts.len() as u64 + 1);
    let (mut arrows, mut is_first) = (0, true);
    for (number, part) in parts.iter_mut().enumerate() {
        let shift = heads[number]
            .began
            .saturating_sub(clocks[number].ahead)
            .saturating_sub(began);
        let mut put = |event: &Value| {
            let before = if std::mem::take(&mut is_first) { "" } else { ",\n" };
            write!(out, "{before}{event}").map_err(Fault::Output)
        };
        each_event(part, |event| {
            let end = End::of(event);
            if let Some(at) = time(event) {
                event["ts"] = json!(shown(at.saturating_add(shift)));
            }
            // Arrows inside parts keep numbers of their own.
            if let Some(id) = event["id"].as_u64() {
                event["id"] = json!(id.wrapping_mul(count).wrapping_add(number as u64));
            }
            put(event)?;
            match end.and_then(|end| between.arrow(&end, number, clocks, &mut arrows)) {
                None => Ok(()),
                Some((phase, arrow)) => put(&json!({
                    "ph": phase, "bp": "e", "cat": "message", "name": "message",
                    "id": arrow.wrapping_mul(count).wrapping_add(count - 1), "pid": event["pid"], "tid": event["tid"],
                    "ts": event["ts"],
                })),
            }
        })?;
    }
    let lost = heads
        .iter()
        .filter_map(|head| head.other["events_not_recorded"].as_u64());
    let lost = lost.fold(0, u64::saturating_add);
    let of = |number: usize| {
        let Set { ahead, right_to, with } = clocks[number];
        let mut part = json!({
            "file": parts[number].name, "ahead_us": shown(ahead), "right_to_us": right_to as f64 / 1000.0,
            "clocks": heads[number].other["clocks"],
        });
        if with != first {
            part["right_to_us"] = Value::Null;
            part["compared"] = json!({
                "with": parts[with].name, "ahead_us": shown(ahead.saturating_sub(clocks[with].ahead)),
                "right_to_us": right_to as f64 / 1000.0,
            });
        }
        part
    };
    let all: Vec<Value> = (0..parts.len()).map(of).collect();
    let other = json!({
        "began": heads[first].other["began"], "began_nanoseconds": began, "events_not_recorded": lost, "parts": all,
        "messages_without_arrows": between.forgotten(),
    });
    writeln!(out, "\n{TAIL}{other}}}")
        .and_then(|()| out.flush())
        .map_err(Fault::Output)
}

#[cfg(test)]
mod tests;
