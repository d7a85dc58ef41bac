// SPDX-License-Identifier: Apache-2.0
//! `isthmus discover`: what all sites have and how loaded they are; and picking sites for a job by that (`--select`).
//!
//! What was seen is kept in `$XDG_CACHE_HOME/isthmus/discovery.json`, by site, with the time.

use crate::described::{Line, SiteSize, describe};
use crate::diagnostic::{note, refuse};
use crate::kept;
use crate::links::table;
use crate::rates::span;
use crate::rates::{add_rate, evidence, rate_in_words};
use crate::reach;
use crate::sites::found::{self, size};
use clap::{Args, ValueEnum};
use isthmus_discovery::select::{Candidate, Placement, Selection, View, place};
use isthmus_job::catalogue::Catalogue;
use isthmus_job::{JobError, JobErrors};
use isthmus_launch::{Sighting, site_name};
use isthmus_reach::{Access, Remote, measure_links};
use isthmus_stage::cache;
use isthmus_topology::{Measured, Rate};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// How long what was seen counts, seconds.
const FRESH: u64 = 300;
/// How long a site may take.
const LIMIT: Duration = Duration::from_secs(45);
/// Largest file of what was seen, bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Show the resources and load of sites, and measure their links
#[derive(Args, Debug)]
pub(crate) struct Discover {
    /// Sites [default: home and all of the sites file]
    sites: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// As a topology file for `isthmus explain` and `isthmus simulate`: a process for each processor
    #[arg(long, conflicts_with = "json")]
    topology: bool,
    /// Only sites that meet this, as 'cores>=64 && rtt(home)<30ms'
    #[arg(long, value_name = "CONDITION")]
    select: Option<String>,
    /// Ask, even if somebody asked not long ago
    #[arg(long)]
    fresh: bool,
    /// Do not measure links between sites
    #[arg(long)]
    no_links: bool,
    /// Say what can be selected by
    #[arg(long)]
    fields: bool,
    /// ssh client to use [default: $ISTHMUS_SSH or ssh]
    #[arg(long, value_name = "COMMAND")]
    ssh: Option<String>,
}

/// How to distribute processes over the selected sites.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Distribution {
    /// To as few sites as possible, the nearest first
    #[default]
    Compact,
    /// Evenly to all
    Spread,
}

/// What is known of sites: `sites` by name, `links` as `A|B`.
struct Discovered {
    sites: Map<String, Value>,
    links: Map<String, Value>,
    /// Of them, what was measured just now.
    measured: BTreeMap<String, Measured>,
    problems: Vec<JobError>,
}

/// `isthmus discover`.
pub(crate) fn discover(arguments: &Discover) -> ExitCode {
    if arguments.fields {
        fields(arguments.json);
        return ExitCode::SUCCESS;
    }
    match perform(arguments) {
        Ok(code) => code,
        Err(errors) => refuse(&errors),
    }
}

fn fields(as_json: bool) {
    let all = isthmus_discovery::select::FIELDS;
    if as_json {
        let all = all.map(|(name, _, help)| json!({ "field": name, "help": help }));
        crate::json::print("discover --fields", json!({ "fields": all }));
        return;
    }
    let rows: Vec<[String; 2]> = all
        .iter()
        .map(|(name, _, help)| [*name, *help].map(str::to_owned))
        .collect();
    crate::print(&table(&rows));
    crate::print("rtt(SITE), rate(SITE): of the link to a site");
}

fn perform(arguments: &Discover) -> Result<ExitCode, JobErrors> {
    // A mistake in the condition is told before anybody is asked.
    let selection = arguments.select.as_deref().map(Selection::parse).transpose()?;
    let catalogue = reach::catalogue()?;
    let access = reach::access(arguments.ssh.as_deref())?;
    let names = reach::named_sites(&catalogue, &arguments.sites)?;
    let mut known = know(&catalogue, &access, &names, arguments.fresh);
    if !arguments.no_links {
        known.measure(&catalogue, &access, &names, arguments.fresh);
    }
    known.believe(&names);
    known.keep();
    let taken = |name: &&String| selection.as_ref().is_none_or(|s| s.matches(&known.site(name)));
    let names: Vec<&String> = names
        .iter()
        .filter(|n| known.sites.contains_key(*n))
        .filter(taken)
        .collect();
    if arguments.json {
        let sites: Vec<&Value> = names.iter().filter_map(|n| known.sites.get(*n)).collect();
        let problems: Vec<String> = known.problems.iter().map(|p| p.problem.clone()).collect();
        let fields = json!({ "sites": sites, "links": known.links_of(&names), "problems": problems });
        crate::json::print("discover", fields);
    } else if arguments.topology {
        crate::print(known.topology(&names).trim_end());
    } else {
        known.print(&names);
    }
    known.problems.iter().for_each(|problem| {
        refuse(problem);
    });
    Ok(if known.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What was seen not long ago, and for the rest what is seen now.
fn know(catalogue: &Catalogue, access: &Access, names: &[String], fresh: bool) -> Discovered {
    let mut known = Discovered::read();
    let now = isthmus_launch::now();
    let stale = |name: &&String| {
        let contact = reach::site(catalogue, name)
            .map(|e| e.contact.to_string())
            .unwrap_or_default();
        let seen = known.sites.get(*name);
        let current = seen.is_some_and(|s| s["contact"] == contact.as_str() && age(s, now) < FRESH);
        fresh || !current
    };
    let wanted: Vec<String> = names.iter().filter(stale).cloned().collect();
    for (name, look) in found::look_all(catalogue, access, &wanted, LIMIT) {
        match look {
            Ok((entry, seen)) => {
                let mut value = found::json(&name, &entry, &seen);
                value["looked_unix_seconds"] = json!(now);
                known.sites.insert(name, value);
            }
            Err(error) => {
                // What was true once may be so no more.
                known.sites.remove(&name);
                known.problems.push(error);
            }
        }
    }
    known
}

fn age(value: &Value, now: u64) -> u64 {
    value["looked_unix_seconds"]
        .as_u64()
        .map_or(u64::MAX, |looked| now.saturating_sub(looked))
}

fn pair(a: &str, b: &str) -> String {
    if a <= b { format!("{a}|{b}") } else { format!("{b}|{a}") }
}

impl Discovered {
    fn read() -> Self {
        let file = cache::directory().ok().map(|d| d.join("discovery.json"));
        let small = file.filter(|f| std::fs::metadata(f).is_ok_and(|m| m.is_file() && m.len() < MAX_BYTES));
        let text = small.and_then(|f| std::fs::read_to_string(f).ok()).unwrap_or_default();
        // What cannot be read is asked again.
        let mut value: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut part = |name: &str| match value.get_mut(name).map(Value::take) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        Self {
            sites: part("sites"),
            links: part("links"),
            measured: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    fn keep(&self) {
        let Ok(directory) = cache::directory() else {
            return;
        };
        let text = json!({ "sites": self.sites, "links": self.links }).to_string();
        if let Err(error) = kept::write_private(&directory.join("discovery.json"), &text) {
            note(&error);
        }
    }

    /// Measures the links between sites other than home that are not known well enough.
    fn measure(&mut self, catalogue: &Catalogue, access: &Access, names: &[String], fresh: bool) {
        let now = isthmus_launch::now();
        let there: Vec<&String> = names.iter().filter(|n| self.sites.contains_key(*n)).collect();
        let missing = |a: &str, b: &str| fresh || age(&self.links[&pair(a, b)], now) >= FRESH;
        let known = |a: &str, b: &str| self.links.contains_key(&pair(a, b)) && !missing(a, b);
        let all = there
            .iter()
            .enumerate()
            .all(|(n, a)| there[..n].iter().all(|b| known(a, b)));
        if all || there.len() < 2 {
            return;
        }
        let entries: Vec<_> = there
            .iter()
            .filter_map(|n| Some(((*n).clone(), reach::site(catalogue, n).ok()?)))
            .collect();
        let remotes: Vec<Remote<'_>> = entries
            .iter()
            .map(|(_, entry)| Remote {
                access,
                contact: &entry.contact,
                setup: &entry.setup,
            })
            .collect();
        for ((a, b), link) in measure_links(&remotes) {
            let (a, b) = (&entries[a].0, &entries[b].0);
            let mut value = json!({ "looked_unix_seconds": now });
            match link {
                Ok((round_trip, rate)) => {
                    let measured = Measured {
                        latency: u64::try_from(round_trip.as_nanos() / 2).ok().filter(|l| *l > 0),
                        rate,
                        ..Measured::default()
                    };
                    value["round_trip_seconds"] = json!(round_trip.as_secs_f64());
                    add_rate(&mut value, rate.as_ref());
                    self.measured.insert(pair(a, b), measured);
                }
                Err(why) => value["problem"] = json!(why),
            }
            self.links.insert(pair(a, b), value);
        }
    }

    /// Links are told as the better evidence says, this command's or that of earlier jobs and commands; jobs will go
    /// by the same.
    fn believe(&mut self, names: &[String]) {
        let options = crate::links::options();
        let mut pairs = Vec::new();
        let mut seen = Vec::new();
        for (n, b) in names.iter().enumerate() {
            for a in &names[..n] {
                let host = |name: &str| self.sites.get(name).and_then(|s| s["host"].as_str());
                let (Some(first), Some(second)) = (host(a), host(b)) else {
                    continue;
                };
                pairs.push(pair(a, b));
                seen.push(Sighting {
                    between: [site_name(a, first), site_name(b, second)],
                    measured: self.measured.get(&pair(a, b)).copied().unwrap_or_default(),
                });
            }
        }
        let (known, problem) = isthmus_launch::believe(&seen, &options);
        problem.into_iter().for_each(|text| note(&JobError::new(text)));
        for (pair, known) in pairs.iter().zip(known) {
            let Some(link) = self.links.get_mut(pair).filter(|l| l["problem"].is_null()) else {
                continue;
            };
            if let Some(latency) = known.latency {
                link["round_trip_seconds"] = json!(latency.value as f64 * 2e-9);
            }
            if let Some(rate) = known.rate {
                add_rate(link, Some(&rate.value));
            }
        }
    }

    fn site<'a>(&'a self, name: &'a str) -> Site<'a> {
        Site { known: self, name }
    }

    fn links_of(&self, names: &[&String]) -> Vec<Value> {
        let mut links = Vec::new();
        for (n, b) in names.iter().enumerate() {
            for a in &names[..n] {
                let measured = &self.links.get(&pair(a, b)).cloned().unwrap_or_default();
                let site = self.site(a);
                let mut link = json!({
                    "between": [a, b], "round_trip_seconds": site.round_trip(b), "bits_per_second": site.rate(b), "problem": measured["problem"],
                    "direct": measured["round_trip_seconds"].is_number(), "at_least": measured["at_least"].as_bool().unwrap_or(false),
                });
                for key in ["spread", "seen_bytes", "seen_seconds"] {
                    link[key] = measured[key].clone();
                }
                links.push(link);
            }
        }
        links
    }

    /// As a topology file. Nodes of a site are taken as alike.
    fn topology(&self, names: &[&String]) -> String {
        let number = |name: &str, key: &str| self.sites.get(name).and_then(|s| s[key].as_u64()).unwrap_or(1).max(1);
        let sites: Vec<SiteSize> = names
            .iter()
            .map(|name| {
                let nodes = number(name, "nodes");
                let processes = (number(name, "cores") / nodes).max(1);
                SiteSize {
                    name: (*name).clone(),
                    nodes,
                    processes,
                    processors: Some(processes),
                }
            })
            .collect();
        let links = self.links_of(names).into_iter().map(|link| Line {
            between: [0, 1].map(|end| link["between"][end].as_str().unwrap_or_default().to_owned()),
            latency: link["round_trip_seconds"].as_f64().map(|s| (s * 5e8).round() as u64),
            rate: link["bits_per_second"].as_f64().map(|r| (r / 8.0).round() as u64),
        });
        describe(&sites, &links.collect::<Vec<_>>())
    }

    fn print(&self, names: &[&String]) {
        let now = isthmus_launch::now();
        let head = [
            "site",
            "architecture",
            "scheduler",
            "nodes",
            "cores",
            "free",
            "memory",
            "load",
            "wait",
            "MPI",
            "age",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for name in names {
            let Some(value) = self.sites.get(*name) else { continue };
            let number = |key: &str| value[key].as_u64().map_or_else(|| "-".to_owned(), |n| n.to_string());
            let seconds = |n: u64| span(u32::try_from(n).unwrap_or(u32::MAX));
            let queue = value["queue"].as_str().map_or_else(String::new, |q| format!(" ({q})"));
            let mpi = value["mpis"]
                .as_array()
                .and_then(|a| a.first())
                .and_then(|m| m["text"].as_str());
            rows.push([
                (*name).clone(),
                value["architecture"].as_str().unwrap_or("-").to_owned(),
                format!("{}{queue}", value["scheduler"].as_str().unwrap_or("-")),
                number("nodes"),
                number("cores"),
                number("free"),
                value["memory_bytes"].as_u64().map_or_else(|| "-".to_owned(), size),
                value["load"]
                    .as_f64()
                    .map_or_else(|| "-".to_owned(), |l| format!("{l:.2}")),
                value["wait_seconds"].as_u64().map_or_else(
                    || "?".to_owned(),
                    |w| if w == 0 { "none".to_owned() } else { seconds(w) },
                ),
                mpi.unwrap_or("-").to_owned(),
                seconds(age(value, now).min(u64::from(u32::MAX))),
            ]);
        }
        if rows.len() > 1 {
            crate::print(&table(&rows));
        } else if self.problems.is_empty() {
            crate::print("no site meets the condition");
        }
        let links = self.links_of(names);
        if links.is_empty() {
            return;
        }
        let mut rows = vec![["link", "round trip", "rate", "seen", ""].map(str::to_owned)];
        for link in links {
            let name = |n: usize| link["between"][n].as_str().unwrap_or_default().to_owned();
            let how = match (link["direct"].as_bool(), link["problem"].as_str()) {
                (Some(true), _) => "direct",
                (_, Some(why)) => why,
                _ => "not measured",
            };
            rows.push([
                format!("{} - {}", name(0), name(1)),
                link["round_trip_seconds"]
                    .as_f64()
                    .map_or_else(|| "?".to_owned(), |s| format!("{:.1} ms", s * 1e3)),
                rate_of(&link).map_or_else(|| "?".to_owned(), |rate| rate_in_words(&rate)),
                rate_of(&link).map_or_else(String::new, |rate| evidence(&rate)),
                how.to_owned(),
            ]);
        }
        crate::print(&format!("\n{}", table(&rows)));
    }
}

/// The rate of a link that is told as JSON.
fn rate_of(link: &Value) -> Option<Rate> {
    let number = |key: &str| link[key].as_f64().unwrap_or_default();
    let bits = link["bits_per_second"].as_f64()?;
    Some(Rate {
        bytes: link["seen_bytes"].as_u64().unwrap_or_default(),
        busy: (number("seen_seconds") * 1e9) as u64,
        spread: (number("spread") * 1e3) as u16,
        at_least: link["at_least"].as_bool().unwrap_or_default(),
        ..Rate::bare((bits / 8.0) as u64)
    })
}

/// A site, for selecting.
struct Site<'a> {
    known: &'a Discovered,
    name: &'a str,
}

impl Site<'_> {
    fn value(&self) -> &Value {
        self.known.sites.get(self.name).unwrap_or(&Value::Null)
    }

    /// Of the direct link if it was measured; from home also through ssh.
    fn link(&self, other: &str, key: &str) -> Option<f64> {
        let direct = self
            .known
            .links
            .get(&pair(self.name, other))
            .and_then(|l| l[key].as_f64());
        let through = || match (self.name, other) {
            (name, "home") => self.known.sites.get(name)?[key].as_f64(),
            ("home", name) => self.known.sites.get(name)?[key].as_f64(),
            _ => None,
        };
        direct.or_else(through)
    }
}

impl View for Site<'_> {
    fn number(&self, field: &str) -> Option<f64> {
        let key = match field {
            "wait" => "wait_seconds",
            "limit" => "limit_seconds",
            "memory" => "memory_bytes",
            field => field,
        };
        self.value()[key].as_f64()
    }

    fn texts(&self, field: &str) -> Vec<String> {
        let value = self.value();
        let named = |key: &str| -> Vec<String> {
            let list = value[key].as_array().into_iter().flatten();
            list.filter_map(|n| n["text"].as_str().map(str::to_owned)).collect()
        };
        match field {
            "compiler" => named("compilers"),
            "mpi" => named("mpis"),
            "module" => value["modules"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|m| m.as_str().map(str::to_owned))
                .collect(),
            "queue" => {
                let queues = value["queues"].as_array().into_iter().flatten();
                queues.filter_map(|q| q["name"].as_str().map(str::to_owned)).collect()
            }
            field => value[field].as_str().map(str::to_owned).into_iter().collect(),
        }
    }

    fn round_trip(&self, site: &str) -> Option<f64> {
        if site == self.name {
            Some(0.0)
        } else {
            self.link(site, "round_trip_seconds")
        }
    }

    fn rate(&self, site: &str) -> Option<f64> {
        if site == self.name {
            Some(f64::INFINITY)
        } else {
            self.link(site, "bits_per_second")
        }
    }
}

/// The sites for a job and how many processes each gets: of these (or all that are known) those that meet the
/// condition.
pub(crate) fn choose(
    catalogue: &Catalogue,
    ssh: Option<&str>,
    given: &[String],
    condition: &str,
    total: u32,
    how: Distribution,
) -> Result<Vec<(String, u32)>, JobErrors> {
    let selection = Selection::parse(condition)?;
    let access = reach::access(ssh)?;
    let names = reach::named_sites(catalogue, given)?;
    let mut known = know(catalogue, &access, &names, false);
    if condition.contains("rtt") || condition.contains("rate") {
        known.measure(catalogue, &access, &names, false);
    }
    known.believe(&names);
    known.keep();
    known.problems.iter().for_each(note);
    let candidates: Vec<Candidate> = names
        .iter()
        .filter(|name| known.sites.contains_key(*name) && selection.matches(&known.site(name)))
        .map(|name| {
            let count = |key: &str| {
                known.sites[name][key]
                    .as_u64()
                    .and_then(|n| u32::try_from(n).ok())
                    .unwrap_or(0)
            };
            Candidate {
                site: name.clone(),
                room: count("free"),
                most: count("cores"),
                distance: known.site(name).round_trip("home").unwrap_or(f64::MAX),
            }
        })
        .collect();
    if candidates.is_empty() {
        let error = JobError::new(format!("no site meets '{condition}'"));
        return Err(error.hint("isthmus discover shows what the sites have").into());
    }
    let how = match how {
        Distribution::Compact => Placement::Compact,
        Distribution::Spread => Placement::Spread,
    };
    let placed = place(&candidates, total, how)?;
    let text: Vec<String> = placed.iter().map(|(site, count)| format!("{site}:{count}")).collect();
    note(&JobError::new(format!("selected: {}", text.join(" "))));
    Ok(placed)
}
