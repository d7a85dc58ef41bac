// SPDX-License-Identifier: Apache-2.0
//! What an examination of sites has found, and ways between sites, in words and as JSON.

use isthmus_job::Job;
use isthmus_job::quantity::show_time;
use isthmus_launch::{Examination, Options, PathReport, SiteReport, is_our_version};
use isthmus_wire::word::counted;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// A clock that is wrong by more is told of: dates of files, and what batch scripts make of them, are wrong, too.
const CLOCK: i64 = 1_800_000_000_000;

/// After a start that failed: what the doctor would say.
pub(crate) fn after_failure(job: &Job, options: Options) -> Option<String> {
    let found = isthmus_launch::examine(job, options).ok()?;
    Some(tell(&found, false))
}

/// Whether jobs can run on all that was examined.
pub(crate) fn is_well(found: &Examination) -> bool {
    found.sites.iter().all(|s| s.host.is_some() && is_our_version(s)) && found.paths.iter().all(|p| p.path != "none")
}

/// For people.
pub(crate) fn tell(found: &Examination, verbose: bool) -> String {
    let mut text = String::new();
    for site in &found.sites {
        tell_site(&mut text, site, verbose);
    }
    for path in &found.paths {
        let (a, b) = &path.between;
        match lost_end(found, path) {
            Some(lost) => drop(writeln!(text, "{a} - {b}: not examined, as {lost} cannot be used")),
            None => tell_path(&mut text, path, verbose),
        }
    }
    let verdict = if is_well(found) {
        "jobs can run on these sites"
    } else {
        "jobs cannot run on all of these sites"
    };
    let _ = writeln!(text, "{verdict}");
    text
}

/// The end of a link that cannot be used: what was refused then is no news, and no firewall is to be changed for it.
fn lost_end<'a>(found: &Examination, path: &'a PathReport) -> Option<&'a String> {
    let is_lost = |name: &&String| found.sites.iter().any(|s| s.name == **name && s.host.is_none());
    [&path.between.0, &path.between.1].into_iter().find(is_lost)
}

fn tell_site(text: &mut String, site: &SiteReport, verbose: bool) {
    let Some(host) = &site.host else {
        let _ = writeln!(text, "{}: cannot be used: {}", site.name, site.problem);
        if !site.hint.is_empty() {
            let _ = writeln!(text, "  hint: {}", site.hint);
        }
        return;
    };
    let trip = site.round_trip.map_or_else(|| "unknown".to_owned(), time);
    let _ = writeln!(
        text,
        "{}: ok: {host}, {}, {}, round trip {trip}",
        site.name,
        site.architecture,
        counted(site.processors, "processor")
    );
    if !is_our_version(site) {
        let _ = writeln!(
            text,
            "  its isthmus is of another version\n  hint: remove ~/.cache/isthmus there"
        );
    }
    if let Some(offset) = site.clock_offset.filter(|o| o.abs() > CLOCK) {
        let _ = writeln!(
            text,
            "  its clock is wrong by {} s\n  hint: let NTP set the clock there",
            offset / 1_000_000_000
        );
    }
    if verbose {
        let offset = site
            .clock_offset
            .map_or_else(|| "unknown".into(), |o| format!("{:+.3} ms", o as f64 / 1e6));
        let _ = writeln!(text, "  reached as {} after {}", site.contact, time(site.reached_after));
        let _ = writeln!(text, "  addresses {}", site.addresses.join(", "));
        let _ = writeln!(text, "  clock {offset} against ours; protocol version {}", site.version);
    }
    site.notices.iter().for_each(|notice| {
        let _ = writeln!(text, "  it said: {notice}");
    });
}

fn tell_path(text: &mut String, path: &PathReport, verbose: bool) {
    let (a, b) = &path.between;
    let _ = write!(text, "{a} - {b}: {}", in_words(path));
    if let Some(trip) = path.round_trip {
        let _ = write!(text, ", round trip {}", time(trip));
    }
    if let Some(rate) = &path.rate {
        let _ = write!(text, ", {}", crate::rates::rate_with_evidence(rate));
    }
    text.push('\n');
    for (from, to, why, reached) in [
        (a, b, &path.refused.0, &path.reached.0),
        (b, a, &path.refused.1, &path.reached.1),
    ] {
        let refused = !why.is_empty() && (verbose || path.path == "none" || path.path == "ssh");
        if refused {
            let _ = writeln!(text, "  {from} does not reach {to}: {why}");
        } else if verbose && !reached.is_empty() {
            let _ = writeln!(text, "  {from} reaches {to} at {reached}");
        }
    }
    if let Some(change) = cure(path) {
        let _ = writeln!(text, "  hint: {change}");
    }
}

fn in_words(path: &PathReport) -> String {
    let (a, b) = &path.between;
    match path.path {
        "direct" => "connections can be made directly, in both directions".into(),
        "forward" => format!("directly; {a} dials {b}, which cannot dial back"),
        "reverse" => format!("directly; {b} dials {a}, which cannot dial back"),
        "gateway" => "through gateways".into(),
        "ssh" => "through the launcher's ssh connections".into(),
        _ => "no way at all".into(),
    }
}

/// The one line to change.
fn cure(path: &PathReport) -> Option<String> {
    let (a, b) = &path.between;
    match path.path {
        "ssh" if path.refused.0.is_empty() || path.refused.1.is_empty() => None,
        "ssh" => Some(format!(
            "to be faster, let TCP connections to some ports of {a} or {b} in, and name them: --site {b},ports=5000-5100"
        )),
        "none" => Some(format!(
            "let TCP connections from {a} to {b} pass, or the other way round; see what was refused above"
        )),
        _ => None,
    }
}

fn time(time: Duration) -> String {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let unit = 10u64.pow(nanos.max(1).ilog10().saturating_sub(2));
    show_time(nanos / unit * unit)
}

pub(crate) fn as_json(found: &Examination) -> Value {
    let site = |s: &SiteReport| {
        json!({
            "site": s.name, "contact": s.contact, "works": s.host.is_some() && is_our_version(s), "host": s.host, "architecture": s.architecture,
            "addresses": s.addresses, "processors": s.processors, "protocol": s.version, "reached_seconds": s.reached_after.as_secs_f64(),
            "round_trip_seconds": s.round_trip.map(|t| t.as_secs_f64()), "clock_offset_seconds": s.clock_offset.map(|o| o as f64 / 1e9),
            "problem": s.problem, "hint": s.hint, "notices": s.notices,
        })
    };
    let change = |p: &PathReport| match lost_end(found, p) {
        Some(lost) => Some(format!("not examined, as {lost} cannot be used")),
        None => cure(p),
    };
    let path = |p: &PathReport| {
        let mut link = json!({
            "between": [p.between.0, p.between.1], "path": p.path, "round_trip_seconds": p.round_trip.map(|t| t.as_secs_f64()),
            "reached": [p.reached.0, p.reached.1], "refused": [p.refused.0, p.refused.1], "change": change(p),
        });
        crate::rates::add_rate(&mut link, p.rate.as_ref());
        link
    };
    json!({
        "works": is_well(found),
        "sites": found.sites.iter().map(site).collect::<Vec<_>>(),
        "links": found.paths.iter().map(path).collect::<Vec<_>>(),
    })
}

/// Lines for the end of a job: how its sites were connected.
pub(crate) fn paths(paths: &[PathReport]) -> String {
    let line = |p: &PathReport| {
        let trip = p
            .round_trip
            .map(|t| format!(", round trip {}", time(t)))
            .unwrap_or_default();
        let settled = p
            .settled_after
            .map(|t| format!(", settled after {}", time(t)))
            .unwrap_or_default();
        format!(
            "isthmus: path {} - {}: {} ({}){trip}{settled}",
            p.between.0,
            p.between.1,
            p.path,
            in_words(p)
        )
    };
    paths.iter().map(line).collect::<Vec<_>>().join("\n")
}
