// SPDX-License-Identifier: Apache-2.0
//! What a subjob, or a site of the sites file, asks of its scheduler.

use crate::allocation;
use crate::error::{JobError, JobErrors};
use crate::model::{check_count, to_count};
use crate::sites;
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
            errors.push(table.at_key(key, sites::needs_scheduler(site)));
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
