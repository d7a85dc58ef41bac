// SPDX-License-Identifier: Apache-2.0
//! `isthmus sites`: the sites file, and looking at sites.

pub(crate) mod found;

use crate::diagnostic::{at, note, refuse};
use crate::kept;
use crate::links::table;
use crate::reach;
use clap::{Args, Subcommand};
use isthmus_job::catalogue::{self, Edit, Entry, Value};
use isthmus_job::{JobError, JobErrors};
use isthmus_reach::{Remote, Seen};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// How long a site may take to be looked at.
pub(crate) const LOOK: Duration = Duration::from_secs(60);

/// List, examine and describe sites
///
/// The sites file holds settings that have no place in the ssh configuration.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Sites {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the sites of the sites file
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what is known of a site
    Show {
        /// The site
        site: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    Add(Add),
    Test(Test),
    /// Print a sites file with all fields and comments
    Example,
    /// Remove a site from the sites file
    Remove {
        /// The site
        site: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Connect to a site, examine it, and write the results into the sites file. Existing values are kept, unless CONTACT
/// or --set changes them
#[derive(Args, Debug)]
struct Add {
    /// Name of the site
    site: String,
    /// How to get there, as for ssh [default: the name]
    contact: Option<String>,
    /// A value for the sites file, as queue=debug; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Do not connect to the site
    #[arg(long)]
    no_look: bool,
    /// Print the entry as JSON
    #[arg(long)]
    json: bool,
    /// ssh client to use [default: $ISTHMUS_SSH or ssh]
    #[arg(long, value_name = "COMMAND")]
    ssh: Option<String>,
}

/// Connect to sites and report what works
#[derive(Args, Debug)]
struct Test {
    /// The sites [default: home and all of the sites file]
    sites: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// ssh client to use [default: $ISTHMUS_SSH or ssh]
    #[arg(long, value_name = "COMMAND")]
    ssh: Option<String>,
}

/// `isthmus sites`.
pub(crate) fn sites(command: &Sites) -> ExitCode {
    let outcome = match &command.verb {
        None => list(command.json),
        Some(Verb::List { json }) => list(*json),
        Some(Verb::Show { site, json }) => show(site, *json),
        Some(Verb::Add(arguments)) => add(arguments),
        Some(Verb::Test(arguments)) => return test(arguments),
        Some(Verb::Example) => {
            crate::print(catalogue::EXAMPLE.trim_end());
            Ok(())
        }
        Some(Verb::Remove { site, json }) => remove(site, *json),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(errors) => refuse(&errors),
    }
}

fn list(as_json: bool) -> Result<(), JobErrors> {
    let catalogue = reach::catalogue()?;
    if as_json {
        let all: Vec<_> = catalogue.sites().map(|(name, entry)| json_of(name, entry)).collect();
        crate::json::print("sites list", json!({ "sites": all }));
        return Ok(());
    }
    let head = ["site", "contact", "scheduler", "cores", "architecture", "local network"].map(str::to_owned);
    let rows = catalogue.sites().map(|(name, entry)| {
        let known = |key: &str| {
            entry
                .found
                .iter()
                .find(|(k, _)| k == key)
                .map_or_else(|| "-".to_owned(), |(_, v)| v.to_string())
        };
        [
            name.to_owned(),
            entry.contact.to_string(),
            scheduler(entry).to_owned(),
            known("cores"),
            known("architecture"),
            entry.lan.clone().unwrap_or_else(|| name.to_owned()),
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    match rows.len() {
        1 => crate::print(
            "no site is described; sites of the ssh configuration need not be (isthmus sites add NAME looks at one)",
        ),
        _ => crate::print(&table(&rows)),
    }
    Ok(())
}

fn scheduler(entry: &Entry) -> &'static str {
    entry.allocation.as_ref().map_or("fork", |a| a.scheduler.keyword())
}

/// A site as JSON.
pub(crate) fn json_of(name: &str, entry: &Entry) -> serde_json::Value {
    let asked = entry.allocation.as_ref();
    let text = |t: Option<&String>| t.filter(|t| !t.is_empty()).cloned();
    json!({
        "site": name,
        "contact": entry.contact.to_string(),
        "scheduler": scheduler(entry),
        "queue": text(asked.map(|a| &a.queue)),
        "account": text(asked.map(|a| &a.account)),
        "limit_seconds": asked.map(|a| a.limit).filter(|l| *l > 0),
        "nodes": asked.map(|a| a.nodes).filter(|n| *n > 0),
        "exclusive": asked.is_some_and(|a| a.exclusive),
        "directives": asked.map(|a| a.directives.clone()).unwrap_or_default(),
        "setup": entry.setup,
        "environment": entry.environment.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "directory": entry.directory,
        "lan": entry.lan.clone().unwrap_or_else(|| name.to_owned()),
        "processes": entry.processes,
        "ports": entry.ports.map_or_else(Vec::new, |(first, last)| vec![first, last]),
        "mpi": entry.mpi,
        "found": entry.found.iter().map(|(key, value)| (key, typed(value))).collect::<std::collections::BTreeMap<_, _>>(),
    })
}

/// A value with the type that it has in the sites file.
fn typed(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => json!(text),
        Value::Number(number) => json!(number),
        Value::Flag(flag) => json!(flag),
        Value::Texts(texts) => json!(texts),
    }
}

fn show(site: &str, as_json: bool) -> Result<(), JobErrors> {
    let catalogue = reach::catalogue()?;
    let entry = reach::site(&catalogue, site)?;
    let value = json_of(site, &entry);
    if as_json {
        crate::json::print("sites show", json!({ "sites": [value] }));
        return Ok(());
    }
    if catalogue.get(site).is_none() {
        crate::print(&format!(
            "'{site}' is not in the sites file: ssh reaches it as its configuration says"
        ));
    }
    for (key, value) in value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "found")
    {
        let empty =
            value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(serde_json::Map::is_empty);
        if !value.is_null() && !empty && *value != json!(false) {
            crate::print(&format!("{key:<14}{}", plain(value)));
        }
    }
    if !entry.found.is_empty() {
        crate::print("found");
        for (key, value) in &entry.found {
            crate::print(&format!("  {key:<14}{value}"));
        }
    }
    Ok(())
}

fn plain(value: &serde_json::Value) -> String {
    if let Some([first, last]) = value.as_array().map(Vec::as_slice).filter(|_| value[0].is_u64()) {
        return format!("{first}-{last}");
    }
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn add(arguments: &Add) -> Result<(), JobErrors> {
    let (text, file) = reach::read_sites_file()?;
    let mut edit = Edit::new(&text, &file)?;
    catalogue::check_site_name(&arguments.site)?;
    let known = catalogue::parse(&text, &file)?;
    let mut values: Vec<(&str, Value)> = Vec::new();
    let contact = arguments.contact.as_ref().filter(|c| **c != arguments.site);
    values.extend(contact.map(|c| ("contact", Value::Text(c.clone()))));
    for setting in &arguments.set {
        values.push(catalogue::setting(setting)?);
    }
    // What the user says now counts for the look as well; it is checked before anybody is asked.
    edit.set(&arguments.site, &values);
    let described = catalogue::parse(&edit.text(), &file)?;
    let entry = reach::site(&described, &arguments.site)?;
    let (mut suggested, mut found) = (Vec::new(), Vec::new());
    if !arguments.no_look {
        let access = reach::access(arguments.ssh.as_deref())?;
        let remote = Remote {
            access: &access,
            contact: &entry.contact,
            setup: &entry.setup,
        };
        let seen = remote.look(LOOK).map_err(|failure| at(&arguments.site, &failure))?;
        found = found::table(&seen);
        suggested = found::suggestions(&seen, &entry);
        if !arguments.json {
            report(&arguments.site, &seen, &suggested);
        }
    }
    let place = kept::sites_file()
        .ok_or_else(|| JobError::new("there is no place for the sites file").hint("set HOME or XDG_CONFIG_HOME"))?;
    let _alone = kept::alone(&place);
    // Others may have changed it while the site was looked at.
    let (text, file) = reach::read_sites_file()?;
    let mut edit = Edit::new(&text, &file)?;
    edit.set(&arguments.site, &values);
    if !arguments.no_look {
        edit.describe(&arguments.site, &suggested, &found);
    }
    let text = edit.text();
    let described = catalogue::parse(&text, &file)?;
    kept::write_private(&place, &text)?;
    let verb = if known.get(&arguments.site).is_some() {
        "updated"
    } else {
        "added"
    };
    if arguments.json {
        let entry = reach::site(&described, &arguments.site)?;
        let value = json_of(&arguments.site, &entry);
        crate::json::print(
            "sites add",
            json!({ "sites": [value], "file": place.display().to_string() }),
        );
        return Ok(());
    }
    crate::print(&format!("{verb} '{}' in {}", arguments.site, place.display()));
    if found.is_empty() && !arguments.no_look {
        note(&JobError::new("nothing was found"));
    }
    Ok(())
}

fn report(site: &str, seen: &Seen, suggested: &[(&str, Value)]) {
    for line in found::lines(seen) {
        crate::print(&format!("{site}: {line}"));
    }
    if seen.facts.schedulers.len() > 1 {
        let taken = suggested.iter().find(|(key, _)| *key == "scheduler");
        let taken = match taken {
            Some((_, Value::Text(word))) => format!("; {word} is taken"),
            _ => String::new(),
        };
        note(
            &JobError::new(format!("site '{site}' has several schedulers{taken}"))
                .hint("isthmus sites add NAME --set scheduler=..."),
        );
    }
}

fn remove(site: &str, as_json: bool) -> Result<(), JobErrors> {
    let _alone = kept::sites_file().and_then(|place| kept::alone(&place));
    let (text, file) = reach::read_sites_file()?;
    let mut edit = Edit::new(&text, &file)?;
    if !edit.remove(site) {
        let error = JobError::new(format!("'{site}' is not in the sites file"));
        return Err(error.hint("isthmus sites list names those that are").into());
    }
    if let Some(place) = kept::sites_file() {
        kept::write_private(&place, &edit.text())?;
    }
    if as_json {
        crate::json::print("sites remove", json!({ "site": site, "removed": true }));
    } else {
        crate::print(&format!("removed '{site}'"));
    }
    Ok(())
}

fn test(arguments: &Test) -> ExitCode {
    let prepared = reach::catalogue().and_then(|catalogue| {
        let names = reach::named_sites(&catalogue, &arguments.sites)?;
        Ok((catalogue, names, reach::access(arguments.ssh.as_deref())?))
    });
    let (catalogue, names, access) = match prepared {
        Ok(prepared) => prepared,
        Err(errors) => return refuse(&errors),
    };
    let looks = found::look_all(&catalogue, &access, &names, LOOK);
    let mut bad = false;
    let mut rows = Vec::new();
    for (name, look) in &looks {
        let problems = match look {
            Ok((entry, seen)) => found::problems(entry, seen),
            Err(error) => vec![error.to_string()],
        };
        bad |= !problems.is_empty();
        rows.push(json!({
            "site": name,
            "works": problems.is_empty(),
            "problems": problems,
            "reached_seconds": look.as_ref().ok().map(|(_, seen)| seen.reached.as_secs_f64()),
            "host": look.as_ref().ok().map(|(_, seen)| seen.facts.host.clone()),
        }));
        if !arguments.json {
            match look {
                Ok((_, seen)) if problems.is_empty() => crate::print(&format!(
                    "{name}: works; reached {} in {:.1} s",
                    seen.facts.host,
                    seen.reached.as_secs_f64()
                )),
                _ => problems.iter().for_each(|p| crate::print(&format!("{name}: {p}"))),
            }
        }
    }
    if arguments.json {
        crate::json::print("sites test", json!({ "sites": rows }));
    }
    if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
