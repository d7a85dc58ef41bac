// SPDX-License-Identifier: Apache-2.0
//! A place that all parts reach by ssh, where no part reaches another one: there they find each other, and through it
//! they connect. Nothing of ours runs there but a shell. What passes is TLS between the parts.
//!
//! ```text
//!  first part                place                       another part
//!    ssh -R 0:door    --->     sshd listens at N
//!    ticket with N    --->     sh: link the file  NAME
//!                              sh: read it         <---    ssh
//!    door   <--- TLS  ----     sshd N <--- sshd    <---    ssh -W 127.0.0.1:N
//! ```

use crate::Options;
use isthmus_reach::client::{SHIELDED, allocated};
use isthmus_reach::{configured, plain};
use isthmus_wire::port::PortName;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::sync::oneshot;

/// What the shell begins its answer with: login scripts may print before that.
const MARK: &str = "isthmus-meet ";
/// Most bytes of what is printed before the answer, and of what the client says.
const MOST: u64 = 64 << 10;

/// The shell's part; `NAME` is that of the world. A file says who is first as long as the shell that has linked it
/// lives: until all parts are there, or its connection ends.
const SCRIPT: &str = "umask 077; d=${XDG_CACHE_HOME:-$HOME/.cache}/isthmus/meet; w=$d/NAME; mine=; n=0; \
     bye() { rm -f \"$w.$$\"; [ -z \"$mine\" ] || rm -f \"$w\"; }; \
     mkdir -p \"$d\" && read -r t && echo \"$$ $t\" >\"$w.$$\" || exit 1; \
     trap bye EXIT; trap \"exit 1\" HUP INT TERM; \
     while ! ln \"$w.$$\" \"$w\" 2>/dev/null; do \
     n=$((n+1)); [ $n -lt 50 ] || { echo \"no file can be linked in $d\" >&2; exit 1; }; \
     read -r p o <\"$w\" 2>/dev/null || continue; \
     if kill -0 \"$p\" 2>/dev/null; then echo \"isthmus-meet $o\"; exit 0; fi; rm -f \"$w\"; done; \
     mine=1; echo \"isthmus-meet first\"; read -r t; rm -f \"$w\"; mine=; cat >/dev/null";

/// The first part's connection to the place, which others come through as long as it lives.
pub(crate) struct Held {
    input: ChildStdin,
    _client: Child,
}

impl Held {
    /// All parts are there: nobody is shown the way any more.
    pub(crate) async fn complete(&mut self) {
        let _ = self.input.write_all(b"complete\n").await;
        let _ = self.input.flush().await;
    }
}

/// What a part finds at the place.
pub(crate) enum Found {
    /// Nobody: this part is the first, and will be found.
    First(Held),
    /// The ticket of the first one; its address is one of the place.
    Ticket(PortName),
}

/// Goes there. `own`: the ticket of this part's door, in case that it is the first.
pub(crate) async fn meet(options: &Options, place: &str, world: &str, own: &PortName) -> Result<Found, String> {
    let forward = format!("0:127.0.0.1:{}", own.port);
    let script = format!("exec sh -c '{}'", SCRIPT.replace("NAME", world));
    let words = ["-o", "ExitOnForwardFailure=yes", "-o", "LogLevel=INFO", "-R", &forward];
    let mut command = ssh(options, &words, place).await;
    let mut client = command.arg(script).spawn().map_err(|error| error.to_string())?;
    let (Some(mut input), Some(output), Some(errors)) =
        (client.stdin.take(), client.stdout.take(), client.stderr.take())
    else {
        return Err("a pipe to the ssh client is missing".to_owned());
    };
    let said = Arc::new(Mutex::new(String::new()));
    let (chosen, port) = oneshot::channel();
    tokio::spawn(listen(errors, chosen, Arc::clone(&said)));
    let talk = async {
        let ticket = PortName {
            port: port.await.ok()?,
            addresses: vec![std::net::Ipv4Addr::LOCALHOST.into()],
            ..own.clone()
        };
        input
            .write_all(format!("{}\n", ticket.encode()).as_bytes())
            .await
            .ok()?;
        input.flush().await.ok()?;
        let mut lines = BufReader::new(output.take(MOST)).lines();
        loop {
            if let Some(answer) = lines.next_line().await.ok()??.strip_prefix(MARK) {
                return Some(answer.trim().to_owned());
            }
        }
    };
    match talk.await.as_deref() {
        Some("first") => Ok(Found::First(Held { input, _client: client })),
        Some(ticket) => PortName::decode(ticket)
            .map(Found::Ticket)
            .map_err(|why| why.to_string()),
        None => {
            drop(input);
            let ended = client.wait().await.map(|status| status.to_string()).unwrap_or_default();
            let words = plain(said.lock().unwrap_or_else(PoisonError::into_inner).trim());
            Err(if words.is_empty() { ended } else { words })
        }
    }
}

/// A connection through the place, to the door that a ticket from there is for.
pub(crate) async fn through(
    options: &Options,
    place: &str,
    ticket: &PortName,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, String> {
    let to = format!("127.0.0.1:{}", ticket.port);
    let mut command = ssh(options, &["-W", &to], place).await;
    let mut client = command
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (Some(input), Some(output)) = (client.stdin.take(), client.stdout.take()) else {
        return Err("a pipe to the ssh client is missing".to_owned());
    };
    // It ends when its pipes are closed.
    tokio::spawn(async move { client.wait().await });
    Ok(tokio::io::join(output, input))
}

/// The ssh client with these words, for this place. It ignores what a terminal sends to all that run there: parts end
/// in order. It has a connection of its own, which no other client ends.
async fn ssh(options: &Options, words: &[&str], place: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let own = [
        "-o",
        "ControlMaster=no",
        "-o",
        "ControlPath=none",
        "-o",
        "ServerAliveInterval=15",
        "-o",
        "ConnectTimeout=20",
    ];
    command
        .args(["-c", SHIELDED, &options.ssh, "-T"])
        .args(own)
        .args(words)
        .args(configured::for_our_command(&options.ssh, place).await)
        .args(["--", place])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if !options.terminal {
        command.env("SSH_ASKPASS_REQUIRE", "never");
    }
    command
}

/// Hears the client: which port the server has chosen, and its complaints.
async fn listen(errors: ChildStderr, chosen: oneshot::Sender<u16>, said: Arc<Mutex<String>>) {
    let mut chosen = Some(chosen);
    let mut lines = BufReader::new(errors.take(MOST)).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let port = allocated(&line);
        match port.zip(chosen.take_if(|_| port.is_some())) {
            Some((port, chosen)) => drop(chosen.send(port)),
            None => {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&line);
                said.push('\n');
            }
        }
    }
}
