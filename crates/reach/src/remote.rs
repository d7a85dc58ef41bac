// SPDX-License-Identifier: Apache-2.0
//! What commands do at sites without a job: look, copy files, look after the cache. Blocking; each call has its own
//! runtime.

use crate::failure::Failure;
use crate::service::{Service, out_of_turn};
use crate::sharing::Access;
use crate::staging;
use crate::transfer::Line;
use crate::uncopied::{Uncopied, without_content};
use isthmus_job::Contact;
use isthmus_stage::words;
use isthmus_wire::rate::Rate;
use isthmus_wire::service::{Answer, Ask, CacheVerb, Cached, Entry, EntryKind, Facts, File, Placed, Root};
use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// Bytes with which the rate to a site is measured, and the longest that may take.
const METER: usize = 256 << 10;
const METERING: Duration = Duration::from_secs(3);

/// A site, for commands.
#[derive(Clone, Copy, Debug)]
pub struct Remote<'a> {
    /// How sites are reached.
    pub access: &'a Access,
    /// The site.
    pub contact: &'a Contact,
    /// Commands before anything else there.
    pub setup: &'a [String],
}

/// What a copy did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files copied or found to be there.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Bytes that went over the connection.
    pub sent: u64,
    /// How often a connection was lost and made again.
    pub cuts: u32,
    /// What was left out.
    pub uncopied: Uncopied,
}

impl Tally {
    /// Adds what another copy did.
    pub fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.sent += other.sent;
        self.cuts += other.cuts;
        self.uncopied.add_all("", &other.uncopied);
    }
}

/// What a look at a site gave.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What it has.
    pub facts: Facts,
    /// Round trip to it, seconds; 0 for home.
    pub round_trip: f64,
    /// Rate to it, bits per second, when it was measured.
    pub rate: Option<f64>,
    /// How long it took to reach it.
    pub reached: Duration,
}

/// Does this with a runtime of its own.
pub(crate) fn block<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Runtime::new().map_err(|e| Failure::new(format!("cannot start: {e}"), ""))?;
    let result = runtime.block_on(work);
    // A client that shares its connection waits for the others by itself.
    runtime.shutdown_background();
    result
}

impl Remote<'_> {
    /// Looks at the site; `limit` bounds how long.
    pub fn look(&self, limit: Duration) -> Result<Seen, Failure> {
        block(async {
            let began = Instant::now();
            let looked = async {
                let mut service = Service::open(self.access, self.contact, self.setup).await?;
                let reached = began.elapsed();
                let round_trip = round_trip(&mut service).await?;
                let rate = rate(&mut service, round_trip, *self.contact == Contact::Home).await?;
                let Answer::Facts(facts) = service.ask(&Ask::Look).await? else {
                    return Err(out_of_turn());
                };
                service.leave().await;
                Ok(Seen {
                    facts: *facts,
                    round_trip: if *self.contact == Contact::Home {
                        0.0
                    } else {
                        round_trip
                    },
                    rate,
                    reached,
                })
            };
            let late = || {
                Failure::new(
                    format!("it did not answer within {} s", limit.as_secs()),
                    "try it with ssh by hand",
                )
            };
            tokio::time::timeout(limit, looked)
                .await
                .unwrap_or_else(|_| Err(late()))
        })
    }

    /// What the cache holds, after doing this with it: its limit, its files.
    pub fn cache(&self, verb: CacheVerb) -> Result<(u64, Vec<Cached>), Failure> {
        block(async {
            let mut service = Service::open(self.access, self.contact, self.setup).await?;
            let answer = service.ask(&Ask::Cache(verb)).await?;
            service.leave().await;
            match answer {
                Answer::Cached { limit, files } => Ok((limit, files)),
                _ => Err(out_of_turn()),
            }
        })
    }

    /// Copies a file or directory from home to the site. `target` ending in `/`, or being a directory there, gets it
    /// under its own name.
    pub fn put(
        &self,
        source: &Path,
        target: &str,
        progress: &(dyn Fn(&str, u64, u64) + Sync),
    ) -> Result<Tally, Failure> {
        block(async {
            let entries = isthmus_stage::local::walk(source, true)
                .map_err(|e| Failure::new(format!("cannot read '{}' here: {e}", source.display()), ""))?;
            let mut line = Line::open(self.access, self.contact, self.setup).await?;
            let tree = !is_single(&entries);
            let target = self.target(&mut line, target, source, tree).await?;
            let mut tally = Tally::default();
            if tree {
                make_directory(&mut line, &target).await?;
            }
            for entry in &entries {
                let there = join(&target, &entry.path);
                match entry.kind {
                    EntryKind::Directory => make_directory(&mut line, &there).await?,
                    EntryKind::Other if entry.path.is_empty() => {
                        return Err(without_content(&format!("'{}' here", source.display())));
                    }
                    EntryKind::Other => tally.uncopied.add(&entry.path),
                    EntryKind::File => {
                        let here = if entry.path.is_empty() {
                            source.to_owned()
                        } else {
                            source.join(words::path(&entry.path))
                        };
                        let file = staging::prepare(here).await?;
                        let shown = |done, all| progress(&there, done, all);
                        tally.files += 1;
                        tally.bytes += file.size;
                        if line.holds(&there, entry.executable, &file.manifest).await? {
                            shown(file.size, file.size);
                            continue;
                        }
                        line.put(&file.path, &file.name, &file.manifest, &shown).await?;
                        let placed = Placed {
                            hash: file.hash,
                            name: file.name,
                            size: file.size,
                            path: there.clone(),
                            executable: entry.executable,
                        };
                        match line.ask(&Ask::Deliver(placed)).await? {
                            Answer::Done => {}
                            _ => return Err(out_of_turn()),
                        }
                    }
                }
            }
            (tally.sent, tally.cuts) = (line.sent(), line.cuts);
            line.into_service()?.leave().await;
            Ok(tally)
        })
    }

    /// What a target means at the site, as `cp` would say it.
    async fn target(&self, line: &mut Line<'_>, target: &str, source: &Path, tree: bool) -> Result<String, Failure> {
        let own = source.file_name().map(words::text).unwrap_or_default();
        let file = at_site(target);
        let is_directory = match line.ask(&Ask::List(file)).await {
            Ok(Answer::Entries(entries)) => !is_single(&entries),
            Ok(_) => return Err(out_of_turn()),
            Err(failure) if failure.is_closed() => return Err(failure),
            Err(_) => false,
        };
        if target.ends_with('/') && !is_directory && !tree {
            make_directory(line, target).await?;
        }
        let below = is_directory || (target.ends_with('/') && !tree) || target.is_empty();
        Ok(if below { join(target, &own) } else { target.to_owned() })
    }

    /// Copies a file or directory of the site to home.
    pub fn get(
        &self,
        source: &str,
        target: &Path,
        progress: &(dyn Fn(&str, u64, u64) + Sync),
    ) -> Result<Tally, Failure> {
        block(async {
            let mut line = Line::open(self.access, self.contact, self.setup).await?;
            let Answer::Entries(entries) = line.ask(&Ask::List(at_site(source))).await? else {
                return Err(out_of_turn());
            };
            let own = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let below = target.is_dir() || target.as_os_str().as_bytes().ends_with(b"/");
            let top = if below {
                target.join(words::path(own))
            } else {
                target.to_owned()
            };
            if !is_single(&entries) {
                create(&top)?;
            }
            let mut tally = Tally::default();
            for entry in &entries {
                if !entry.path.is_empty() {
                    isthmus_job::transfer::check_relative(&entry.path)
                        .map_err(|why| Failure::new(format!("the site names a file '{}': {why}", entry.path), ""))?;
                }
                let here = if entry.path.is_empty() {
                    top.clone()
                } else {
                    top.join(words::path(&entry.path))
                };
                match entry.kind {
                    EntryKind::Directory => create(&here)?,
                    EntryKind::Other if entry.path.is_empty() => {
                        return Err(without_content(&format!("'{source}'")));
                    }
                    EntryKind::Other => tally.uncopied.add(&entry.path),
                    EntryKind::File => {
                        if let Some(parent) = here.parent().filter(|p| !p.as_os_str().is_empty()) {
                            create(parent)?;
                        }
                        let file = at_site(&join(source, &entry.path));
                        let shown = |done, all| progress(&file.path, done, all);
                        tally.sent += line.get(&file, &here, entry.executable, &shown).await?;
                        tally.files += 1;
                        tally.bytes += entry.size;
                    }
                }
            }
            tally.cuts = line.cuts;
            line.into_service()?.leave().await;
            Ok(tally)
        })
    }
}

fn is_single(entries: &[Entry]) -> bool {
    matches!(entries, [entry] if entry.path.is_empty())
}

fn create(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|e| Failure::new(format!("cannot create '{}': {e}", path.display()), ""))
}

fn at_site(path: &str) -> File {
    File {
        root: Root::Site,
        path: path.to_owned(),
    }
}

fn join(top: &str, below: &str) -> String {
    match (top, below) {
        (top, "") => top.to_owned(),
        ("", below) => below.to_owned(),
        (top, below) => format!("{}/{below}", top.trim_end_matches('/')),
    }
}

async fn make_directory(line: &mut Line<'_>, path: &str) -> Result<(), Failure> {
    match line.ask(&Ask::MakeDirectory(at_site(path))).await? {
        Answer::Done => Ok(()),
        _ => Err(out_of_turn()),
    }
}

/// The shortest of some round trips, seconds.
async fn round_trip(service: &mut Service) -> Result<f64, Failure> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let began = Instant::now();
        service.perform(&Ask::Ping).await?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// How fast bytes go through the connection, bits per second: more of them until it takes long enough to tell.
async fn rate(service: &mut Service, round_trip: f64, home: bool) -> Result<Option<f64>, Failure> {
    if home {
        return Ok(None);
    }
    let began = Instant::now();
    let mut bytes = METER;
    let mut best = 0.0_f64;
    while began.elapsed() < METERING && bytes <= 16 << 20 {
        let now = Instant::now();
        service.perform(&Ask::Meter(vec![0x5a; bytes])).await?;
        let took = now.elapsed().as_secs_f64() - round_trip;
        if took > 0.0 {
            best = best.max(bytes as f64 * 8.0 / took);
        }
        if took > 0.5 {
            break;
        }
        bytes *= 4;
    }
    Ok((best > 0.0).then_some(best))
}

/// What was measured of a link: round trip and rate.
pub type Measurement = (Duration, Option<Rate>);

/// What is known of the link between two sites, by their places in the list, or why nothing.
pub type MeasuredLink = ((usize, usize), Result<Measurement, String>);

/// Measures the links between all of these sites, one after the other, so that they do not disturb each other. Sites
/// that cannot be reached are left out.
pub fn measure_links(sites: &[Remote<'_>]) -> Vec<MeasuredLink> {
    let measured = block(async {
        let mut services = Vec::new();
        for site in sites {
            services.push(match Service::open(site.access, site.contact, site.setup).await {
                Ok(mut service) => addresses(&mut service).await.map(|addresses| (service, addresses)),
                Err(_) => None,
            });
        }
        let mut links = Vec::new();
        for second in 1..services.len() {
            let (before, after) = services.split_at_mut(second);
            let Some((dialling, _)) = &mut after[0] else { continue };
            for (first, listening) in before.iter_mut().enumerate() {
                let Some((listening, addresses)) = listening else {
                    continue;
                };
                let link = measure_link(listening, addresses, dialling).await;
                links.push(((first, second), link.map_err(|failure| failure.problem)));
            }
        }
        for (service, _) in services.into_iter().flatten() {
            service.leave().await;
        }
        Ok(links)
    });
    measured.unwrap_or_default()
}

async fn addresses(service: &mut Service) -> Option<Vec<String>> {
    match service.ask(&Ask::Addresses).await {
        Ok(Answer::Names(addresses)) => Some(addresses),
        _ => None,
    }
}

async fn measure_link(
    listening: &mut Service,
    addresses: &[String],
    dialling: &mut Service,
) -> Result<Measurement, Failure> {
    let Answer::Listening { port, token } = listening.ask(&Ask::Listen).await? else {
        return Err(out_of_turn());
    };
    let dial = Ask::Dial {
        addresses: addresses.to_vec(),
        port,
        token,
    };
    match dialling.ask(&dial).await? {
        Answer::Measured { round_trip, rate, .. } => Ok((Duration::from_nanos(round_trip), rate)),
        _ => Err(out_of_turn()),
    }
}
