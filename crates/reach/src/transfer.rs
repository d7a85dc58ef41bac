// SPDX-License-Identifier: Apache-2.0
//! Files to and from a site by verified pieces, over as many connections as it takes: after a cut only what is missing
//! is sent again.

use crate::failure::Failure;
use crate::service::{PATIENCE, Service, out_of_turn};
use crate::sharing::Access;
use crate::workspace::{Terms, Workspace};
use isthmus_job::Contact;
use isthmus_stage::local::{Arriving, read_piece};
use isthmus_stage::store::StageError;
use isthmus_wire::service::{Answer, Ask, Entry, EntryKind, File, Manifest, Root, WINDOW};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A site that takes no piece for so long is reached anew.
const STALL: Duration = Duration::from_secs(30);
/// A site where nothing has arrived for so long is given up, unless the caller says otherwise.
pub const HOPE: Duration = Duration::from_secs(300);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// How far a transfer is: bytes that have arrived, of how many.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// So much of a transfer is done, for people.
pub fn progress(done: u64, total: u64) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    match total {
        0 => String::new(),
        total => format!("{:.0} of {:.0} MiB", mib(done), mib(total)),
    }
}

/// A site that is reached again when its connection is lost.
pub struct Line<'a> {
    access: &'a Access,
    contact: &'a Contact,
    setup: &'a [String],
    service: Option<Service>,
    /// The directory of the job there, which another service enters too.
    workspace: Option<Workspace>,
    hope: Duration,
    /// Bytes sent on connections that are lost.
    lost: u64,
    /// How often a connection was lost.
    pub cuts: u32,
    /// When something last got on.
    alive: Instant,
}

impl<'a> Line<'a> {
    /// Reaches a site.
    pub async fn open(access: &'a Access, contact: &'a Contact, setup: &'a [String]) -> Result<Self, Failure> {
        Ok(Self {
            access,
            contact,
            setup,
            service: Some(Service::open(access, contact, setup).await?),
            workspace: None,
            hope: HOPE,
            lost: 0,
            cuts: 0,
            alive: Instant::now(),
        })
    }

    /// The same over a connection that may be there, and in the directory of a job. It is given up when nothing is
    /// heard for so long.
    pub fn within(
        access: &'a Access,
        (contact, setup): (&'a Contact, &'a [String]),
        service: Option<Service>,
        workspace: Workspace,
        hope: Duration,
    ) -> Self {
        Self {
            access,
            contact,
            setup,
            service,
            workspace: Some(workspace),
            hope,
            lost: 0,
            cuts: 0,
            alive: Instant::now(),
        }
    }

    /// The connection as it is now.
    pub fn service(&mut self) -> Result<&mut Service, Failure> {
        self.service.as_mut().ok_or_else(Failure::closed)
    }

    /// Makes the directory of the job.
    pub async fn make_workspace(&mut self, terms: Terms) -> Result<Workspace, Failure> {
        let Answer::Path(files) = self.ask(&terms.enter("")).await? else {
            return Err(out_of_turn());
        };
        let made = Workspace::at(files, terms).ok_or_else(out_of_turn)?;
        self.workspace = Some(made.clone());
        Ok(made)
    }

    /// The connection, to be kept.
    pub fn into_service(mut self) -> Result<Service, Failure> {
        self.service.take().ok_or_else(Failure::closed)
    }

    /// All bytes that were sent.
    pub fn sent(&self) -> u64 {
        self.lost + self.service.as_ref().map_or(0, |s| s.sent)
    }

    /// After a lost connection: another one, unless there is no hope.
    async fn again(&mut self, failure: Failure) -> Result<(), Failure> {
        let mut why = match &mut self.service {
            Some(service) => service.explain(failure).await,
            None => failure,
        };
        if let Some(service) = self.service.take() {
            self.lost += service.sent;
            self.cuts += 1;
        }
        let mut pause = Duration::from_millis(500);
        while self.alive.elapsed() < self.hope {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            match self.reach().await {
                Ok(service) => {
                    self.service = Some(service);
                    return Ok(());
                }
                Err(failure) => why = failure,
            }
            if why.is_final() {
                return Err(why);
            }
        }
        Err(Failure::new(
            format!("{} (given up after {} s)", why.problem, self.hope.as_secs()),
            why.hint,
        ))
    }

    async fn reach(&self) -> Result<Service, Failure> {
        let mut service = Service::open(self.access, self.contact, self.setup).await?;
        if let Some(workspace) = &self.workspace {
            workspace.enter(&mut service).await?;
        }
        Ok(service)
    }

    /// A request that is answered with `Done`, on another connection if this one is lost.
    pub async fn perform(&mut self, ask: &Ask) -> Result<(), Failure> {
        match self.ask(ask).await? {
            Answer::Done => Ok(()),
            _ => Err(out_of_turn()),
        }
    }

    /// A request and its answer, on another connection if this one is lost.
    pub async fn ask(&mut self, ask: &Ask) -> Result<Answer, Failure> {
        loop {
            let answer = match &mut self.service {
                Some(service) => service.ask(ask).await,
                None => Err(Failure::closed()),
            };
            match answer {
                Err(failure) if failure.is_closed() => self.again(failure).await?,
                answer => {
                    self.alive = Instant::now();
                    return answer;
                }
            }
        }
    }

    /// Whether a place in the file system of the site has this content already.
    pub async fn holds(&mut self, path: &str, executable: bool, manifest: &Manifest) -> Result<bool, Failure> {
        let file = File {
            root: Root::Site,
            path: path.to_owned(),
        };
        let listed = match self.ask(&Ask::List(file.clone())).await {
            Ok(Answer::Entries(entries)) => entries,
            Ok(_) => return Err(out_of_turn()),
            Err(failure) if failure.is_closed() || failure.is_final() => return Err(failure),
            Err(_) => return Ok(false),
        };
        let alike = |entry: &Entry| {
            let same = entry.kind == EntryKind::File && entry.size == manifest.size && entry.executable == executable;
            same && entry.path.is_empty()
        };
        if !matches!(listed.as_slice(), [entry] if alike(entry)) {
            return Ok(false);
        }
        match self.ask(&Ask::Sum(file)).await {
            Ok(Answer::Sum(found)) => Ok(found.hash == manifest.hash),
            Ok(_) => Err(out_of_turn()),
            Err(failure) if failure.is_closed() || failure.is_final() => Err(failure),
            Err(_) => Ok(false),
        }
    }

    /// Puts a file into the site's cache. Its path there.
    pub async fn put(
        &mut self,
        file: &Path,
        name: &str,
        manifest: &Manifest,
        progress: Progress<'_>,
    ) -> Result<String, Failure> {
        let opened = std::fs::File::open(file);
        let opened = opened.map_err(|e| Failure::new(format!("cannot read '{}': {e}", file.display()), ""))?;
        let opened = Arc::new(opened);
        let offer = Ask::Offer {
            name: name.to_owned(),
            manifest: manifest.clone(),
        };
        loop {
            let missing = match self.ask(&offer).await? {
                Answer::Path(path) => {
                    progress(manifest.size, manifest.size);
                    return Ok(path);
                }
                Answer::Missing(missing) => missing,
                _ => return Err(out_of_turn()),
            };
            match self.pieces(&opened, manifest, &missing, progress).await {
                Err(failure) if failure.is_closed() => self.again(failure).await?,
                result => {
                    return result.map_err(|f| Failure::new(format!("'{}': {}", file.display(), f.problem), f.hint));
                }
            }
        }
    }

    async fn pieces(
        &mut self,
        file: &Arc<std::fs::File>,
        manifest: &Manifest,
        missing: &[u32],
        progress: Progress<'_>,
    ) -> Result<String, Failure> {
        let wanted: u64 = missing.iter().map(|n| manifest.length(*n) as u64).sum();
        let mut arrived = manifest.size - wanted.min(manifest.size);
        progress(arrived, manifest.size);
        let mut waiting = 0;
        let mut next = missing.iter();
        loop {
            while waiting < WINDOW {
                let Some(number) = next.next() else { break };
                let bytes = piece_of(file, *number, manifest).await?;
                let ask = Ask::Piece { number: *number, bytes };
                // A line that is cut may block the writing as well.
                let sent = tokio::time::timeout(STALL, self.service()?.send(&ask)).await;
                sent.unwrap_or_else(|_| Err(Failure::closed()))?;
                waiting += 1;
            }
            // The last piece is followed by what became of the whole.
            let limit = if waiting == 0 { PATIENCE } else { STALL };
            match self.service()?.receive(limit).await? {
                Answer::Got(number) => {
                    waiting -= 1;
                    arrived += manifest.length(number) as u64;
                    self.alive = Instant::now();
                    progress(arrived, manifest.size);
                }
                Answer::Path(path) => return Ok(path),
                Answer::Failed(why) => {
                    return Err(Failure::new(why, "check the space and rights in ~/.cache at the site"));
                }
                _ => return Err(out_of_turn()),
            }
        }
    }

    /// Fetches a file of the site to a place at home, if it is not there already.
    pub async fn get(
        &mut self,
        file: &File,
        target: &Path,
        executable: bool,
        progress: Progress<'_>,
    ) -> Result<u64, Failure> {
        let Answer::Sum(manifest) = self.ask(&Ask::Sum(file.clone())).await? else {
            return Err(out_of_turn());
        };
        let size = manifest.size;
        let cannot = |error| not_taken(&file.path, &error);
        let Some(mut arriving) = open_arriving(manifest.clone(), target).await.map_err(cannot)? else {
            progress(size, size);
            return Ok(0);
        };
        let mut fetched = 0;
        while !arriving.missing().is_empty() {
            match self.fetch(file, &manifest, &mut arriving, progress, &mut fetched).await {
                Err(failure) if failure.is_closed() => self.again(failure).await?,
                result => result?,
            }
        }
        arriving.finish(executable).map_err(cannot)?;
        Ok(fetched)
    }

    async fn fetch(
        &mut self,
        file: &File,
        manifest: &Manifest,
        arriving: &mut Arriving,
        progress: Progress<'_>,
        fetched: &mut u64,
    ) -> Result<(), Failure> {
        let wanted = arriving.missing().to_vec();
        let (mut asked, mut answered) = (0, 0);
        let left: u64 = wanted.iter().map(|n| manifest.length(*n) as u64).sum();
        let mut arrived = manifest.size - left.min(manifest.size);
        while answered < wanted.len() {
            while asked < wanted.len() && asked - answered < WINDOW {
                self.service()?.send(&Ask::Read(file.clone(), wanted[asked])).await?;
                asked += 1;
            }
            match self.service()?.receive(STALL).await? {
                Answer::Data(bytes) => {
                    let taken = arriving.write(wanted[answered], &bytes);
                    taken.map_err(|error| not_taken(&file.path, &error))?;
                    answered += 1;
                    arrived += bytes.len() as u64;
                    *fetched += bytes.len() as u64;
                    self.alive = Instant::now();
                    progress(arrived, manifest.size);
                }
                Answer::Failed(why) => return Err(Failure::new(why, "")),
                _ => return Err(out_of_turn()),
            }
        }
        Ok(())
    }
}

/// Why a file of a site is not here: it is to blame, or this machine.
fn not_taken(path: &str, error: &StageError) -> Failure {
    let hint = match error {
        StageError::Io { .. } => "that is on this machine: check the free space and your rights there",
        _ => "did it change while it was fetched?",
    };
    Failure::new(format!("'{path}': {error}"), hint)
}

async fn piece_of(file: &Arc<std::fs::File>, number: u32, manifest: &Manifest) -> Result<Vec<u8>, Failure> {
    let file = Arc::clone(file);
    let read = tokio::task::spawn_blocking(move || read_piece(&file, number)).await;
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Err(Failure::new(format!("cannot read it: {error}"), "")),
        Err(error) => return Err(Failure::new(format!("cannot read it: {error}"), "")),
    };
    if bytes.len() < manifest.length(number) {
        return Err(Failure::new("it changed while it was staged", ""));
    }
    Ok(bytes[..manifest.length(number)].to_vec())
}

async fn open_arriving(manifest: Manifest, target: &Path) -> Result<Option<Arriving>, StageError> {
    let target: PathBuf = target.to_owned();
    match tokio::task::spawn_blocking(move || Arriving::open(manifest, &target)).await {
        Ok(opened) => opened,
        Err(_) => Err(StageError::Corrupt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_here_is_not_blamed_on_the_file() {
        let full = StageError::Io {
            doing: "write",
            path: "here/.out.part".into(),
            error: rustix::io::Errno::NOSPC.into(),
        };
        let failure = not_taken("out", &full);
        assert!(
            failure
                .problem
                .starts_with("'out': cannot write 'here/.out.part': No space left"),
            "{failure:?}"
        );
        assert!(failure.hint.contains("on this machine"), "{failure:?}");
        assert!(not_taken("out", &StageError::Corrupt).hint.contains("did it change"));
    }
}
