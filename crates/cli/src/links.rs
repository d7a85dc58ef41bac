// SPDX-License-Identifier: Apache-2.0
//! `isthmus links`: what is known of the links between sites; and the settings about them.

use crate::rates::{add_rate, evidence, rate_in_words, rate_with_evidence, rounded};
use clap::Args;
use isthmus_job::cache::Dated;
use isthmus_job::quantity::{show_rate, show_time};
use isthmus_job::{Job, JobError, links};
use isthmus_launch::{LinkOptions, LinkReport};
use isthmus_wire::word::counted;
use serde_json::json;
use std::process::ExitCode;

/// Show the link measurements of earlier jobs
#[derive(Args, Debug)]
pub(crate) struct Links {
    /// Forget the links of this site (as listed, or the part before @); without a site, all of them
    #[arg(long, value_name = "SITE", num_args = 0..=1)]
    forget: Option<Option<String>>,
    /// As JSON
    #[arg(long, conflicts_with = "forget")]
    json: bool,
}

/// `isthmus links`.
pub(crate) fn links(arguments: &Links) -> ExitCode {
    match show(arguments, &options()) {
        Ok(text) => {
            crate::print(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            crate::complain(&format!("isthmus: error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn show(arguments: &Links, options: &LinkOptions) -> Result<String, JobError> {
    let Some(file) = isthmus_launch::cache_file() else {
        return Err(JobError::new("there is no directory for the cache of links").hint("set HOME or XDG_CACHE_HOME"));
    };
    if let Some(None) = arguments.forget {
        return match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(JobError::new(format!("cannot remove {}: {error}", file.display())))
            }
            _ => Ok("forgot all links".to_owned()),
        };
    }
    let _alone = isthmus_stage::guarded::alone_in(file.parent().unwrap_or(&file));
    let mut cache = isthmus_launch::read_cache(&file).map_err(JobError::new)?;
    if let Some(Some(site)) = &arguments.forget {
        let count = cache.forget(site);
        isthmus_launch::write_cache(&file, &cache).map_err(JobError::new)?;
        return Ok(format!("forgot {} of {site}", counted(count, "link")));
    }
    let now = isthmus_launch::now();
    if arguments.json {
        let all = cache.links().map(|(a, b, known)| {
            let (latency, rate) = (known.latency.map(|l| l.at), known.rate.map(|r| r.at));
            let age = |at: Option<u64>| at.map(|at| now.saturating_sub(at));
            let expired = |at| age(at).is_some_and(|age| age >= options.expiry);
            let mut link = json!({
                "between": [a, b],
                "round_trip_seconds": known.latency.map(|l| l.value as f64 * 2e-9),
                "round_trip_age_seconds": age(latency), "round_trip_expired": expired(latency),
                "rate_age_seconds": age(rate), "rate_expired": expired(rate),
            });
            add_rate(&mut link, known.rate.map(|r| r.value).as_ref());
            link
        });
        return Ok(crate::json::text("links", json!({ "links": all.collect::<Vec<_>>() })));
    }
    let rows: Vec<[String; 4]> = cache
        .links()
        .map(|(a, b, known)| {
            let time = |nanoseconds: &u64| show_time(rounded(*nanoseconds));
            [
                format!("{a} - {b}"),
                dated(known.latency.as_ref(), time, now, options.expiry),
                dated(known.rate.as_ref(), rate_in_words, now, options.expiry),
                known.rate.map_or_else(String::new, |r| evidence(&r.value)),
            ]
        })
        .collect();
    if rows.is_empty() {
        return Ok(format!("nothing is known of any link ({})", file.display()));
    }
    let head = ["between", "latency, one way (age)", "rate (age)", "seen"].map(str::to_owned);
    Ok(table(&[vec![head], rows].concat()))
}

fn dated<T>(known: Option<&Dated<T>>, show: impl Fn(&T) -> String, now: u64, expiry: u64) -> String {
    let Some(Dated { value, at }) = known else {
        return "-".to_owned();
    };
    let age = now.saturating_sub(*at);
    let expired = if age < expiry { "" } else { ", expired" };
    format!("{} ({}{expired})", show(value), span(age))
}

fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Rows in columns.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What is known of a job's links at its end, with where it comes from.
pub(crate) fn report(links: &[LinkReport]) -> String {
    let rows: Vec<[String; 3]> = links
        .iter()
        .map(|link| {
            let (latency, rate) = (link.latency, link.rate);
            let words = link.evidence.as_ref().map(rate_with_evidence);
            [
                link.between.join(" - "),
                format!("{} ({})", show_time(rounded(latency.0)), latency.1.name()),
                format!(
                    "{} ({})",
                    words.unwrap_or_else(|| show_rate(rounded(rate.0))),
                    rate.1.name()
                ),
            ]
        })
        .collect();
    let head = ["isthmus: links between", "latency, one way", "rate"].map(str::to_owned);
    table(&[vec![head], rows].concat())
}

/// The settings about links.
pub(crate) fn options() -> LinkOptions {
    let expiry = isthmus_settings::LINKS_EXPIRY.read(std::env::var_os).as_secs();
    LinkOptions {
        cache: isthmus_launch::cache_file().filter(|_| expiry > 0),
        expiry,
        measure: isthmus_settings::LINKS_MEASURE.read(std::env::var_os),
    }
}

/// The job with what a file of pins says: `given`, or the one that ISTHMUS_LINKS_FILE names. What the job says itself
/// is above it.
pub(crate) fn pinned(job: Job, given: Option<&str>) -> Result<Job, JobError> {
    let named = isthmus_settings::LINKS_FILE.read(std::env::var_os);
    let Some(file) = given.map(isthmus_stage::words::path).or(named) else {
        return Ok(job);
    };
    let name = file.display().to_string();
    let text = crate::given::read(&file).map_err(|error| {
        let error = JobError::new(format!("cannot read file of links '{name}': {error}"));
        error.hint("name a file with [[link]] tables, such as examples/links.toml")
    })?;
    let pins = job.links().clone().over(links::parse(&text, &name)?);
    Ok(job.with_links(pins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(show_time(rounded(20_123_456)), "20.12 ms");
        assert_eq!(show_rate(rounded(11_768_751)), "94.16 Mbit/s");
        assert_eq!((rounded(0), rounded(9), rounded(12_345)), (0, 9, 12_350));
        assert_eq!(
            [5, 600, 86_400, 864_000].map(span),
            ["5 s", "10 min", "24 h", "10 days"]
        );
    }
}
