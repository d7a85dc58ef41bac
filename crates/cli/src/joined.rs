// SPDX-License-Identifier: Apache-2.0
//! With whom processes of a job are connected, for people and as JSON: `isthmus ps`, `where` and `top`.

use isthmus_launch::hang;
use isthmus_wire::joined::{Group, Joined};
use isthmus_wire::word::counted;
use serde_json::{Value, json};

/// Most lines.
const MOST: usize = 16;

/// A line each: `connected: ranks 0-1 with 2 processes of job tank at lab (n1)`.
pub(crate) fn lines(all: &[Joined]) -> Vec<String> {
    let line = |joined: &Joined| {
        let with: Vec<String> = joined.with.iter().map(group).collect();
        format!("connected: {} with {}", hang::named(&joined.ranks), with.join(", "))
    };
    let mut lines: Vec<String> = all.iter().take(MOST).map(line).collect();
    if let Some(more) = all.len().checked_sub(MOST + 1) {
        lines.push(format!("connected: {} more", counted(more + 1, "group")));
    }
    lines
}

fn group(group: &Group) -> String {
    let (site, host) = (
        isthmus_reach::one_line(&group.site),
        isthmus_reach::one_line(&group.host),
    );
    let of = match group.job.as_str() {
        "" => String::new(),
        job => format!(" of job {}", isthmus_reach::one_line(job)),
    };
    format!("{}{of} at {site} ({host})", counted(group.processes, "process"))
}

/// The same as JSON.
pub(crate) fn json(all: &[Joined]) -> Vec<Value> {
    let group =
        |group: &Group| json!({"job": group.job, "site": group.site, "host": group.host, "processes": group.processes});
    all.iter()
        .map(|joined| json!({"ranks": joined.ranks, "with": joined.with.iter().map(group).collect::<Vec<_>>()}))
        .collect()
}

/// What was written so, of a job at another site too. What is not as it should be is left out.
pub(crate) fn read(value: &Value) -> Vec<Joined> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let group = |value: &Value| Group {
        world: [0; 16],
        job: text(&value["job"]),
        site: text(&value["site"]),
        host: text(&value["host"]),
        processes: number(&value["processes"]).unwrap_or(0),
    };
    let joined = |value: &Value| Joined {
        ranks: list(&value["ranks"]).iter().filter_map(number).collect(),
        with: list(&value["with"]).iter().map(group).collect(),
    };
    list(value).iter().map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_connected_with_whom_is_a_line() {
        let group = |job: &str, site: &str, processes| Group {
            world: [1; 16],
            job: job.into(),
            site: site.into(),
            host: "n1".into(),
            processes,
        };
        let joined = Joined {
            ranks: vec![0, 1],
            with: vec![group("tank", "lab", 2), group("", "ho\u{1b}me", 1)],
        };
        let said = lines(std::slice::from_ref(&joined));
        assert!(
            said[0].starts_with("connected: ranks 0-1 with 2 processes of job tank at lab (n1), 1 process at ho"),
            "{said:?}"
        );
        assert!(!said[0].contains('\u{1b}'), "what others say moves no cursor: {said:?}");
        let many = lines(&vec![joined.clone(); MOST + 3]);
        assert_eq!(many.last().map(String::as_str), Some("connected: 3 groups more"));
        let written = Value::from(json(&[joined]));
        assert_eq!(lines(&read(&written)), said);
        assert!(read(&json!({"ranks": 7})).is_empty());
    }
}
