// SPDX-License-Identifier: Apache-2.0
//! The service at a site: one request after the other, until its connection ends.

use crate::{look, probe};
use isthmus_stage::store::{Partial, StageError, Store};
use isthmus_stage::workspace::Workspace;
use isthmus_stage::{cache, content, elf, local, words};
use isthmus_wire::codec::{Deframer, MAX_MESSAGE};
use isthmus_wire::service::{Answer, Ask, CacheVerb, Cached, File, Placed, Root, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A service that has heard nothing for so long leaves, unless the launcher says otherwise; that pings while it has
/// nothing to say.
const SILENCE: Duration = Duration::from_secs(120);
/// The agent of a job whose launcher is gone notices it at the same time, and holds the directory until its processes
/// have ended; then it goes, unless it has a lease. Without an agent nobody holds it.
const LINGER: Duration = Duration::from_secs(1);
/// How often the launcher hears that an answer takes a while.
const BUSY: Duration = Duration::from_secs(3);
/// Binaries of other versions that nobody has used for so long are removed.
const OLD_BINARY: Duration = Duration::from_secs(30 * 86_400);

/// Serves over standard input and output. Returns when the connection ends.
pub fn serve() -> io::Result<()> {
    let _ = rustix::process::setsid();
    let input = io::stdin().lock();
    let mut service = Service {
        output: Arc::new(Mutex::new(Output {
            stream: io::stdout(),
            busy: false,
        })),
        cache: None,
        partial: None,
        workspace: None,
        lease: Duration::ZERO,
        silence: SILENCE,
        open: None,
    };
    let hello = rustix::system::uname();
    service.send(&Answer::Hello {
        version: VERSION,
        host: hello.nodename().to_string_lossy().into_owned(),
        architecture: hello.machine().to_string_lossy().into_owned(),
    })?;
    let output = Arc::clone(&service.output);
    std::thread::spawn(move || tell_busy(&output));
    let orderly = service.work(input).unwrap_or(false);
    if service.lease.is_zero() && service.workspace.is_some() && !orderly {
        std::thread::sleep(LINGER);
    }
    Ok(())
}

/// Where answers go. Whoever waits long for one hears that it is under way.
struct Output<W> {
    stream: W,
    busy: bool,
}

impl<W: Write> Output<W> {
    fn send(&mut self, answer: &Answer) -> io::Result<()> {
        self.stream.write_all(&answer.encode())?;
        self.stream.flush()
    }
}

/// Until nobody listens.
fn tell_busy<W: Write>(output: &Mutex<Output<W>>) {
    loop {
        std::thread::sleep(BUSY);
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.busy && output.send(&Answer::Busy).is_err() {
            return;
        }
    }
}

struct Service<W> {
    output: Arc<Mutex<Output<W>>>,
    cache: Option<(Store, PathBuf)>,
    partial: Option<Partial>,
    workspace: Option<Workspace>,
    /// How long that stays without us.
    lease: Duration,
    /// How long the launcher may say nothing.
    silence: Duration,
    /// The file that was read last: pieces of one follow each other.
    open: Option<(File, std::fs::File)>,
}

impl<W: Write> Service<W> {
    /// Until the end: whether it was an orderly one.
    fn work(&mut self, mut input: impl Read + AsFd) -> io::Result<bool> {
        let mut deframer = Deframer::default();
        let mut buffer = vec![0; 256 << 10];
        loop {
            while let Some(body) = deframer.next_body().map_err(io::Error::other)? {
                let ask = Ask::decode(&body).map_err(io::Error::other)?;
                if ask == Ask::Leave {
                    if let Some(workspace) = self.workspace.take() {
                        workspace.remove();
                    }
                    self.send(&Answer::Done)?;
                    return Ok(true);
                }
                self.set_busy(true);
                self.handle(ask)?;
                self.set_busy(false);
            }
            if !is_readable(&input, self.silence)? {
                return Ok(false);
            }
            match input.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(n) => deframer.feed(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&self, answer: &Answer) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.busy = false;
        output.send(answer)
    }

    fn set_busy(&self, busy: bool) {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).busy = busy;
    }

    fn handle(&mut self, ask: Ask) -> io::Result<()> {
        let answer = match ask {
            Ask::Piece { number, bytes } => return self.piece(number, &bytes),
            Ask::Look => Answer::Facts(Box::new(look::look())),
            Ask::Offer { name, manifest } => {
                self.partial = None;
                self.offer(&name, manifest).unwrap_or_else(failed)
            }
            Ask::Enter {
                directory,
                lease,
                silence,
            } => {
                self.lease = Duration::from_secs(lease.into());
                self.silence = Duration::from_secs(silence.max(1).into());
                self.enter(&directory).unwrap_or_else(failed)
            }
            Ask::Link(placed) => done(self.link(&placed)),
            Ask::MakeDirectory(file) => done(self.make_directory(&file)),
            Ask::List(file) => self.list(&file).unwrap_or_else(failed),
            Ask::Remove(file) => done(remove(&file)),
            Ask::Scratch(file) => self.scratch(&file).unwrap_or_else(failed),
            Ask::Sum(file) => self.sum(&file).unwrap_or_else(failed),
            Ask::Read(file, piece) => self.read(file, piece).unwrap_or_else(failed),
            Ask::Deliver(placed) => done(self.deliver(&placed, false)),
            Ask::Copy(placed) => done(self.deliver(&placed, true)),
            Ask::Cache(verb) => self.cached(verb).unwrap_or_else(failed),
            Ask::Libraries(names) => Answer::Names(elf::lacking(&names)),
            Ask::Addresses => Answer::Names(isthmus_net::local_addresses()),
            Ask::Listen => probe::listen().unwrap_or_else(failed),
            Ask::Dial { addresses, port, token } => probe::dial(&addresses, port, &token).unwrap_or_else(failed),
            Ask::Ping => {
                if let Some(workspace) = &self.workspace {
                    workspace.renew();
                }
                Answer::Done
            }
            Ask::Meter(_) | Ask::Leave => Answer::Done,
        };
        match &answer {
            Answer::Entries(_) | Answer::Sum(_) if answer.encode().len() > MAX_MESSAGE => {
                self.send(&Answer::Failed("the list is too long; ask for less".to_owned()))
            }
            answer => self.send(answer),
        }
    }

    fn store(&mut self) -> Result<&(Store, PathBuf), String> {
        if self.cache.is_none() {
            let cache = cache::directory()
                .map_err(|why| format!("{why}: there is no place for files; XDG_CACHE_HOME can name one"))?;
            tidy_binaries(&cache);
            let store = Store::open(&cache).map_err(text)?;
            Workspace::sweep(&cache);
            self.cache = Some((store, cache));
        }
        self.cache.as_ref().ok_or_else(String::new)
    }

    fn offer(&mut self, name: &str, manifest: isthmus_wire::service::Manifest) -> Result<Answer, String> {
        let (store, _) = self.store()?;
        if let Some(path) = store.find(&manifest.hash, name, manifest.size).map_err(text)? {
            return Ok(Answer::Path(words::text(path)));
        }
        let partial = store.receive_pieces(manifest, name).map_err(text)?;
        if partial.is_complete() {
            let path = partial.finish().map_err(text)?;
            return Ok(Answer::Path(words::text(path)));
        }
        let missing = partial.missing();
        self.partial = Some(partial);
        Ok(Answer::Missing(missing))
    }

    fn piece(&mut self, number: u32, bytes: &[u8]) -> io::Result<()> {
        // Pieces that were on their way when the file failed.
        let Some(mut partial) = self.partial.take() else {
            return Ok(());
        };
        if let Err(error) = partial.write(number, bytes) {
            return self.send(&Answer::Failed(error.to_string()));
        }
        self.send(&Answer::Got(number))?;
        if !partial.is_complete() {
            self.partial = Some(partial);
            return Ok(());
        }
        let answer = match partial.finish() {
            Ok(path) => Answer::Path(words::text(path)),
            Err(error) => Answer::Failed(error.to_string()),
        };
        self.send(&answer)
    }

    fn enter(&mut self, directory: &str) -> Result<Answer, String> {
        if self.workspace.as_ref().is_none_or(|w| w.name() != directory) {
            let lease = self.lease;
            let (store, cache) = self.store()?;
            let workspace = if directory.is_empty() {
                Workspace::create(cache, lease).map_err(text)?
            } else {
                let entered = Workspace::enter(cache, directory).map_err(text)?;
                entered.ok_or("the directory of the job does not exist any more")?
            };
            for file in workspace.links() {
                store.keep(&file).map_err(text)?;
            }
            self.workspace = Some(workspace);
        }
        Ok(Answer::Path(words::text(self.workspace()?.path())))
    }

    fn workspace(&self) -> Result<&Workspace, String> {
        self.workspace
            .as_ref()
            .ok_or_else(|| "there is no directory of the job".to_owned())
    }

    fn link(&mut self, placed: &Placed) -> Result<(), String> {
        self.store()?;
        let (store, _) = self.cache.as_ref().ok_or("there is no cache")?;
        self.workspace()?.link(store, placed).map_err(text)
    }

    fn make_directory(&self, file: &File) -> Result<(), String> {
        match file.root {
            Root::Job => self.workspace()?.make_directory(&file.path).map_err(text),
            Root::Site => {
                let path = at_site(&file.path)?;
                std::fs::create_dir_all(&path).map_err(|e| format!("cannot create '{}': {e}", path.display()))
            }
        }
    }

    fn scratch(&self, below: &File) -> Result<Answer, String> {
        let made = self.workspace()?.scratch(&at_site(&below.path)?).map_err(text)?;
        Ok(Answer::Path(words::text(made)))
    }

    fn list(&self, file: &File) -> Result<Answer, String> {
        let listed = match file.root {
            Root::Job => self.workspace()?.list(),
            Root::Site => local::walk(&at_site(&file.path)?, true),
        };
        let entries = listed.map_err(|e| format!("cannot list '{}': {e}", file.path))?;
        Ok(Answer::Entries(entries))
    }

    fn open(&self, file: &File) -> Result<std::fs::File, String> {
        match file.root {
            Root::Job => self.workspace()?.open(&file.path).map_err(text),
            Root::Site => {
                let path = at_site(&file.path)?;
                content::regular(&path).map_err(|error| format!("cannot read '{}': {error}", path.display()))
            }
        }
    }

    fn sum(&self, file: &File) -> Result<Answer, String> {
        let manifest = content::manifest(&mut self.open(file)?);
        let manifest = manifest.map_err(|e| format!("cannot read '{}': {e}", file.path))?;
        Ok(Answer::Sum(manifest))
    }

    fn read(&mut self, file: File, piece: u32) -> Result<Answer, String> {
        let known = self.open.take().filter(|(name, _)| *name == file);
        let opened = match known {
            Some((_, opened)) => opened,
            None => self.open(&file)?,
        };
        let bytes = local::read_piece(&opened, piece).map_err(|e| format!("cannot read '{}': {e}", file.path))?;
        self.open = Some((file, opened));
        Ok(Answer::Data(bytes))
    }

    fn deliver(&mut self, placed: &Placed, keep: bool) -> Result<(), String> {
        let target = at_site(&placed.path)?;
        if target.is_dir() {
            return Err(format!("'{}' is a directory", target.display()));
        }
        let (store, _) = self.store()?;
        store.deliver(placed, &target, keep).map_err(text)
    }

    fn cached(&mut self, verb: CacheVerb) -> Result<Answer, String> {
        let (store, cache) = self.store()?;
        match verb {
            CacheVerb::List => {}
            CacheVerb::Clear => {
                store.clear();
                Workspace::remove_left(cache);
            }
            CacheVerb::Limit(limit) => store.set_limit(limit).map_err(text)?,
        }
        let files = store.list().into_iter().map(|held| Cached {
            name: held.name,
            hash: held.hash,
            size: held.size,
            age: held.age.as_secs(),
            used: held.used,
        });
        // What lost jobs have left is not in the cache, but beside it.
        let left = Workspace::left(cache).into_iter().map(|left| Cached {
            name: format!("jobs/{}/files", left.name),
            hash: [0; 32],
            size: left.size,
            age: left.age.as_secs(),
            used: false,
        });
        Ok(Answer::Cached {
            files: files.chain(left).collect(),
            limit: store.limit(),
        })
    }
}

fn is_readable(input: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: 0,
    };
    loop {
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&limit)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Relative paths begin at the home directory, as those of scp do.
fn at_site(path: &str) -> Result<PathBuf, String> {
    if path.contains('\0') || words::os(path).len() > 4096 {
        return Err("this is no path".to_owned());
    }
    let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    Ok(match path {
        "" | "." => home(),
        path => home().join(words::path(path)),
    })
}

/// Files only, and nothing of the directory of the job, which goes as a whole.
fn remove(file: &File) -> Result<(), String> {
    let path = at_site(&file.path)?;
    match file.root {
        Root::Job => Err("files of the job go with its directory".to_owned()),
        Root::Site => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("cannot remove '{}': {error}", path.display()))
            }
            _ => Ok(()),
        },
    }
}

/// Notes that this binary is used, and removes those of other versions that are not.
fn tidy_binaries(cache: &Path) {
    let now = std::time::SystemTime::now();
    if let Ok(own) = std::env::current_exe().and_then(std::fs::File::open) {
        let _ = own.set_modified(now);
    }
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_binary = name
            .to_str()
            .is_some_and(|n| n.starts_with("isthmus-") && n.len() >= 72);
        let modified = entry.metadata().and_then(|m| m.modified()).ok();
        let age = modified.and_then(|m| now.duration_since(m).ok());
        if is_binary && age.is_some_and(|age| age > OLD_BINARY) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn text(error: StageError) -> String {
    error.to_string()
}

fn failed(reason: String) -> Answer {
    Answer::Failed(reason)
}

fn done(result: Result<(), String>) -> Answer {
    result.map_or_else(Answer::Failed, |()| Answer::Done)
}
