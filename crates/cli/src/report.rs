// SPDX-License-Identifier: Apache-2.0
//! `isthmus report`: the picture of a job, from its record.

use crate::diagnostic::STATUS_USAGE;
use crate::diagnostic::plain;
use crate::overwritten;
use clap::Args;
use isthmus_launch::record::{self, Found, Unread};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What reads comes before what draws.
const SCRIPT: &str = concat!(include_str!("report/reading.js"), include_str!("report/page.js"));

/// Show the history of a job over several sites
///
/// States, links, throughput, operations and events.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// The job: its name, its identifier or the beginning of one, or SITE/JOB; the newest if none is given
    job: Option<String>,
    /// Write one self-contained HTML file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The whole record as JSON
    #[arg(long, conflicts_with = "html")]
    json: bool,
}

impl Report {
    /// The job that is meant.
    pub(crate) fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }

    /// The file that gets the page.
    pub(crate) fn page_file(&self) -> Option<&Path> {
        self.html.as_deref()
    }
}

/// `isthmus report`.
pub(crate) fn report(arguments: &Report) -> ExitCode {
    let found = match record::read(arguments.job.as_deref()) {
        Ok(found) => found,
        Err(why) => return unread(&why),
    };
    match write(&found, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            crate::complain(&format!("isthmus: error: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Says why there is no record; a job that there is not is a mistake of the command line, as for all commands.
pub(crate) fn unread(why: &Unread) -> ExitCode {
    match why {
        Unread::Unmeant(text) => {
            crate::complain(&format!("isthmus: error: {text}\n  hint: isthmus ps lists them"));
            ExitCode::from(STATUS_USAGE)
        }
        Unread::Broken(text) => {
            crate::complain(&format!("isthmus: error: {text}"));
            ExitCode::FAILURE
        }
    }
}

fn write(found: &Found, arguments: &Report) -> Result<(), String> {
    if arguments.json {
        crate::json::print(
            "report",
            json!({"job": found.name, "version": record::VERSION, "record": found.lines}),
        );
        return Ok(());
    }
    let Some(file) = &arguments.html else {
        let text = text(found);
        text.trim_end().lines().for_each(|line| crate::print(&plain(line)));
        return Ok(());
    };
    let page = page(found, false);
    if file == Path::new("-") {
        crate::print(&page);
        return Ok(());
    }
    overwritten::check("--html", file, overwritten::Kind::Page).map_err(|error| error.to_string())?;
    std::fs::write(file, page).map_err(|error| format!("cannot write '{}': {error}", file.display()))?;
    crate::print(&format!("wrote {}", file.display()));
    Ok(())
}

/// The page: one file without outside references; a live one asks whoever served it for news.
pub(crate) fn page(found: &Found, live: bool) -> String {
    let data = json!({"job": found.name, "lines": found.lines, "live": live}).to_string();
    let body = format!(
        "<noscript>This page draws with JavaScript. `isthmus report {}` prints the same figures.</noscript>\n",
        isthmus_page::escape(&found.name)
    );
    let page = isthmus_page::Page {
        title: &format!("Isthmus job {}", found.name),
        body: &body,
        script: SCRIPT,
        data: &data,
        live,
        ..isthmus_page::Page::default()
    };
    page.html()
}

/// Lines of one kind.
fn of<'a>(found: &'a Found, event: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
    found.lines.iter().filter(move |line| line["event"] == event)
}

fn words<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// What the processes of each site did with their time, as far as it is known.
fn spent(found: &Found) -> String {
    let known = |line: &&Value| line["times"].as_array().is_some_and(|times| !times.is_empty());
    let Some(line) = found.lines.iter().rev().find(known) else {
        return String::new();
    };
    let mut text = format!(
        "\n{:<18}{:>10}{:>12}{:>12}{:>13}\n",
        "SITE", "PROCESSES", "COMPUTING", "MESSAGES", "COLLECTIVES"
    );
    for one in line["times"].as_array().into_iter().flatten() {
        let number = |key: &str| one[key].as_f64().unwrap_or(0.0);
        let share = |key: &str| format!("{:.1} %", 100.0 * number(key) / number("seconds").max(1e-9));
        let _ = writeln!(
            text,
            "{:<18}{:>10}{:>12}{:>12}{:>13}",
            words(one, "site"),
            number("processes"),
            share("computing_seconds"),
            share("message_wait_seconds"),
            share("collective_wait_seconds")
        );
    }
    text
}

/// For terminals.
fn text(found: &Found) -> String {
    let time = |line: &Value| line["time"].as_f64().unwrap_or(0.0);
    let begun = found.lines.first().map_or(0.0, time);
    let last = found.lines.last().map_or(0.0, time);
    let end = of(found, "end").next();
    let how = end.map_or_else(
        || "running".to_owned(),
        |end| match end["status"].as_i64() {
            Some(0) => "ended well".to_owned(),
            status => format!("ended with status {}", status.unwrap_or(1)),
        },
    );
    let name = of(found, "record").next().map_or("", |record| words(record, "name"));
    let name = if name.is_empty() {
        String::new()
    } else {
        format!(" ({name})")
    };
    let mut text = format!("job {}{name}: {how}, {:.1} s\n", found.name, last - begun);
    if let Some(end) = end.filter(|end| !words(end, "problem").is_empty()) {
        let _ = writeln!(text, "{}\n{}", words(end, "problem"), words(end, "hint"));
    }
    let _ = writeln!(text, "\n{:<18}{:<16}{:>10}  DETAIL", "SITE", "STATE", "AFTER");
    for state in of(found, "state") {
        let after = format!("{:.1} s", time(state) - begun);
        let (site, to, detail) = (words(state, "site"), words(state, "state"), words(state, "detail"));
        let _ = writeln!(
            text,
            "{}",
            format!("{site:<18}{to:<16}{after:>10}  {detail}").trim_end()
        );
    }
    let links = of(found, "traffic")
        .next_back()
        .and_then(|last| last["links"].as_array());
    if let Some(links) = links.filter(|links| !links.is_empty()) {
        let _ = writeln!(text, "\n{:<28}{:>12}{:>14}{:>8}", "LINK", "SENT", "ROUND TRIP", "CUTS");
        for link in links {
            let trip = link["round_trip_seconds"].as_f64();
            let _ = writeln!(
                text,
                "{:<28}{:>12}{:>14}{:>8}",
                format!("{} > {}", words(link, "from"), words(link, "to")),
                isthmus_job::quantity::show_amount(link["sent_bytes"].as_u64().unwrap_or(0)),
                trip.map_or_else(|| "-".to_owned(), |t| format!("{:.1} ms", t * 1000.0)),
                link["cuts"].as_u64().unwrap_or(0)
            );
        }
    }
    text.push_str(&spent(found));
    let notices: Vec<&str> = of(found, "notice").map(|notice| words(notice, "text")).collect();
    if !notices.is_empty() {
        let _ = writeln!(text, "\n{}", notices.join("\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Found {
        let lines = [
            json!({"event": "record", "time": 10.0, "name": "climate", "words": ["</script><b>"], "processes": 2, "subjobs": []}),
            json!({"event": "state", "time": 11.0, "site": "lab", "state": "running", "detail": ""}),
            json!({"event": "traffic", "time": 12.0, "links": [{"from": "a", "to": "b", "sent_bytes": 2_500_000, "round_trip_seconds": 0.0401, "cuts": 1}]}),
            json!({"event": "end", "time": 14.5, "status": 3, "problem": "rank 1 failed", "hint": "look there"}),
        ];
        Found {
            name: "ab".into(),
            lines: lines.to_vec(),
        }
    }

    #[test]
    fn the_page_holds_a_record_that_cannot_leave_its_element() {
        let page = page(&found(), false);
        assert!(page.contains("\\u003c/script>\\u003cb>"));
        assert!(!page.contains("</script><b>"));
        assert!(page.len() < 200_000, "{}", page.len());
        assert!(
            !page.contains("src=\"") && !page.contains("href=\"http"),
            "the page refers to something outside"
        );
    }

    /// Rates, cuts, dates: in the language of the page.
    #[test]
    fn the_page_reads_samples_as_they_are_meant() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = top.join("../../tests/system/reading.js");
        let node = std::process::Command::new("node")
            .arg(script)
            .arg(top.join("src/report/reading.js"))
            .output();
        match node {
            Ok(said) => assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr)),
            Err(_) => println!("skipped: no node"),
        }
    }

    #[test]
    fn terminals_get_states_links_and_the_problem() {
        let text = text(&found());
        for part in [
            "job ab (climate): ended with status 3, 4.5 s",
            "rank 1 failed",
            "look there",
            "a > b",
            "2.5 MB",
            "40.1 ms",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
