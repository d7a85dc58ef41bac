// SPDX-License-Identifier: Apache-2.0
//! One connection of ssh per site: whoever comes first signs on, the others use its connection (`ControlMaster` of
//! OpenSSH).
//!
//! The control sockets are in a private directory that ends with us. A user who has configured control sockets keeps
//! them. A client that is not OpenSSH gets no options of it.

use crate::asking::Asking;
use crate::client::SHIELDED;
use crate::configured;
use crate::failure::Failure;
use crate::masters;
use crate::plain;
use crate::uncopied::Fetched;
use isthmus_job::Contact;
use isthmus_stage::content;
use isthmus_stage::guarded::{Guarded, sweep};
use isthmus_stage::own;
use isthmus_wire::grid::Hash;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{OnceCell, OwnedMutexGuard};

/// How long a client may take that only tells another one something.
const TELLING: Duration = Duration::from_secs(10);
/// Seconds for which a connection that nobody uses stays. With it the connection belongs to a process of its own, and a
/// client that hangs can be ended without the others at its site.
const PERSIST: u32 = 5;
/// Seconds after which a host that does not answer is given up, where the user's configuration says nothing of it.
pub const CONNECTING: u32 = 20;
/// Longest base of the directory for sockets: ssh adds a name of its own while it makes one.
const LONGEST: usize = 32;

/// How sites are reached.
#[derive(Debug)]
pub struct Access {
    pub(crate) binary: PathBuf,
    pub(crate) ssh: String,
    /// Whether somebody at a terminal can answer questions.
    terminal: AtomicBool,
    /// How long a site may be out of reach.
    pub(crate) away: Duration,
    /// Connections that several use.
    pub sharing: Sharing,
    /// What ssh clients ask at the terminal.
    pub asking: Arc<Asking>,
    helper: OnceCell<HashMap<String, PathBuf>>,
    hashed: OnceCell<(Hash, u64)>,
    /// What has been fetched, by where it is.
    pub(crate) fetched: Mutex<BTreeMap<String, Arc<OnceCell<Fetched>>>>,
}

impl Access {
    /// With this binary for sites that lack it, this command as the ssh client, and somebody at a `terminal` who can
    /// answer its questions or nobody.
    pub fn new(binary: &Path, ssh: &str, terminal: bool) -> Self {
        Self {
            binary: binary.to_owned(),
            ssh: ssh.to_owned(),
            terminal: AtomicBool::new(terminal),
            away: Duration::from_secs(60),
            sharing: Sharing::default(),
            asking: Arc::default(),
            helper: OnceCell::new(),
            hashed: OnceCell::new(),
            fetched: Mutex::default(),
        }
    }

    /// The same for sites that may be out of reach for so long.
    #[must_use]
    pub fn patient(self, away: Duration) -> Self {
        Self { away, ..self }
    }

    /// Whether somebody at a terminal can answer the questions of an ssh client.
    pub fn has_terminal(&self) -> bool {
        self.terminal.load(Ordering::Relaxed)
    }

    /// Nobody is asked any more.
    pub fn leave_terminal(&self) {
        self.terminal.store(false, Ordering::Relaxed);
    }

    /// Nothing is reached any more: what is on this machine for it goes at once, also when tasks that use it are still
    /// there.
    pub fn close(&self) {
        if let Some(Some(directory)) = self.sharing.directory.get() {
            masters::end(directory.path());
            let _ = std::fs::remove_dir_all(directory.path());
        }
    }

    /// Variables with which ssh clients let us ask their questions. None where nobody could answer, or the user has a
    /// way of their own.
    pub async fn questions(&self) -> &HashMap<String, PathBuf> {
        let serve = || async {
            let own = std::env::var_os("SSH_ASKPASS_REQUIRE").is_some();
            let directory = if self.has_terminal() && !own {
                self.sharing.directory().await
            } else {
                None
            };
            let served = directory.map(|d| self.asking.serve(d.path(), &own::found(&self.binary)));
            // Without it the client asks at the terminal by itself.
            served.and_then(Result::ok).unwrap_or_default()
        };
        self.helper.get_or_init(serve).await
    }

    /// Hash and size of the binary.
    pub async fn own_binary(&self) -> Result<(Hash, u64), Failure> {
        let hashed = self
            .hashed
            .get_or_try_init(|| own_binary(own::found(&self.binary)))
            .await;
        hashed.copied()
    }

    /// Tells the client that has the connection to a site something (`-O …`): what it answers. An error: its words.
    pub async fn tell_client(&self, destination: &str, words: &[&str]) -> Result<String, String> {
        let shared = self.sharing.options(self, destination).await;
        let telling = Command::new("/bin/sh")
            .args(["-c", SHIELDED, &self.ssh])
            .args(shared)
            .args(words)
            .args(["--", destination])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        match tokio::time::timeout(TELLING, telling).await {
            Ok(Ok(told)) if told.status.success() => Ok(String::from_utf8_lossy(&told.stdout).into_owned()),
            Ok(Ok(told)) => Err(plain(String::from_utf8_lossy(&told.stderr).trim())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the ssh client does not answer".to_owned()),
        }
    }

    /// What the ssh client would do for a destination: its own configuration and the user's, as `-G` prints it. Empty
    /// for a client that is not OpenSSH.
    pub async fn configuration(&self, destination: &str) -> BTreeMap<String, String> {
        configured::configuration(&self.ssh, destination).await
    }
}

/// Hash and size of our own binary, as a bare site can check it.
async fn own_binary(path: PathBuf) -> Result<(Hash, u64), Failure> {
    let file = path.clone();
    match tokio::task::spawn_blocking(move || content::sha256(&file)).await {
        Ok(Ok(hashed)) => Ok(hashed),
        Ok(Err(error)) => Err(Failure::new(format!("cannot read '{}': {error}", path.display()), "")),
        Err(error) => Err(Failure::new(format!("cannot hash '{}': {error}", path.display()), "")),
    }
}

/// The connections that are shared.
#[derive(Debug, Default)]
pub struct Sharing {
    sites: Mutex<BTreeMap<String, Arc<SharedSite>>>,
    directory: OnceCell<Option<Guarded>>,
}

impl Drop for Sharing {
    fn drop(&mut self) {
        if let Some(Some(directory)) = self.directory.get() {
            masters::end(directory.path());
        }
    }
}

#[derive(Debug)]
struct SharedSite {
    number: usize,
    gate: Arc<tokio::sync::Mutex<()>>,
    options: OnceCell<Vec<String>>,
}

impl Sharing {
    fn site(&self, destination: &str) -> Arc<SharedSite> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let number = sites.len();
        let site = sites.entry(destination.to_owned()).or_insert_with(|| {
            Arc::new(SharedSite {
                number,
                gate: Arc::default(),
                options: OnceCell::new(),
            })
        });
        Arc::clone(site)
    }

    /// Held while a connection is made: those that come meanwhile wait, so that the user signs on once.
    pub async fn gate(&self, contact: &Contact) -> Option<OwnedMutexGuard<()>> {
        match contact {
            Contact::Home | Contact::Part(_) => None,
            Contact::Ssh(destination) => Some(Arc::clone(&self.site(destination).gate).lock_owned().await),
        }
    }

    /// Options for the ssh client, for a destination.
    pub async fn options(&self, access: &Access, destination: &str) -> Vec<String> {
        let site = self.site(destination);
        let options = site.options.get_or_init(|| async {
            let known = access.configuration(destination).await;
            let is = |key: &str, value: &str| known.get(key).is_none_or(|known| known == value);
            if known.is_empty() {
                return Vec::new();
            }
            let mut options = configured::unobstructed(&known);
            if is("connecttimeout", "none") {
                options.push(format!("ConnectTimeout={CONNECTING}"));
            }
            if is("controlpath", "none") {
                options.extend(self.shared(site.number).await);
            }
            let words = options.into_iter().flat_map(|option| ["-o".to_owned(), option]);
            words.collect()
        });
        options.await.clone()
    }

    async fn directory(&self) -> Option<&Guarded> {
        self.directory.get_or_init(|| async { directory() }).await.as_ref()
    }

    /// Options for a connection that is shared; none where there is no place for its socket.
    async fn shared(&self, number: usize) -> Vec<String> {
        let Some(directory) = self.directory().await else {
            return Vec::new();
        };
        let path = directory.path().join(number.to_string());
        let path = path.to_string_lossy().replace('%', "%%");
        vec![
            "ControlMaster=auto".to_owned(),
            format!("ControlPath={path}"),
            format!("ControlPersist={PERSIST}"),
        ]
    }
}

/// A private directory for sockets. Without one connections are not shared.
pub fn directory() -> Option<Guarded> {
    let user = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let base = runtime.filter(|p| p.is_dir() && p.as_os_str().len() <= LONGEST);
    let base = base.unwrap_or_else(|| PathBuf::from("/tmp"));
    let prefix = format!("isthmus-{user}-");
    sweep(&base, &prefix, user);
    Guarded::create(&base, &prefix).ok()
}
