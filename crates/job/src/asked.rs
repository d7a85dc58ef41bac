// SPDX-License-Identifier: Apache-2.0
//! What a subjob, or a site of the sites file, asks of its scheduler.

use crate::allocation;
use crate::attributes::{Operator, Setting};
use crate::error::{JobError, JobErrors};
use crate::model::{Subjob, check_count, to_count};
use crate::source::Table;
use isthmus_wire::grid::{Allocation, Scheduler};

const ASKED: [&str; 6] = ["queue", "account", "limit", "nodes", "exclusive", "directives"];

/// Whether anything is asked, but for which scheduler it is.
pub(crate) fn is_any(table: &Table<'_>) -> bool {
    ASKED.into_iter().any(|key| table.has(key))
}

/// What is asked; `usual` is the scheduler that is meant when none is named. All that is wrong goes to `errors`.
pub(crate) fn read(
    table: &Table<'_>,
    site: &str,
    usual: Option<Scheduler>,
    errors: &mut JobErrors,
) -> Option<Allocation> {
    let word = errors.take(table.text("scheduler"))?;
    let scheduler = match &word {
        Some(word) => errors.take(table.point("scheduler", allocation::scheduler(word))),
        None => Some(usual),
    };
    match scheduler {
        Some(Some(scheduler)) => Some(of_scheduler(scheduler, table, site, errors)),
        Some(None) => {
            let key = ASKED.into_iter().find(|key| table.has(key))?;
            errors.push(table.at_key(key, needs_scheduler(site)));
            None
        }
        // Whichever it was meant to be, the rest is looked at too.
        None => {
            of_scheduler(Scheduler::Slurm, table, site, errors);
            None
        }
    }
}

fn of_scheduler(scheduler: Scheduler, table: &Table<'_>, site: &str, errors: &mut JobErrors) -> Allocation {
    let mut text = |key: &str| errors.take(table.text(key)).flatten().unwrap_or_default();
    let (queue, account) = (text("queue"), text("account"));
    Allocation {
        scheduler,
        queue,
        account,
        limit: errors
            .take(table.meaning("limit", allocation::limit))
            .flatten()
            .unwrap_or(0),
        nodes: errors.take(tally(table, "nodes", site)).flatten().unwrap_or(0),
        exclusive: errors.take(table.flag("exclusive")).flatten().unwrap_or(false),
        directives: errors.take(table.texts("directives")).flatten().unwrap_or_default(),
    }
}

/// A number of processes, or of nodes for them.
pub(crate) fn tally(table: &Table<'_>, key: &str, site: &str) -> Result<Option<u32>, JobError> {
    let Some(number) = table.integer(key)? else {
        return Ok(None);
    };
    if number < 1 {
        let what = if key == "nodes" { "nodes" } else { "processes" };
        let error = JobError::new(format!("site '{site}' is asked for {number} {what}"));
        return Err(table.at_key(key, error.hint("ask for at least 1")));
    }
    let count = to_count(number).and_then(|count| check_count(site, count).map(|()| count));
    table.point(key, count).map(Some)
}

/// Somebody asks for a queue of nobody.
pub(crate) fn needs_scheduler(site: &str) -> JobError {
    let words = allocation::schedulers()[1..].join(", ");
    JobError::new(format!(
        "site '{site}' asks for a queue, nodes or limits but names no scheduler"
    ))
    .hint(format!("add scheduler: one of {words}"))
}

/// With a scheduler, what is for it is asked of it, unless the same is asked already.
pub(crate) fn of_requests(subjob: &mut Subjob) {
    let Some(mut asked) = subjob.allocation.take() else {
        return;
    };
    let wall = subjob.request("maxWallTime").is_some();
    subjob.requests.retain(|request| {
        let Some(text) = request.values.first().and_then(Setting::text) else {
            return true;
        };
        let number = text.parse::<u32>().ok();
        match (request.attribute.name, request.operator, number) {
            ("queue", Operator::Equal, _) => or_text(&mut asked.queue, text),
            ("project", Operator::Equal, _) => or_text(&mut asked.account, text),
            ("hostCount", Operator::Equal, Some(number)) => or_number(&mut asked.nodes, number),
            // Of which kind they are goes on being told: each scheduler has words of its own for it.
            ("hostCount", Operator::Equal, None) if text.contains(':') => {
                let number = text.split(':').next().and_then(|number| number.parse().ok());
                or_number(&mut asked.nodes, number.unwrap_or(0));
                return true;
            }
            ("maxWallTime", Operator::Equal, Some(number)) => or_number(&mut asked.limit, number.saturating_mul(60)),
            ("maxTime", Operator::Equal, Some(number)) if !wall && asked.limit == 0 => {
                or_number(&mut asked.limit, number.saturating_mul(60));
            }
            _ => return true,
        }
        false
    });
    subjob.allocation = Some(asked);
}

fn or_text(text: &mut String, other: &str) {
    if text.is_empty() {
        other.clone_into(text);
    }
}

fn or_number(number: &mut u32, other: u32) {
    if *number == 0 {
        *number = other;
    }
}
