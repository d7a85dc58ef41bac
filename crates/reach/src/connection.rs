// SPDX-License-Identifier: Apache-2.0
//! A connection to an agent: a local child, or the system's ssh client.

use crate::asking;
use crate::bootstrap::{self, Noise};
use crate::client::SHIELDED;
use crate::failure::{Failure, plain};
use crate::sharing::Access;
use isthmus_job::Contact;
use isthmus_stage::own;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// Most bytes of a client's complaints that are kept.
const MAX_COMPLAINTS: usize = 8 << 10;
/// How long to wait for the client's last words once its output has ended.
const LAST_WORDS: Duration = Duration::from_millis(1500);
/// A site that has said nothing for so long is told of.
const QUIET: Duration = Duration::from_secs(30);
/// Before an ssh server that turned us away is asked again.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// What of ours runs at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Starts and watches processes.
    Agent,
    /// Files, the cache, what the site has.
    Service,
    /// Runs a command of ours there.
    Relay,
    /// Leads to the agent of this job and subjob, which is there already.
    Again {
        /// The job's name.
        job: String,
        /// The subjob's index.
        subjob: usize,
    },
}

impl Verb {
    fn words(&self) -> Vec<String> {
        let one = |word: &str| vec![word.to_owned()];
        match self {
            Self::Agent => one("agent"),
            Self::Service => one("service"),
            Self::Relay => one("relay"),
            Self::Again { job, subjob } => vec![
                "agent".to_owned(),
                "--resume".to_owned(),
                job.clone(),
                subjob.to_string(),
            ],
        }
    }
}

/// An open connection.
pub struct Connection {
    /// What comes from the other end.
    pub reader: BufReader<ChildStdout>,
    /// What goes there.
    pub writer: ChildStdin,
    /// The process that carries both.
    pub client: Client,
}

/// The process behind a connection.
pub struct Client {
    contact: Contact,
    command: String,
    child: Child,
    complaints: Arc<Mutex<Vec<u8>>>,
    /// What the site printed in place of an answer.
    noise: String,
    listening: JoinHandle<()>,
    /// Once the agent runs it ends by itself and must be let do so; before, there is nothing to end orderly.
    established: bool,
}

impl Connection {
    /// Gets our binary to run at home or at a site. An ssh server that turns everybody away for a moment, as one does
    /// that too many want to enter at once (`MaxStartups` of sshd_config), is asked again. `progress` hears of each
    /// step, `quiet` when nothing comes from the site for long.
    ///
    /// # Errors
    /// Why the site was not reached, in the client's own words.
    pub async fn reach(
        access: &Access,
        contact: &Contact,
        verb: &Verb,
        setup: &[String],
        progress: impl Fn(),
        quiet: impl Fn(String),
    ) -> Result<Self, Failure> {
        let mut pauses = PAUSES.iter();
        loop {
            let mut connection = Self::open(access, contact, verb, setup).await?;
            let Err(failure) = connection.bootstrap(access, &progress, &quiet).await else {
                return Ok(connection);
            };
            let failure = connection.client.explain(failure).await;
            match pauses.next() {
                Some(pause) if failure.is_busy() => tokio::time::sleep(*pause).await,
                _ => return Err(failure),
            }
        }
    }

    /// Starts `isthmus VERB` at home, or the ssh client with the start-up script of a site.
    async fn open(access: &Access, contact: &Contact, verb: &Verb, setup: &[String]) -> Result<Self, Failure> {
        let mut command = match contact {
            Contact::Ssh(destination) => {
                let (hash, size) = access.own_binary().await?;
                let script = bootstrap::command(&hash, size, &verb.words().join(" "), setup);
                let shared = access.sharing.options(access, destination).await;
                let mut command = ssh(destination, access, shared, &script);
                let questions = access.questions().await;
                command.envs(questions);
                if !questions.is_empty() {
                    command.env(asking::SITE, destination);
                }
                // A terminal that goes away ends whoever is in its foreground: a client of a shared connection listens
                // to SIGHUP whatever it was told. One that may ask there by itself has to stay.
                if !questions.is_empty() || !access.has_terminal() {
                    command.process_group(0);
                }
                command
            }
            Contact::Home => home(access, verb),
            Contact::Part(_) => return Err(Failure::new("only the user of that part can start anything there", "")),
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let cannot = |error| Failure::new(format!("cannot start {}: {error}", what(contact)), "");
        let mut child = command.spawn().map_err(cannot)?;
        let (Some(writer), Some(reader), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Failure::new("a pipe to the agent is missing", ""));
        };
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let listening = tokio::spawn(listen(errors, Arc::clone(&complaints)));
        let client = Client {
            contact: contact.clone(),
            command: access.ssh.clone(),
            child,
            complaints,
            noise: String::new(),
            listening,
            established: false,
        };
        Ok(Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            writer,
            client,
        })
    }

    /// Gets our binary to run at a site.
    async fn bootstrap(&mut self, access: &Access, progress: impl Fn(), quiet: impl Fn(String)) -> Result<(), Failure> {
        if self.client.contact == Contact::Home {
            return Ok(());
        }
        let mut noise = Noise::default();
        let complaints = Arc::clone(&self.client.complaints);
        let binary = own::found(&access.binary);
        let result = {
            let talk = bootstrap::converse(&mut self.reader, &mut self.writer, &binary, progress, &mut noise);
            tokio::pin!(talk);
            loop {
                match tokio::time::timeout(QUIET, &mut talk).await {
                    Ok(result) => break result,
                    // Whoever is asked something needs time.
                    Err(_) if access.asking.is_asked() => {}
                    Err(_) => {
                        quiet(nothing_for(&told(&complaints)));
                        break talk.await;
                    }
                }
            }
        };
        if result.is_err() {
            self.client.noise = noise.text();
        }
        result
    }
}

/// What is said of a site from which nothing has come.
fn nothing_for(words: &str) -> String {
    let said = if words.is_empty() {
        String::new()
    } else {
        format!("; it said: {words}")
    };
    format!(
        "no answer for {} s after ssh was started{said}; do its login scripts start another shell or wait for something? Isthmus goes on waiting",
        QUIET.as_secs()
    )
}

/// What a client has said so far. It may come from the site: nothing of it reaches a terminal raw.
fn told(complaints: &Mutex<Vec<u8>>) -> String {
    let bytes = complaints.lock().unwrap_or_else(PoisonError::into_inner);
    plain(String::from_utf8_lossy(&bytes).trim())
}

impl Client {
    /// The agent runs: from here it ends itself when the connection is closed.
    pub fn establish(&mut self) {
        self.established = true;
    }

    /// What it says when nobody is at the other end that a connection could follow to; nothing: the connection failed.
    pub async fn finds_nobody(&mut self) -> Option<String> {
        let status = tokio::time::timeout(LAST_WORDS, self.child.wait()).await.ok()?.ok()?;
        // 255 is ssh's own.
        let there = status.code().is_some_and(|code| code != 255);
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.listening).await;
        there.then(|| self.take_complaints())
    }

    /// Nothing is to be heard of the agent any more: the client has nothing to wait for.
    pub fn give_up(&mut self) {
        self.established = false;
    }

    /// What the client has said so far.
    pub fn take_complaints(&self) -> String {
        let mut bytes = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        plain(String::from_utf8_lossy(&std::mem::take(&mut *bytes)).trim_end())
    }

    /// The same without what is of no concern: a server that lets a connection have one session only gets one for each.
    pub fn take_notices(&self) -> String {
        let words = self.take_complaints();
        let lines = words.lines().filter(|line| !is_about_sharing(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Replaces "the connection was closed" by the reason, in the client's own words.
    pub async fn explain(&mut self, failure: Failure) -> Failure {
        if !failure.is_closed() {
            return failure;
        }
        let status = tokio::time::timeout(LAST_WORDS, self.child.wait())
            .await
            .ok()
            .and_then(Result::ok);
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.listening).await;
        let mut words = self.take_complaints();
        if !self.noise.is_empty() {
            let noise = std::mem::take(&mut self.noise);
            words = format!(
                "{words}{}it printed: '{noise}'",
                if words.is_empty() { "" } else { "; " }
            );
        }
        match &self.contact {
            Contact::Ssh(_) if self.established => Failure::new(
                format!("the connection to its agent was lost{}", detail(status, &words)),
                "the machine, the network or the agent went down; the processes there end by themselves",
            )
            .unreached(),
            Contact::Home | Contact::Part(_) => Failure::new(format!("its agent ended{}", detail(status, &words)), ""),
            Contact::Ssh(destination) => explain_ssh(destination, &self.command, status, &words),
        }
    }

    /// Ends it at once: what is at the other end does not answer.
    pub fn kill(&mut self) {
        let _ = self.child.start_kill();
    }

    /// Waits until the client has ended.
    pub async fn wait(&mut self) {
        let _ = self.child.wait().await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.established {
            let _ = self.child.start_kill();
        }
    }
}

fn what(contact: &Contact) -> &'static str {
    match contact {
        Contact::Home => "the isthmus binary",
        Contact::Ssh(_) => "the ssh client",
        Contact::Part(_) => "the launcher of another part",
    }
}

fn home(access: &Access, verb: &Verb) -> Command {
    let mut command = Command::new(own::found(&access.binary));
    command.args(verb.words());
    if *verb == Verb::Agent {
        command.arg("--home");
    }
    command
}

/// The client ignores what a terminal, a shell or a time limit sends to the whole process group: the job ends, stops
/// and goes on through the connection.
fn ssh(destination: &str, access: &Access, shared: Vec<String>, script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SHIELDED, &access.ssh, "-T"]);
    if !access.has_terminal() {
        command.args(["-o", "BatchMode=yes"]);
    }
    // Two minutes at least: after a cut of 30 s TCP may need as long again to try. The coordinator's own patience is
    // shorter.
    let count = (access.away.as_secs() / 15 + 5).max(8);
    command.args([
        "-o",
        "ServerAliveInterval=15",
        "-o",
        &format!("ServerAliveCountMax={count}"),
    ]);
    command.args(shared);
    command.args(["--", destination, script]);
    command
}

async fn listen(errors: ChildStderr, complaints: Arc<Mutex<Vec<u8>>>) {
    let mut reader = BufReader::new(errors);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line).await, Ok(n) if n > 0) {
        let mut kept = complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_COMPLAINTS.saturating_sub(kept.len());
        kept.extend(line.drain(..).take(room));
        line.clear();
    }
}

fn detail(status: Option<ExitStatus>, words: &str) -> String {
    match (words.is_empty(), status) {
        (false, _) => format!(": {words}"),
        (true, Some(status)) => format!(" ({status})"),
        (true, None) => String::new(),
    }
}

/// Whether there is a file for the first word of this command.
fn is_there(command: &str) -> bool {
    let Some(word) = command.split_whitespace().next() else {
        return false;
    };
    let places = std::env::var_os("PATH").unwrap_or_default();
    match word.contains('/') {
        true => Path::new(word).is_file(),
        false => std::env::split_paths(&places).any(|place| place.join(word).is_file()),
    }
}

fn explain_ssh(destination: &str, command: &str, status: Option<ExitStatus>, words: &str) -> Failure {
    match status.and_then(|s| s.code()) {
        // It hands on what the site says, too.
        Some(127) if is_there(command) => Failure::new(
            format!("its login shell could not run what it was given{}", detail(None, words)),
            format!("the site needs a POSIX shell and the usual commands in PATH; check: ssh {destination} sh -c true"),
        ),
        Some(127) => Failure::new(
            format!("the ssh client '{command}' cannot be run: {words}"),
            "install an ssh client or name one with --ssh or ISTHMUS_SSH",
        ),
        Some(255) | None => {
            let failure = Failure::new(
                format!("ssh to '{destination}' failed{}", detail(status, words)),
                hint_for(words, destination),
            );
            if turned_away(words) { failure.busy() } else { failure }
        }
        Some(0) => Failure::new(
            format!("its login shell ended without having run what it was given{}", detail(None, words)),
            format!("look for 'exit' in its login scripts, or for a forced command of its ssh server; check: ssh {destination} echo works"),
        ),
        Some(_) => Failure::new(
            format!("the agent could not be started with ssh{}", detail(status, words)),
            format!("check that this works: ssh {destination} true"),
        ),
    }
    .unreached()
}

/// Whether a client that goes on says that it does so by a connection of its own. It says so by its words only.
fn is_about_sharing(line: &str) -> bool {
    line.starts_with("mux_client_request_session: ") || line.ends_with(" already exists, disabling multiplexing")
}

/// Whether an ssh server closed the connection before it had asked who comes. The client says so by its words only.
fn turned_away(words: &str) -> bool {
    let last = words.lines().last().unwrap_or_default();
    [
        "kex_exchange_identification: ",
        "Connection closed by ",
        "Connection reset by ",
    ]
    .iter()
    .any(|text| last.starts_with(text))
        && !words.contains("Permission denied")
}

fn hint_for(words: &str, destination: &str) -> String {
    let has = |text: &str| words.contains(text);
    if has("resolve hostname") || has("Name or service not known") {
        format!("check the name '{destination}', or give it a Host entry in ~/.ssh/config")
    } else if has("Permission denied") || has("Too many authentication failures") {
        format!("load your key with ssh-add and check that this works: ssh {destination} true")
    } else if has("IDENTIFICATION HAS CHANGED") || has("DNS SPOOFING") {
        "the host shows a different key than before: either it was reinstalled, or another machine answers in its place. Nothing was sent to it. \
         Ask its administrators for the fingerprint of the new key and compare it with the one above before you remove the old one (ssh-keygen -R)"
            .to_owned()
    } else if has("Host key verification failed") {
        format!(
            "the key of the host is not known here: run 'ssh {destination}' and compare the fingerprint that it shows with the one that the site publishes \
             before you answer yes"
        )
    } else if turned_away(words) {
        format!(
            "its ssh server was asked several times: perhaps too many clients connect at once; check that this works: ssh {destination} true"
        )
    } else if has("Connection refused") {
        "no ssh server answers there: check host and port".to_owned()
    } else if has("timed out") || has("No route to host") || has("unreachable") {
        "the host does not answer: check the network, or a ProxyJump in ~/.ssh/config".to_owned()
    } else {
        format!("check that this works: ssh {destination} true")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn that_a_connection_is_not_shared_is_no_news() {
        for line in [
            "mux_client_request_session: session request failed: Session open refused by peer",
            "ControlSocket /tmp/isthmus-0-ab/0 already exists, disabling multiplexing",
        ] {
            assert!(is_about_sharing(line), "{line}");
        }
        assert!(!is_about_sharing("Warning: the disk is full"));
    }

    #[test]
    fn the_words_of_ssh_are_told_with_a_hint() {
        let status = Some(ExitStatus::from_raw(255 << 8));
        let refused = explain_ssh(
            "lab",
            "ssh",
            status,
            "ssh: connect to host lab port 22: Connection refused",
        );
        assert!(refused.problem.contains("'lab'") && refused.problem.contains("port 22: Connection refused"));
        assert!(refused.hint.contains("no ssh server answers"));
        let unknown = explain_ssh(
            "lab",
            "ssh",
            status,
            "ssh: Could not resolve hostname lab: Name or service not known",
        );
        assert!(unknown.hint.contains("~/.ssh/config"));
        let crowded =
            "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 10.1.2.3 port 22";
        let crowded = explain_ssh("lab", "ssh", status, crowded);
        assert!(crowded.is_busy() && crowded.hint.contains("too many"));
        let jump = "me@gate: Permission denied (publickey).\nConnection closed by UNKNOWN port 65535";
        assert!(!explain_ssh("lab", "ssh", status, jump).is_busy() && !unknown.is_busy() && !refused.is_busy());
        let missing = explain_ssh("lab", "nossh", Some(ExitStatus::from_raw(127 << 8)), "not found");
        assert!(missing.problem.contains("'nossh' cannot be run") && missing.hint.contains("ISTHMUS_SSH"));
        let there = explain_ssh(
            "lab",
            "/bin/sh -x",
            Some(ExitStatus::from_raw(127 << 8)),
            "fish: Unknown command",
        );
        assert!(
            there.problem.contains("its login shell could not run"),
            "{}",
            there.problem
        );
    }
}
