// SPDX-License-Identifier: Apache-2.0
//! The place of a running job on this machine: `$XDG_CACHE_HOME/isthmus/sessions/JOB`, for its owner alone.
//!
//! | file | what |
//! |---|---|
//! | `lock` | locked while the coordinator lives |
//! | `about` | what `isthmus ps` shows: JSON |
//! | `socket` | takes requests ([`isthmus_wire::control`]) of the same user |
//! | `output`, `errors`, `events` | what a job without a terminal prints, each bounded: the older half is `output.1` and so on |
//! | `held` | what a launcher that follows this one needs ([`crate::Held`]), with a secret; touched while the coordinator lives |
//! | `outcome` | how it ended: JSON |
//!
//! The place of a job in the foreground goes when the job ends. That of a job in the background stays for its logs, for
//! [`KEPT`].

mod held;

use isthmus_reach::plain;
use isthmus_stage::cache::{self, NoCache};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The file in the place of the job.
const HELD: &str = "held";
/// How long the logs of a job that has ended are kept.
pub const KEPT: Duration = Duration::from_secs(7 * 86_400);
/// Size at which a log becomes the older half and a new one begins, bytes.
pub const LOG_BYTES: u64 = 32 << 20;
/// Largest file of a session that is read whole, bytes.
const MAX_FACTS: u64 = 1 << 20;

/// Where all sessions are.
pub fn directory() -> Result<PathBuf, NoCache> {
    Ok(cache::directory()?.join("sessions"))
}

/// The session of a job that runs in this process.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    name: String,
    words: Vec<String>,
    chosen: Option<String>,
    /// Options and settings for a launcher that follows.
    options: Vec<String>,
    environment: Vec<(String, String)>,
    _lock: File,
    listener: Option<UnixListener>,
    keep: bool,
}

/// What other commands are to know of a job.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// What was typed.
    pub words: &'a [String],
    /// Number of its processes.
    pub processes: u32,
    /// The name that its owner gave it.
    pub name: Option<&'a str>,
    /// The identifier that the job has already; nothing: it gets one.
    pub identifier: Option<&'a str>,
    /// Options for a launcher that follows this one.
    pub options: &'a [String],
    /// Settings for it.
    pub environment: &'a [(String, String)],
}

/// Why a job has no place.
#[derive(Debug)]
pub enum Refused {
    /// Another job that runs has its name: which.
    Taken(String),
    /// Nothing can be kept on this machine.
    NoPlace(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::NoPlace(error)
    }
}

impl Session {
    /// A place for a new job; `keep`: its logs stay when it has ended.
    ///
    /// # Errors
    /// Its name is taken, or nothing can be kept here.
    pub fn create(about: &About<'_>, keep: bool) -> Result<Self, Refused> {
        let base = directory().map_err(io::Error::other)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&base)?;
        sweep(&base);
        // Of two that begin at once with one name the second sees the first.
        let turn = File::open(&base)?;
        flock(&turn, FlockOperation::LockExclusive).map_err(io::Error::from)?;
        let taken = |name| {
            Entry::all()
                .into_iter()
                .find(|e| e.lives && e.chosen_name() == Some(name))
        };
        if let Some(other) = about.name.and_then(taken) {
            return Err(Refused::Taken(other.name));
        }
        let name = match about.identifier {
            Some(identifier) => identifier.to_owned(),
            None => isthmus_stage::content::hex(&isthmus_stage::guarded::random::<4>()?),
        };
        let path = base.join(&name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = private().create_new(true).open(path.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from)?;
        let mut session = Self {
            path,
            name,
            words: about.words.to_vec(),
            chosen: about.name.map(str::to_owned),
            options: about.options.to_vec(),
            environment: about.environment.to_vec(),
            _lock: lock,
            listener: None,
            keep,
        };
        session.listener = Some(session.listen()?);
        let facts = json!({
            "job": session.name,
            "name": about.name,
            "pid": std::process::id(),
            "started": crate::now(),
            "words": about.words,
            "processes": about.processes,
            "background": keep,
            "directory": isthmus_stage::words::text(std::env::current_dir().unwrap_or_default()),
        });
        session.write("about", &facts)?;
        Ok(session)
    }

    fn listen(&self) -> io::Result<UnixListener> {
        let directory = File::open(&self.path)?;
        let listener = UnixListener::bind(short(&directory, "socket"))?;
        fs::set_permissions(self.path.join("socket"), fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// The socket once more, for whoever answers there for a while.
    pub(crate) fn lend_listener(&self) -> Option<UnixListener> {
        self.listener.as_ref()?.try_clone().ok()
    }

    /// The socket, for whoever answers there.
    pub(crate) fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }

    /// Name of the job.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that its owner gave it.
    pub(crate) fn chosen_name(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// What was typed.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The job has no terminal any more: its logs are kept.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Whether its logs are kept.
    pub fn is_kept(&self) -> bool {
        self.keep
    }

    /// The job has ended.
    pub fn close(self, status: i32, problem: Option<&str>, hint: &str) {
        if self.keep {
            let outcome = json!({"status": status, "problem": problem, "hint": hint, "ended": crate::now()});
            // Nobody is left to be told.
            let _ = self.write("outcome", &outcome);
            let _ = fs::remove_file(self.path.join("socket"));
            let _ = fs::remove_file(self.path.join(HELD));
        }
    }

    fn write(&self, file: &str, value: &Value) -> io::Result<()> {
        let new = self.path.join(format!("{file}.new"));
        let _ = fs::remove_file(&new);
        private()
            .create_new(true)
            .open(&new)?
            .write_all(format!("{value}\n").as_bytes())?;
        fs::rename(new, self.path.join(file))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Removes what nobody needs: of coordinators that were killed in the foreground, and of jobs that ended long ago.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let Some(found) = Entry::open(entry.path()) else {
            continue;
        };
        let age = SystemTime::now().duration_since(found.touched()).unwrap_or_default();
        // One that is just being made has no facts yet.
        let unfinished = found.about.is_none() && age < Duration::from_secs(60);
        let needed = found.seconds_left().is_some() || found.is_background() && age <= KEPT;
        if !found.lives && !unfinished && !needed {
            let _ = fs::remove_dir_all(&found.path);
        }
    }
}

/// What a word may mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// What the launcher calls the job.
    pub(crate) identifier: &'a str,
    /// What its owner calls it.
    pub(crate) name: Option<&'a str>,
    /// Whether it runs.
    pub(crate) lives: bool,
}

/// Which job a word means, of those in the order of their beginnings: the one with this name, of several the one that
/// runs or else the newest; or the one whose identifier or name begins so.
pub(crate) fn choose(word: &str, all: &[Candidate<'_>]) -> Result<usize, Unclear> {
    if word.is_empty() {
        return Err(Unclear::Unnamed);
    }
    let word = word.strip_prefix("isthmus-").unwrap_or(word);
    let exact = |c: &Candidate<'_>| c.identifier == word || c.name == Some(word);
    let running = all.iter().rposition(|c| exact(c) && c.lives);
    if let Some(at) = running.or_else(|| all.iter().rposition(exact)) {
        return Ok(at);
    }
    let begins = |c: &Candidate<'_>| c.identifier.starts_with(word) || c.name.is_some_and(|n| n.starts_with(word));
    let mut found = (0..all.len()).filter(|at| begins(&all[*at]));
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (None, _) => Err(Unclear::Unknown),
        _ => Err(Unclear::Several),
    }
}

/// Why a word means no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// It is empty.
    Unnamed,
    /// No job is called so.
    Unknown,
    /// Several names begin so.
    Several,
}

impl Unclear {
    /// For people.
    pub(crate) fn of(self, word: &str) -> String {
        let word = plain(word);
        match self {
            Self::Unnamed => "no job is named".to_owned(),
            Self::Unknown => format!("there is no job '{word}'"),
            Self::Several => format!("'{word}' is the beginning of several jobs' names"),
        }
    }
}

/// A job as other commands see it.
#[derive(Debug)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// Name of the job.
    pub name: String,
    /// Whether its coordinator lives.
    pub lives: bool,
    about: Option<Value>,
    outcome: Option<Value>,
}

impl Entry {
    fn open(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_owned();
        let lives = File::open(path.join("lock"))
            .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err());
        Some(Self {
            about: facts(&path.join("about")),
            outcome: facts(&path.join("outcome")),
            lives,
            name,
            path,
        })
    }

    /// All jobs of the user, the oldest first. What nobody needs is removed before.
    pub fn all() -> Vec<Self> {
        let Ok(base) = directory() else { return Vec::new() };
        sweep(&base);
        let entries = fs::read_dir(base).into_iter().flatten().flatten();
        let mut all: Vec<Self> = entries.filter_map(|e| Self::open(e.path())).collect();
        all.retain(|e| e.about.is_some());
        all.sort_by_key(|e| (e.started(), e.name.clone()));
        all
    }

    /// The job that is meant by this word: see [`choose`].
    ///
    /// # Errors
    /// There is none, or several are meant.
    pub fn find(word: &str) -> Result<Self, String> {
        let mut all = Self::all();
        let known: Vec<Candidate<'_>> = all
            .iter()
            .map(|e| Candidate {
                identifier: &e.name,
                name: e.chosen_name(),
                lives: e.lives,
            })
            .collect();
        let at = choose(word, &known).map_err(|why| why.of(word))?;
        Ok(all.swap_remove(at))
    }

    /// Whether it still runs, looked at anew.
    pub fn still_lives(&self) -> bool {
        Self::open(self.path.clone()).is_some_and(|entry| entry.lives)
    }

    /// Reads anew how it stands.
    #[must_use]
    pub fn again(self) -> Self {
        Self::open(self.path.clone()).unwrap_or(self)
    }

    /// Whether it runs, or ran, without a terminal.
    pub fn is_background(&self) -> bool {
        self.about.as_ref().is_some_and(|a| a["background"] == true) || self.path.join("output").exists()
    }

    /// The name that its owner gave it.
    pub fn chosen_name(&self) -> Option<&str> {
        self.about.as_ref()?["name"].as_str()
    }

    /// Process of its coordinator.
    pub fn pid(&self) -> u64 {
        self.number("pid")
    }

    /// When it began, seconds since 1970.
    pub fn started(&self) -> u64 {
        self.number("started")
    }

    /// When it ended, seconds since 1970; nothing while it runs or waits for another launcher.
    pub fn ended(&self) -> Option<u64> {
        let told = self.outcome.as_ref().and_then(|outcome| outcome["ended"].as_u64());
        // Of one that was killed the last sign of life is known.
        let last = || {
            self.touched()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map(|t| t.as_secs())
                .ok()
        };
        match self.lives || self.seconds_left().is_some() {
            true => None,
            false => told.or_else(last),
        }
    }

    /// Number of its processes.
    pub fn processes(&self) -> u64 {
        self.number("processes")
    }

    /// What was typed.
    pub fn words(&self) -> Vec<&str> {
        let words = self.about.as_ref().and_then(|a| a["words"].as_array());
        words.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Exit status, what went wrong and what to do about it, once it has ended.
    pub fn outcome(&self) -> Option<(i32, String, String)> {
        let outcome = self.outcome.as_ref()?;
        let status = outcome["status"].as_i64().and_then(|s| i32::try_from(s).ok())?;
        let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
        Some((status, text("problem"), text("hint")))
    }

    fn number(&self, key: &str) -> u64 {
        self.about.as_ref().and_then(|a| a[key].as_u64()).unwrap_or(0)
    }

    fn touched(&self) -> SystemTime {
        let files =
            ["outcome", "about", "lock", "."].map(|f| fs::metadata(self.path.join(f)).and_then(|m| m.modified()));
        files.into_iter().flatten().next().unwrap_or_else(SystemTime::now)
    }
}

/// Whether the coordinator of the job with this identifier lives here.
pub(crate) fn lives(identifier: &str) -> bool {
    directory().is_ok_and(|base| Entry::open(base.join(identifier)).is_some_and(|entry| entry.lives))
}

fn facts(path: &Path) -> Option<Value> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_FACTS).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// A path that is short enough for a socket, whatever the path of its directory: through a descriptor of that.
pub(crate) fn short(directory: &File, file: &str) -> PathBuf {
    format!("/proc/self/fd/{}/{file}", directory.as_raw_fd()).into()
}

/// A log of bounded size.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Log {
    /// Begins or goes on with a log of a session.
    pub fn open(session: &Path, name: &str) -> io::Result<Self> {
        let path = session.join(name);
        let file = private().create(true).append(true).open(&path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path, file, bytes })
    }

    /// Adds bytes. The older half makes room when the log is full.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + bytes.len() as u64 > LOG_BYTES {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            fs::rename(&self.path, older)?;
            self.file = private().create(true).append(true).open(&self.path)?;
            self.bytes = 0;
        }
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Reads a log while it grows.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: Option<File>,
    begun: bool,
}

impl LogReader {
    /// Reads a log of a session from its beginning, as far as it is kept.
    pub fn open(session: &Path, name: &str) -> Self {
        Self {
            path: session.join(name),
            file: None,
            begun: false,
        }
    }

    /// What has come since the last time, at most `most` bytes.
    pub fn read(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            self.file = File::open(older).ok();
        }
        loop {
            if let Some(file) = &mut self.file {
                file.take((most - bytes.len()) as u64).read_to_end(&mut bytes)?;
                if bytes.len() == most || !self.is_replaced()? {
                    return Ok(bytes);
                }
            }
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the file that is read is no longer the newest.
    fn is_replaced(&mut self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let Some(file) = &mut self.file else { return Ok(true) };
        let own = file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(newest) if newest.ino() != own.ino() => Ok(file.stream_position()? >= own.len()),
            Ok(_) => {
                // A log never shrinks.
                let at = file.stream_position()?;
                file.seek(SeekFrom::Start(at))?;
                Ok(false)
            }
            Err(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_one_job() {
        let job = |identifier, name, lives| Candidate {
            identifier,
            name,
            lives,
        };
        let all = [
            job("11aa22bb", Some("climate"), false),
            job("22bb33cc", Some("climate"), true),
            job("33cc44dd", Some("climate"), false),
            job("44dd55ee", Some("climate-2"), false),
            job("44ee66ff", None, true),
            job("55ff7700", Some("mesh"), false),
            job("66007711", Some("mesh"), false),
        ];
        for (word, meant) in [
            ("climate", 1),
            ("mesh", 6),
            ("climate-", 3),
            ("33", 2),
            ("11aa22bb", 0),
            ("isthmus-44ee66ff", 4),
        ] {
            assert_eq!(choose(word, &all), Ok(meant), "{word}");
        }
        assert_eq!(choose("44", &all), Err(Unclear::Several));
        assert_eq!(choose("clim", &all), Err(Unclear::Several));
        assert_eq!(choose("99", &all), Err(Unclear::Unknown));
        assert_eq!(choose("", &all), Err(Unclear::Unnamed));
    }

    #[test]
    fn logs_are_bounded_and_read_while_they_grow() {
        let place = std::env::temp_dir().join(format!("isthmus-log-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let mut reader = LogReader::open(&place, "output");
        assert_eq!(reader.read(100).unwrap(), b"");
        let mut log = Log::open(&place, "output").unwrap();
        log.write(b"one").unwrap();
        assert_eq!(reader.read(100).unwrap(), b"one");
        log.write(b"two").unwrap();
        log.bytes = LOG_BYTES;
        log.write(b"three").unwrap();
        assert_eq!(reader.read(4).unwrap(), b"twot");
        assert_eq!(reader.read(100).unwrap(), b"hree");
        assert_eq!(LogReader::open(&place, "output").read(100).unwrap(), b"onetwothree");
        fs::remove_dir_all(&place).unwrap();
    }
}
