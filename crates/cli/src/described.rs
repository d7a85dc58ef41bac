// SPDX-License-Identifier: Apache-2.0
//! Topology files of what is there: a job that ran, sites with so many processes, what `isthmus discover` has seen;
//! with what was measured of their links.

use isthmus_job::JobError;
use isthmus_job::cache::{Dated, LinkCache};
use isthmus_job::quantity::{show_rate, show_time};
use isthmus_launch::record::{self, Unread};
use isthmus_topology::Rate;
use serde_json::Value;
use std::fmt::Write as _;

/// A site of the file: nodes that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SiteSize {
    pub(crate) name: String,
    pub(crate) nodes: u64,
    /// Of each node.
    pub(crate) processes: u64,
    /// Of each node; `None`: one for each process.
    pub(crate) processors: Option<u64>,
}

/// A link of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) between: [String; 2],
    /// One way, nanoseconds.
    pub(crate) latency: Option<u64>,
    /// Bytes per second.
    pub(crate) rate: Option<u64>,
}

/// The file. What is not known of a link is left out: usual values count then.
pub(crate) fn describe(sites: &[SiteSize], links: &[Line]) -> String {
    let mut text =
        "# A grid for isthmus simulate and isthmus explain. Links that are not listed have usual values.\n".to_owned();
    // Texts of JSON are texts of TOML too.
    let quoted = |name: &str| Value::from(name).to_string();
    for site in sites {
        let _ = write!(
            text,
            "\n[[site]]\nname = {}\nnodes = {}\nprocesses = {}\n",
            quoted(&site.name),
            site.nodes,
            site.processes
        );
        if let Some(processors) = site.processors {
            let _ = writeln!(text, "processors = {processors}");
        }
    }
    for link in links.iter().filter(|link| link.latency.or(link.rate).is_some()) {
        let [a, b] = link.between.each_ref().map(|name| quoted(name));
        let _ = write!(text, "\n[[link]]\nbetween = [{a}, {b}]\n");
        if let Some(latency) = link.latency {
            let _ = writeln!(text, "latency = \"{}\"", show_time(latency));
        }
        if let Some(rate) = link.rate {
            let _ = writeln!(text, "rate = \"{}\"", show_rate(rate));
        }
    }
    text
}

/// Of a job over several sites: as many processes at each, and its links as it has measured them.
pub(crate) fn of_job(job: &str) -> Result<String, JobError> {
    let found = record::read(Some(job)).map_err(|why| match why {
        Unread::Unmeant(text) => JobError::new(text).hint("isthmus ps lists them"),
        Unread::Broken(text) => JobError::new(text),
    })?;
    let line = |event: &str| found.lines.iter().rev().find(|line| line["event"] == event);
    let empty = || {
        JobError::new(format!(
            "the record of job '{}' does not say which sites it has",
            found.name
        ))
    };
    let subjobs = line("record").and_then(|l| l["subjobs"].as_array()).ok_or_else(empty)?;
    let sites: Vec<SiteSize> = subjobs
        .iter()
        .map(|subjob| SiteSize {
            name: subjob["name"].as_str().unwrap_or_default().to_owned(),
            nodes: 1,
            processes: subjob["processes"].as_u64().unwrap_or(1),
            processors: None,
        })
        .collect();
    let Some(links) = line("sums").and_then(|sums| sums["links"].as_array()) else {
        // It runs, or was killed: what earlier jobs have measured.
        return Ok(describe(&sites, &cached(&sites)?));
    };
    let number = |link: &Value, key: &str, unit: f64| {
        let value = link[key].as_f64().map(|v| (v * unit).round()).filter(|v| *v >= 1.0);
        value.map(|v| v as u64)
    };
    let lines = links.iter().map(|link| Line {
        between: [0, 1].map(|end| link["between"][end].as_str().unwrap_or_default().to_owned()),
        latency: number(link, "latency_seconds", 1e9),
        rate: number(link, "bits_per_second", 0.125),
    });
    Ok(describe(&sites, &lines.collect::<Vec<_>>()))
}

/// Of sites as the command line names them, `NAME:PROCESSES`, with what jobs have measured of their links.
pub(crate) fn of_sites(named: &[String]) -> Result<String, JobError> {
    let sites = named.iter().map(|text| size(text)).collect::<Result<Vec<_>, _>>()?;
    let again = (1..sites.len()).find(|&n| sites[..n].iter().any(|before| before.name == sites[n].name));
    if let Some(site) = again.map(|n| &sites[n].name) {
        let error = JobError::new(format!("--site: '{site}' is named twice"));
        return Err(error.hint(format!("give all of its processes at once: --site {site}:8")));
    }
    Ok(describe(&sites, &cached(&sites)?))
}

/// Most nodes of a site, and most processes of a node, of a described grid.
const MOST: u64 = 1 << 20;

fn size(text: &str) -> Result<SiteSize, JobError> {
    let wrong = || {
        let error = JobError::new(format!("--site {text}: this is not NAME:PROCESSES"));
        error.hint("write for example --site home:4 --site lab:16, or --site lab:2x8 for 2 nodes with 8 processes each")
    };
    let number = |number: &str| match number.parse::<u64>() {
        Ok(n @ 1..=MOST) => Ok(n),
        Ok(0) | Err(_) => Err(wrong()),
        Ok(_) => Err(JobError::new(format!(
            "--site {text}: a site has at most {MOST} nodes, and a node as many processes"
        ))),
    };
    let (name, size) = text
        .rsplit_once(':')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(wrong)?;
    let (nodes, processes) = size.split_once('x').unwrap_or(("1", size));
    Ok(SiteSize {
        name: name.to_owned(),
        nodes: number(nodes)?,
        processes: number(processes)?,
        processors: None,
    })
}

/// What jobs have measured between these sites. The user is told where nothing is known.
fn cached(sites: &[SiteSize]) -> Result<Vec<Line>, JobError> {
    let cache = match isthmus_launch::cache_file() {
        Some(file) => isthmus_launch::read_cache(&file).map_err(JobError::new)?,
        None => LinkCache::default(),
    };
    let lines = lines(sites, &cache);
    for line in lines
        .iter()
        .filter(|line| line.latency.is_none() || line.rate.is_none())
    {
        let [a, b] = &line.between;
        crate::complain(&format!(
            "isthmus: note: no job has measured all of the link {a} - {b}: usual values are taken; a job over both sites measures it"
        ));
    }
    Ok(lines)
}

/// The cache knows sites with the host on which they were, `NAME@HOST`: what is youngest counts.
fn lines(sites: &[SiteSize], cache: &LinkCache) -> Vec<Line> {
    let is = |known: &str, name: &str| known == name || known.rsplit_once('@').is_some_and(|(n, _)| n == name);
    let mut all = Vec::new();
    for (n, second) in sites.iter().enumerate() {
        for first in &sites[..n] {
            let (a, b) = (&first.name, &second.name);
            let between = cache
                .links()
                .filter(|(x, y, _)| (is(x, a) && is(y, b)) || (is(x, b) && is(y, a)));
            let (mut latency, mut rate): (Option<Dated<u64>>, Option<Dated<Rate>>) = (None, None);
            for (_, _, known) in between {
                latency = latency.into_iter().chain(known.latency).max_by_key(|one| one.at);
                rate = rate.into_iter().chain(known.rate).max_by_key(|one| one.at);
            }
            all.push(Line {
                between: [a.clone(), b.clone()],
                latency: latency.map(|one| one.value),
                rate: rate.map(|one| one.value.bytes_per_second),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::{cache, grid};

    #[test]
    fn sites_and_their_measured_links_are_a_topology_file() {
        let sites: Vec<SiteSize> = ["home:4", "l\"ab:2x8"].iter().map(|text| size(text).unwrap()).collect();
        let text = "[[link]]\nbetween = [\"home@old\", \"l\\\"ab@b1\"]\nlatency = \"9 ms\"\nlatency_at = 5\n\
                    [[link]]\nbetween = [\"home@new\", \"l\\\"ab@b1\"]\nlatency = \"20 ms\"\nlatency_at = 7\nrate = \"10 Mbit/s\"\nrate_at = 7\n";
        let links = lines(&sites, &cache::parse(text, "links.toml").unwrap());
        let grid = grid::parse(&describe(&sites, &links), "described").unwrap();
        assert_eq!((grid.sites.len(), grid.topology.size()), (2, 20));
        let (_, link) = grid.links.between(&grid.topology, 0, 19);
        assert_eq!((link.latency, link.gap.at(1_250_000)), (20_000_000, 1_000_000_000));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let sites: Vec<SiteSize> = ["a:1", "b:1"].iter().map(|text| size(text).unwrap()).collect();
        let text = describe(&sites, &lines(&sites, &LinkCache::default()));
        assert!(
            !text.contains("[[link]]") && grid::parse(&text, "described").is_ok(),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_site_is_refused() {
        for text in ["a", "a:", ":4", "a:0", "a:x", "a:2x", "a:-1", "a:2000000"] {
            assert!(size(text).unwrap_err().to_string().contains(text), "{text}");
        }
        assert!(size("a:2000000").unwrap_err().to_string().contains("at most 1048576"));
        // A name that a terminal would obey.
        let odd = describe(&[size("a\u{1b}[2J:2").unwrap()], &[]);
        assert!(
            grid::parse(&odd, "--site")
                .unwrap_err()
                .to_string()
                .contains("control characters")
        );
    }
}
