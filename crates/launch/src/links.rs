// SPDX-License-Identifier: Apache-2.0
//! What is known of a job's links: usual values, what earlier jobs measured, what the user pins; and the cache that
//! this job's measurements go to.

use isthmus_job::Job;
use isthmus_job::cache::{self, Dated, LinkCache, Remembered};
use isthmus_topology::{LinkEstimates, Measured, Origin, Rate, combine};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Largest cache that is read, bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Most measurements of a job that are kept.
const MAX_MEASURED: usize = 1 << 18;

/// How links are remembered and measured.
#[derive(Clone, Debug, Default)]
pub struct LinkOptions {
    /// The cache; `None`: there is no place for one, or nobody wants it.
    pub cache: Option<PathBuf>,
    /// How long what was measured counts, seconds.
    pub expiry: u64,
    /// Whether processes measure what is not known.
    pub measure: bool,
}

/// What is known of one link, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// Names of the two local areas.
    pub between: [String; 2],
    /// One way, nanoseconds, and where that comes from.
    pub latency: (u64, Origin),
    /// Bytes per second, and where that comes from.
    pub rate: (u64, Origin),
    /// What the rate stands on, if it was measured.
    pub evidence: Option<Rate>,
}

/// What a command has measured of the link between two sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The two sites, as the cache calls them: see [`site_name`].
    pub between: [String; 2],
    /// What was measured; nothing: only what is known is wanted.
    pub measured: Measured,
}

/// How the cache calls a site: its name in the job and the host that was reached.
pub fn site_name(name: &str, host: &str) -> String {
    format!("{name}@{host}")
}

/// Keeps what was measured, and says of each link what is to be believed of it: of what was measured now and what was
/// measured before, by jobs or commands, the better evidence. Second: what the user should be told.
pub fn believe(seen: &[Sighting], options: &LinkOptions) -> (Vec<Remembered>, Option<String>) {
    let file = options.cache.as_deref();
    let _alone = file.and_then(alone);
    let (mut cache, mut problem) = match file.map(read_cache) {
        Some(Ok(cache)) => (cache, None),
        Some(Err(text)) => (LinkCache::default(), Some(text)),
        None => (LinkCache::default(), None),
    };
    let before = cache.clone();
    let now = now();
    for sighting in seen {
        let [a, b] = &sighting.between;
        if sighting.measured.latency.is_some() || sighting.measured.rate.is_some() {
            // What is expired says nothing any more.
            cache.expire(a, b, now, options.expiry);
            cache.note(a, b, &sighting.measured, now);
        }
    }
    if let Some(file) = file.filter(|_| problem.is_none() && cache != before) {
        problem = write_cache(file, &cache).err();
    }
    let known = |s: &Sighting| cache.fresh(&s.between[0], &s.between[1], now, options.expiry.max(1));
    (seen.iter().map(known).collect(), problem)
}

/// The place of the cache: `$XDG_CACHE_HOME/isthmus/links.toml` or `$HOME/.cache/isthmus/links.toml`.
pub fn cache_file() -> Option<PathBuf> {
    Some(isthmus_stage::cache::directory().ok()?.join("links.toml"))
}

/// Keeps others from changing the cache: what they have written is not lost.
fn alone(file: &Path) -> Option<std::fs::File> {
    isthmus_stage::guarded::alone_in(file.parent()?)
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Reads the cache. One that is not there is empty; the text says what is wrong with another.
pub fn read_cache(file: &Path) -> Result<LinkCache, String> {
    let wrong = |error: &dyn std::fmt::Display| {
        format!(
            "the cache of links {} cannot be used and is ignored: {error}",
            file.display()
        )
    };
    match std::fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LinkCache::default()),
        Err(error) => return Err(wrong(&error)),
        Ok(data) if !data.is_file() => return Err(wrong(&"it is not a file")),
        Ok(data) if data.len() > MAX_BYTES => return Err(wrong(&format!("it is larger than {MAX_BYTES} bytes"))),
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    cache::parse(&text, &file.display().to_string()).map_err(|error| wrong(&error))
}

/// Puts the cache in the place of what is there, whole or not at all; only the user may read it.
pub fn write_cache(file: &Path, cache: &LinkCache) -> Result<(), String> {
    let written = || -> io::Result<()> {
        if let Some(directory) = file.parent() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
        }
        let temporary = file.with_extension(format!("new-{}", std::process::id()));
        let _ = std::fs::remove_file(&temporary);
        let mut new = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        let done = new
            .write_all(cache.format().as_bytes())
            .and_then(|()| std::fs::rename(&temporary, file));
        if done.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        done
    };
    written().map_err(|error| {
        format!(
            "what was measured of links cannot be kept in {}: {error}",
            file.display()
        )
    })
}

/// The links of a job while it runs.
#[derive(Debug)]
pub(crate) struct JobLinks {
    options: LinkOptions,
    /// Of the local areas, by number: as the user calls them, and as the cache does.
    names: Vec<(String, String)>,
    estimates: LinkEstimates,
    /// What earlier jobs and commands have left.
    cached: Vec<Measured>,
    measured: Vec<Measured>,
}

impl JobLinks {
    /// Collects what is known before the processes begin. Second: what the user should be told.
    pub(crate) fn new(job: &Job, hosts: &[String], options: &LinkOptions) -> (Self, Option<String>) {
        let areas = job.local_areas();
        let identity = |(name, subjobs): &(&str, Vec<usize>)| {
            let host = subjobs.first().and_then(|&s| hosts.get(s)).map_or("", |h| h);
            ((*name).to_owned(), site_name(name, host))
        };
        let mut links = Self {
            options: options.clone(),
            names: areas.iter().map(identity).collect(),
            estimates: LinkEstimates::new(job.links().levels(), []),
            cached: Vec::new(),
            measured: Vec::new(),
        };
        let mut problem = None;
        if links.names.len() > 1 {
            let file = links.options.cache.as_deref();
            let cache = file
                .map_or_else(|| Ok(LinkCache::default()), read_cache)
                .unwrap_or_else(|text| {
                    problem = Some(text);
                    LinkCache::default()
                });
            let now = now();
            links.cached = links.remembered(&cache, now, |known| known.value);
            // For what is measured while the job runs it counts as much as it is worth by now.
            let worth = links.remembered(&cache, now, |known| known.value.aged(now.saturating_sub(known.at)));
            links.estimates = links.estimates.learn(&worth, Origin::Cached);
        }
        let number = |name: &str| {
            let of_site = |subjobs: &[usize]| subjobs.iter().any(|&s| job.subjobs()[s].site == name);
            let found = areas.iter().position(|(area, _)| *area == name);
            let found = found.or_else(|| areas.iter().position(|(_, subjobs)| of_site(subjobs)));
            found.and_then(|at| u32::try_from(at).ok())
        };
        links.estimates = job.links().pinned(links.estimates, number);
        (links, problem)
    }

    /// What processes begin with.
    pub(crate) fn table(&self) -> isthmus_wire::links::Table {
        isthmus_wire::links::Table {
            measure: self.options.measure,
            ..self.estimates.to_wire()
        }
    }

    fn remembered(&self, cache: &LinkCache, now: u64, rate: impl Fn(Dated<Rate>) -> Rate) -> Vec<Measured> {
        let mut all = Vec::new();
        for (a, (_, first)) in (0u32..).zip(&self.names) {
            for (b, (_, second)) in (0u32..).zip(&self.names).skip(a as usize + 1) {
                let known = cache.fresh(first, second, now, self.options.expiry);
                all.push(Measured {
                    between: (a, b),
                    latency: known.latency.map(|d| d.value),
                    rate: known.rate.map(&rate),
                });
            }
        }
        all
    }

    /// What a process has measured. Local areas that do not exist are ignored.
    pub(crate) fn take(&mut self, measured: &[Measured]) {
        let exists = |m: &&Measured| (m.between.1 as usize) < self.names.len();
        let room = MAX_MEASURED - self.measured.len();
        self.measured.extend(measured.iter().filter(exists).take(room));
    }

    /// Keeps what was measured for later jobs. What the user should be told when that is not possible.
    pub(crate) fn keep(&self) -> Option<String> {
        let file = self.options.cache.as_deref().filter(|_| !self.measured.is_empty())?;
        let _alone = alone(file);
        // What others have written meanwhile stays; what cannot be read is replaced.
        let mut cache = read_cache(file).unwrap_or_default();
        let now = now();
        for one in &combine(self.measured.iter().copied()) {
            let name = |number: u32| self.names.get(number as usize).map(|(_, name)| name);
            if let (Some(a), Some(b)) = (name(one.between.0), name(one.between.1)) {
                cache.expire(a, b, now, self.options.expiry);
                cache.note(a, b, one, now);
            }
        }
        write_cache(file, &cache).err()
    }

    /// For people: every pair of which something is known in the end.
    pub(crate) fn report(&self) -> Vec<LinkReport> {
        let measured = combine(self.measured.iter().copied());
        // As the next job will see it.
        let estimates = self.estimates.learn(&measured, Origin::Measured);
        let name = |number: u32| {
            let name = self.names.get(number as usize);
            name.map_or_else(String::new, |(name, _)| name.clone())
        };
        let report = estimates.pairs().map(|(between, origins, link)| {
            let from = match origins.rate {
                Origin::Measured => &measured,
                Origin::Cached => &self.cached,
                Origin::Assumed | Origin::Pinned => &Vec::new(),
            };
            LinkReport {
                between: [name(between.0), name(between.1)],
                latency: (link.latency, origins.latency),
                rate: (link.gap.as_rate(), origins.rate),
                evidence: from.iter().find(|m| m.between == between).and_then(|m| m.rate),
            }
        });
        report.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::{Program, sites};

    fn job(pins: &str) -> Job {
        let specs = ["home:1", "b=home:1", "c=home:1"].map(|s| sites::SiteSpec::parse(s).unwrap());
        let template = sites::template(Program::one("x"), vec![]);
        let job = sites::job_of_sites(&specs, None, &template).unwrap();
        job.with_links(isthmus_job::links::parse(pins, "pins").unwrap())
    }

    fn hosts() -> Vec<String> {
        ["h", "b1", "c1"].map(str::to_owned).to_vec()
    }

    #[test]
    fn what_one_job_measures_the_next_one_knows() {
        let directory = std::env::temp_dir().join(format!("isthmus-links-test-{}", std::process::id()));
        let options = LinkOptions {
            cache: Some(directory.join("deep").join("links.toml")),
            expiry: 100,
            measure: true,
        };
        let (mut first, problem) = JobLinks::new(&job(""), &hosts(), &options);
        assert_eq!((problem, first.table().pairs.len()), (None, 0));
        let measured = |between, latency| Measured {
            between,
            latency: Some(latency),
            rate: Some(Rate::bare(1_000_000)),
        };
        first.take(&[measured((0, 1), 7_000_000), measured((0, 9), 1)]);
        first.take(&[measured((0, 1), 6_000_000)]);
        assert_eq!(first.keep(), None);
        let pins = "[[link]]\nbetween = [\"b\", \"home\"]\nrate = \"5 MB/s\"\n";
        let (second, _) = JobLinks::new(&job(pins), &hosts(), &options);
        let report = second.report();
        assert_eq!(report.len(), 1);
        assert_eq!(report[0].latency, (6_000_000, Origin::Cached));
        assert_eq!(report[0].rate, (5_000_000, Origin::Pinned));
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(options.cache.as_ref().unwrap()).unwrap());
        assert_eq!(mode & 0o777, 0o600);

        std::fs::write(options.cache.as_ref().unwrap(), "[[link]]\nbetween = 3\n").unwrap();
        let (third, problem) = JobLinks::new(&job(""), &hosts(), &options);
        assert!(problem.unwrap().contains("is ignored: "), "told");
        assert_eq!(third.report(), []);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
