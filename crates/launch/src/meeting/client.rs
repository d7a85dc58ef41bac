// SPDX-License-Identifier: Apache-2.0
//! The ssh client that is connected with the host at which jobs meet: its shell keeps names, its server listens for
//! other jobs, and further clients use its connection.

use isthmus_reach::client::{SHIELDED, allocated};
use isthmus_reach::{configured, plain};
use isthmus_stage::content::Hasher;
use isthmus_stage::keyring::{self, Key};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// What the shell begins its lines with: login scripts may print something else.
const MARK: &str = "isthmus-meet ";
/// Longest line of either.
const LONGEST: u64 = 32 << 10;
/// How long a client may take that only tells the first one something.
const TELLING: Duration = Duration::from_secs(10);
/// How long the connection may take.
const CONNECTING: Duration = Duration::from_secs(40);

/// The shell's part. A file for each name says who keeps it, and what: the shell that has linked it, as long as that
/// lives.
const SCRIPT: &str = "umask 077; d=${XDG_CACHE_HOME:-$HOME/.cache}/isthmus/names-met; mkdir -p \"$d\" || exit 1; \
     b=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null); m=$$/$b; \
     lives() { [ \"${1#*/}\" = \"$b\" ] && kill -0 \"${1%%/*}\" 2>/dev/null; }; \
     bye() { for f in \"$d\"/*; do read -r q o <\"$f\" 2>/dev/null && [ \"$q\" = \"$m\" ] && rm -f \"$f\"; done; rm -f \"$d/.$$\"; }; \
     s=${XDG_STATE_HOME:-$HOME/.local/state}/isthmus/keys; mkdir -p \"$s\" && if [ ! -f \"$s/own\" ]; then \
     od -An -N32 -tx1 /dev/urandom | tr -d \" \\n\" >\"$s/.$$\"; ln \"$s/.$$\" \"$s/own\" 2>/dev/null; rm -f \"$s/.$$\"; fi; \
     [ -z \"$(find \"$s\" \"$s/own\" -prune -perm /077 2>&1)\" ] && echo \"isthmus-meet 0 key $(cat \"$s/own\")\"; \
     trap bye EXIT; trap \"exit 1\" HUP INT TERM; \
     echo \"isthmus-meet 0 ready $b/$(uname -n)/$(id -u)\"; \
     while read -r n w k v; do f=$d/$k; case $w in \
     p) echo \"$m $v\" >\"$d/.$$\"; r=full; for i in 1 2 3 4 5; do \
     if ln \"$d/.$$\" \"$f\" 2>/dev/null; then r=done; break; fi; \
     if read -r q o <\"$f\" && [ \"$q $o\" = \"$m $v\" ]; then r=done; break; fi; \
     if lives \"$q\"; then r=taken; break; fi; rm -f \"$f\"; done; echo \"isthmus-meet $n $r\";; \
     u) read -r q o <\"$f\" && [ \"$q $o\" = \"$m $v\" ] && rm -f \"$f\";; \
     l) if read -r q o <\"$f\" && lives \"$q\"; then echo \"isthmus-meet $n is $o\"; else echo \"isthmus-meet $n unknown\"; fi;; \
     esac; done 2>/dev/null";

/// A line of the shell.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Of the question.
    pub(super) number: u64,
    pub(super) verdict: String,
    pub(super) value: String,
}

impl Line {
    fn of(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix(MARK)?.split_ascii_whitespace();
        Some(Self {
            number: words.next()?.parse().ok()?,
            verdict: words.next()?.to_owned(),
            value: words.next().unwrap_or_default().to_owned(),
        })
    }
}

/// What there is while the host is reached.
struct Connected {
    /// To the shell; the task that writes ends when this goes.
    say: mpsc::UnboundedSender<String>,
    lines: mpsc::UnboundedReceiver<Line>,
    client: Child,
}

pub(super) struct Client {
    ssh: String,
    terminal: bool,
    host: String,
    directory: PathBuf,
    /// The port at the host where others come in; 0: the server chooses.
    port: u16,
    place: [u8; 8],
    /// The user's there.
    key: Option<Key>,
    /// How often it was reached.
    turn: u64,
    connected: Option<Connected>,
}

impl Client {
    pub(super) fn new(ssh: &str, terminal: bool, host: &str, directory: &Path) -> Self {
        Self {
            ssh: ssh.to_owned(),
            terminal,
            host: host.to_owned(),
            directory: directory.to_owned(),
            port: 0,
            place: [0; 8],
            key: None,
            turn: 0,
            connected: None,
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The port at the host where others come in, and which host it is.
    pub(super) fn place(&self) -> (u16, [u8; 8]) {
        (self.port, self.place)
    }

    /// The user's key there, by which jobs that meet there know each other.
    pub(super) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// The connection, counted: what was made for an earlier one is gone.
    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    /// Where further clients find the connection.
    fn control(&self) -> PathBuf {
        self.directory.join("ssh")
    }

    /// Connects; others come to the `door` of this process. An error: what the client says.
    pub(super) async fn connect(&mut self, door: u16) -> Result<(), String> {
        self.connected = None;
        // One that was killed leaves it.
        let _ = std::fs::remove_file(self.control());
        let forward = format!("{}:127.0.0.1:{door}", self.port);
        let script = format!("exec sh -c '{SCRIPT}'");
        let own = [
            "-M",
            "-o",
            "ExitOnForwardFailure=yes",
            "-o",
            "LogLevel=INFO",
            "-R",
            &forward,
        ];
        let configured = configured::for_our_command(&self.ssh, &self.host).await;
        let configured = configured.iter().map(String::as_str);
        let words = own.into_iter().chain(configured).chain(["--", &self.host, &script]);
        let mut client = self.command(words).spawn().map_err(|error| error.to_string())?;
        let pipes = (client.stdin.take(), client.stdout.take(), client.stderr.take());
        let (Some(mut input), Some(output), Some(errors)) = pipes else {
            return Err("a pipe to the ssh client is missing".to_owned());
        };
        let (heard, mut lines) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let parsed = |text: &str| Line::of(text).is_none_or(|line| heard.send(line).is_ok());
            read_lines(output, parsed).await;
        });
        let (complains, mut complaints) = mpsc::unbounded_channel();
        tokio::spawn(read_lines(errors, move |text: &str| {
            complains.send(text.to_owned()).is_ok()
        }));
        let mut said = Vec::new();
        let settling = async {
            let mut ready = None;
            while self.port == 0 || ready.is_none() {
                tokio::select! {
                    Some(text) = complaints.recv() => match allocated(&text) {
                        Some(port) => self.port = port,
                        None if said.len() < 8 => said.push(text),
                        None => {}
                    },
                    line = lines.recv() => match line {
                        Some(line) if line.verdict == "key" => self.key = keyring::parse(&line.value),
                        Some(line) if line.verdict == "ready" => ready = Some(line.value),
                        Some(_) => {}
                        None => return None,
                    },
                }
            }
            ready
        };
        let ready = tokio::time::timeout(CONNECTING, settling).await;
        let Ok(Some(ready)) = ready else {
            let ended = tokio::time::timeout(Duration::from_secs(1), client.wait()).await;
            while let Ok(text) = complaints.try_recv() {
                said.push(text);
            }
            let ended = ended.ok().and_then(Result::ok).map(|status| status.to_string());
            return Err(match said.is_empty() {
                true => ended.unwrap_or_else(|| format!("nothing was heard for {} s", CONNECTING.as_secs())),
                false => plain(said.join("; ").trim()),
            });
        };
        self.place = *hash(&ready).first_chunk().unwrap_or(&[0; 8]);
        let (say, mut words) = mpsc::unbounded_channel::<String>();
        tokio::spawn(async move {
            // At the end the shell sees the end of its input, and goes.
            while let Some(text) = words.recv().await {
                if input.write_all(text.as_bytes()).await.is_err() || input.flush().await.is_err() {
                    break;
                }
            }
        });
        self.turn += 1;
        self.connected = Some(Connected { say, lines, client });
        Ok(())
    }

    /// Tells the shell something.
    pub(super) fn say(&self, line: &str) {
        if let Some(connected) = &self.connected {
            let _ = connected.say.send(line.to_owned());
        }
    }

    /// The next line of the shell; `None`: the connection has ended.
    pub(super) async fn hear(&mut self) -> Option<Line> {
        self.connected.as_mut()?.lines.recv().await
    }

    /// The shell takes its names back, and the connection ends.
    pub(super) async fn end(&mut self) {
        if let Some(Connected { say, mut client, .. }) = self.connected.take() {
            drop(say);
            let _ = tokio::time::timeout(Duration::from_secs(1), client.wait()).await;
        }
    }

    /// A socket here that leads to a port at the host.
    pub(super) async fn forward(&self, port: u16) -> Result<PathBuf, String> {
        let path = self.directory.join(format!("{port}-{}", self.turn));
        let forward = format!("{}:127.0.0.1:{port}", path.display());
        let telling = self
            .command(["-O", "forward", "-L", &forward, "--", &self.host])
            .output();
        match tokio::time::timeout(TELLING, telling).await {
            Ok(Ok(told)) if told.status.success() => Ok(path),
            Ok(Ok(told)) => Err(plain(String::from_utf8_lossy(&told.stderr).trim())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the ssh client does not answer".to_owned()),
        }
    }

    /// The ssh client with these words. It ignores what a terminal sends to all that run there: the job ends in order.
    fn command<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Command {
        let mut command = Command::new("/bin/sh");
        let control = self.control().to_string_lossy().replace('%', "%%");
        command
            .args(["-c", SHIELDED, &self.ssh, "-T"])
            .arg("-o")
            .arg(format!("ControlPath={control}"))
            .args([
                "-o",
                "ControlPersist=no",
                "-o",
                "ServerAliveInterval=15",
                "-o",
                "ConnectTimeout=20",
            ])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if !self.terminal {
            command.env("SSH_ASKPASS_REQUIRE", "never");
        }
        command
    }
}

/// What a text is told by where it may be long or have any letters.
pub(super) fn hash(text: &str) -> [u8; 32] {
    let mut hasher = Hasher::default();
    hasher.update(text.as_bytes());
    hasher.finish().hash
}

/// Lines of at most [`LONGEST`] bytes, until `take` has enough of them or the stream ends.
async fn read_lines(stream: impl AsyncRead + Unpin, mut take: impl FnMut(&str) -> bool) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stream).take(LONGEST).read_until(b'\n', &mut line).await {
            Ok(1..) if take(String::from_utf8_lossy(&line).trim_end()) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_shell_says_counts() {
        let line = Line::of("isthmus-meet 7 is ab.cd").expect("a line");
        assert_eq!((line.number, &*line.verdict, &*line.value), (7, "is", "ab.cd"));
        assert_eq!(Line::of("isthmus-meet 7 done").expect("a line").value, "");
        for other in ["", "Welcome!", "isthmus-meet", "isthmus-meet x done", "isthmus-meet 7"] {
            assert_eq!(Line::of(other), None, "{other}");
        }
    }
}
