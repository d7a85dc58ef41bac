// SPDX-License-Identifier: Apache-2.0
//! Traces of the parts of a world that were started by hand, put together as one on one time line.
//!
//! Each part has recorded its own processes by the clock of its own launcher ([`crate::trace`]). Which message is which
//! both files say, so messages between parts tell how far their clocks are from each other: what goes there and back
//! bounds it from both sides, and the middle is right to half of the shortest round trip.
//!
//! ```text
//!  sent by A at a, came to B at b:   b - a = way + (B's clock - A's), and no way is shorter than nothing
//! ```
//!
//! Files are read line by line, three times: ranks, then messages between parts, then everything. They may come from
//! anywhere, so lines, parts and messages that are remembered have bounds.

use crate::trace::{HEAD, IN, LINKS, OUT, nanoseconds, shown};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

/// Most parts.
pub const MOST_PARTS: usize = 64;
/// Longest line: an event.
const LONGEST: u64 = 64 << 10;
/// Most processes of all parts.
const RANKS: usize = 1 << 20;
/// Most messages between parts that are remembered, the first ones; others get no arrows.
const MESSAGES: usize = 1 << 20;
const TAIL: &str = "],\"otherData\":";

/// A trace of one part.
#[derive(Debug)]
pub struct Part<R> {
    /// For people.
    pub name: String,
    /// The file.
    pub file: R,
}

/// What was found out of the clock of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The part.
    pub name: String,
    /// How far it is ahead of that of the part with the lowest rank, nanoseconds.
    pub ahead: i64,
    /// It is right to so many nanoseconds; `None`: no messages went both ways, and it is taken as it was, as far as
    /// messages that went one way allow.
    pub right_to: Option<u64>,
}

/// Why there is no trace of all.
#[derive(Debug)]
pub enum Fault {
    /// A sentence about a part.
    Part(String),
    /// It cannot be written.
    Output(io::Error),
}

/// Writes the trace of all parts; what was found out of their clocks, that of the part with the lowest rank first.
///
/// # Errors
/// A part is no trace, or not of another part of the same world; or the trace cannot be written.
pub fn merge<R: BufRead + Seek>(parts: &mut [Part<R>], out: &mut impl Write) -> Result<Vec<Clock>, Fault> {
    if parts.len() > MOST_PARTS {
        return Err(Fault::Part(format!("these are more than {MOST_PARTS} traces")));
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
            if owners.get(&end.peer).is_some_and(|owner| *owner != number) {
                between.note(end, number, heads[number].began);
            }
            Ok(())
        })?;
    }
    let first = (0..parts.len()).min_by_key(|&number| heads[number].lowest).unwrap_or(0);
    let clocks = between.clocks(first);
    write(parts, &heads, &mut between, first, &clocks, out)?;
    let order = std::iter::once(first).chain((0..parts.len()).filter(|number| *number != first));
    Ok(order
        .map(|number| Clock {
            name: parts[number].name.clone(),
            ahead: clocks[number].0,
            right_to: clocks[number].1,
        })
        .collect())
}

/// What a part's file says of all of it.
struct Head {
    /// Nanoseconds since 1970 by its clock.
    began: i64,
    lowest: u32,
    other: Value,
}

/// Reads who is in a part.
fn look<R: BufRead + Seek>(
    parts: &mut [Part<R>],
    number: usize,
    owners: &mut HashMap<u32, usize>,
) -> Result<Head, Fault> {
    let mut ranks = HashSet::new();
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

fn pid(event: &Value) -> Option<u32> {
    u32::try_from(event["pid"].as_u64()?).ok()
}

/// Nanoseconds since the part began.
fn time(event: &Value) -> Option<i64> {
    event["ts"].as_f64().map(nanoseconds)
}

/// A message: sender, receiver, context, and which of them it is.
type Name = (u32, u32, u32, u64);

/// An event that is one end of a message.
struct End {
    name: Name,
    peer: u32,
    at: i64,
    is_sent: bool,
}

impl End {
    fn of(event: &Value) -> Option<Self> {
        if event["ph"] != "X" || event["cat"] != "message" {
            return None;
        }
        let (rank, at, args) = (pid(event)?, time(event)?, &event["args"]);
        let word = |key: &str| u32::try_from(args[key].as_u64()?).ok();
        let (peer, context, number) = (word("peer")?, word("context")?, args["number"].as_u64()?);
        let is_sent = match u32::try_from(event["tid"].as_u64()?).ok()? {
            OUT => true,
            IN => false,
            _ => return None,
        };
        let (from, to) = if is_sent { (rank, peer) } else { (peer, rank) };
        Some(Self {
            name: (from, to, context, number),
            peer,
            at,
            is_sent,
        })
    }
}

/// A message between two parts.
#[derive(Default)]
struct Known {
    /// Where, and when by the clock of that part.
    sent: Option<(usize, i64)>,
    came: Option<(usize, i64)>,
    /// The number of its arrow, once that has one.
    arrow: Option<u64>,
}

/// What goes between parts.
struct Between {
    messages: HashMap<Name, Known>,
    /// The shortest way from one part to another, by their clocks.
    shortest: Vec<Vec<Option<i64>>>,
}

impl Between {
    fn new(parts: usize) -> Self {
        Self {
            messages: HashMap::new(),
            shortest: vec![vec![None; parts]; parts],
        }
    }

    fn note(&mut self, end: End, part: usize, began: i64) {
        if self.messages.len() >= MESSAGES && !self.messages.contains_key(&end.name) {
            return;
        }
        let known = self.messages.entry(end.name).or_default();
        let side = if end.is_sent { &mut known.sent } else { &mut known.came };
        if side.is_some() {
            return;
        }
        *side = Some((part, began.saturating_add(end.at)));
        if let (Some((from, sent)), Some((to, came))) = (known.sent, known.came) {
            let way = came.saturating_sub(sent);
            let shortest = &mut self.shortest[from][to];
            *shortest = Some(shortest.map_or(way, |known| known.min(way)));
        }
    }

    /// How far the clock of each part is ahead of that of one of them, and what it is right to.
    fn clocks(&self, first: usize) -> Vec<(i64, Option<u64>)> {
        let mut clocks: Vec<Option<(i64, u64)>> = vec![None; self.shortest.len()];
        clocks[first] = Some((0, 0));
        let mut done = vec![false; clocks.len()];
        // The surest one next, over parts whose clocks are surer.
        while let Some((_, from)) = (0..clocks.len())
            .filter(|&at| !done[at])
            .filter_map(|at| Some((clocks[at]?.1, at)))
            .min()
        {
            done[from] = true;
            let Some((ahead, error)) = clocks[from] else { continue };
            for to in 0..clocks.len() {
                let (Some(there), Some(back)) = (self.shortest[from][to], self.shortest[to][from]) else {
                    continue;
                };
                let more = error.saturating_add(there.saturating_add(back).unsigned_abs() / 2);
                if clocks[to].is_none_or(|(_, known)| more < known) && !done[to] {
                    let between = there.saturating_sub(back) / 2;
                    clocks[to] = Some((ahead.saturating_add(between), more));
                }
            }
        }
        let guess = |at: usize| {
            let known = |other: usize| clocks[other].map(|(ahead, _)| ahead);
            let mut ahead = 0_i64;
            for other in 0..clocks.len() {
                let Some(theirs) = known(other) else { continue };
                if let Some(way) = self.shortest[other][at] {
                    ahead = ahead.min(theirs.saturating_add(way));
                }
                if let Some(way) = self.shortest[at][other] {
                    ahead = ahead.max(theirs.saturating_sub(way));
                }
            }
            ahead
        };
        let of = |at: usize| match clocks[at] {
            Some((ahead, error)) => (ahead, Some(error)),
            None => (guess(at), None),
        };
        (0..clocks.len()).map(of).collect()
    }
}

fn write<R: BufRead + Seek>(
    parts: &mut [Part<R>],
    heads: &[Head],
    between: &mut Between,
    first: usize,
    clocks: &[(i64, Option<u64>)],
    out: &mut impl Write,
) -> Result<(), Fault> {
    writeln!(out, "{HEAD}").map_err(Fault::Output)?;
    let (began, count) = (heads[first].began, parts.len() as u64 + 1);
    let (mut arrows, mut is_first) = (0, true);
    for (number, part) in parts.iter_mut().enumerate() {
        let shift = heads[number]
            .began
            .saturating_sub(clocks[number].0)
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
        json!({
            "file": parts[number].name, "ahead_us": clocks[number].0 as f64 / 1000.0,
            "right_to_us": clocks[number].1.map(|error| error as f64 / 1000.0), "clocks": heads[number].other["clocks"],
        })
    };
    let all: Vec<Value> = (0..parts.len()).map(of).collect();
    let other = json!({
        "began": heads[first].other["began"], "began_nanoseconds": began, "events_not_recorded": lost, "parts": all,
    });
    writeln!(out, "\n{TAIL}{other}}}")
        .and_then(|()| out.flush())
        .map_err(Fault::Output)
}

impl Between {
    /// The arrow that begins or ends at one end of a message, in a part. There is none where the other end is not
    /// known, or where it would point backwards: clocks drift.
    fn arrow(
        &mut self,
        end: &End,
        part: usize,
        clocks: &[(i64, Option<u64>)],
        arrows: &mut u64,
    ) -> Option<(&'static str, u64)> {
        let known = self.messages.get_mut(&end.name)?;
        let at = |(part, at): (usize, i64)| at.saturating_sub(clocks[part].0);
        let (sent, came) = (known.sent?, known.came?);
        let own = if end.is_sent { sent } else { came };
        if own.0 != part || at(came) <= at(sent) {
            return None;
        }
        let arrow = *known.arrow.get_or_insert_with(|| {
            *arrows += 1;
            *arrows
        });
        Some((if end.is_sent { "s" } else { "f" }, arrow))
    }
}

#[cfg(test)]
mod tests;
