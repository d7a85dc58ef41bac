// SPDX-License-Identifier: Apache-2.0
//! The place of a running job on this machine: `$XDG_CACHE_HOME/isthmus/sessions/JOB`, for its owner alone.
//!
//! | file | what |
//! |---|---|
//! | `lock` | locked while the coordinator lives |
//! | `about` | what `isthmus ps` shows: JSON |
//! | `socket` | takes requests ([`isthmus_wire::control`]) of the same user |
//! | `output`, `errors`, `events` | what a job without a terminal prints, each bounded: the older half is `output.1` and so on |
//! | `outcome` | how it ended: JSON |
//!
//! The place of a job in the foreground goes when the job ends. That of a job in the background stays for its logs, for [`KEPT`].

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long the logs of a job that has ended are kept.
pub const KEPT: Duration = Duration::from_secs(7 * 86_400);
/// Size at which a log becomes the older half and a new one begins, bytes.
pub const LOG_BYTES: u64 = 32 << 20;
/// Largest file of a session that is read whole, bytes.
const MAX_FACTS: u64 = 1 << 20;

/// Where all sessions are.
pub fn directory() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("isthmus").join("sessions"))
}

/// The session of a job that runs in this process.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    name: String,
    words: Vec<String>,
    _lock: File,
    listener: Option<UnixListener>,
    keep: bool,
}

impl Session {
    /// A place for a new job; `keep`: its logs stay when it has ended.
    pub fn create(words: &[String], processes: u32, keep: bool) -> io::Result<Self> {
        let base = directory().ok_or_else(|| io::Error::other("HOME is not set"))?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&base)?;
        sweep(&base);
        let name = isthmus_stage::content::hex(&crate::credentials::random::<4>()?);
        let path = base.join(&name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = private().create_new(true).open(path.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let mut session = Self {
            path,
            name,
            words: words.to_vec(),
            _lock: lock,
            listener: None,
            keep,
        };
        session.listener = Some(session.listen()?);
        let about = json!({
            "job": session.name,
            "pid": std::process::id(),
            "started": crate::now(),
            "words": words,
            "processes": processes,
            "background": keep,
            "directory": isthmus_stage::words::text(std::env::current_dir().unwrap_or_default()),
        });
        session.write("about", &about)?;
        Ok(session)
    }

    fn listen(&self) -> io::Result<UnixListener> {
        let directory = File::open(&self.path)?;
        let listener = UnixListener::bind(short(&directory, "socket"))?;
        fs::set_permissions(self.path.join("socket"), fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// The socket, for whoever answers there.
    pub(crate) fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }

    /// Name of the job.
    pub fn name(&self) -> &str {
        &self.name
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
        if !found.lives && !unfinished && (!found.is_background() || age > KEPT) {
            let _ = fs::remove_dir_all(&found.path);
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
        let Some(base) = directory() else { return Vec::new() };
        sweep(&base);
        let entries = fs::read_dir(base).into_iter().flatten().flatten();
        let mut all: Vec<Self> = entries.filter_map(|e| Self::open(e.path())).collect();
        all.retain(|e| e.about.is_some());
        all.sort_by_key(|e| (e.started(), e.name.clone()));
        all
    }

    /// The job of this name, or the beginning of one.
    pub fn find(name: &str) -> Result<Self, String> {
        let mut found: Vec<Self> = Self::all().into_iter().filter(|e| e.name.starts_with(name)).collect();
        match found.len() {
            _ if name.is_empty() => Err("no job is named".to_owned()),
            1 => Ok(found.remove(0)),
            0 => Err(format!("there is no job '{name}'")),
            _ => Err(format!("'{name}' is the beginning of several jobs' names")),
        }
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

    /// Process of its coordinator.
    pub fn pid(&self) -> u64 {
        self.number("pid")
    }

    /// When it began, seconds since 1970.
    pub fn started(&self) -> u64 {
        self.number("started")
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
