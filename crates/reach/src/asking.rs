// SPDX-License-Identifier: Apache-2.0
//! What ssh clients ask: passphrases, passwords, keys of hosts. One question at a time, with the name of the site,
//! without echo.
//!
//! ```text
//!  ssh client --runs (SSH_ASKPASS)--> isthmus-askpass                launcher
//!                                        | SITE \0 QUESTION \n  --->    |   waits until it is its turn and no table is on the terminal
//!                                        |  <--- go \n                  |
//!                                        | asks at the terminal         |
//!                                        |  <--- LINE \n                |   when another reader of the terminal got the answer
//!                                        | closes: it has been answered |
//! ```
//! The answer goes from the helper to its ssh client; the launcher sees it only when the program's standard input is
//! the same terminal.

use std::collections::HashMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// Name under which the `isthmus` binary asks for an ssh client.
pub const ASKPASS: &str = "isthmus-askpass";
/// Variable with the socket of the launcher.
pub const SOCKET: &str = isthmus_settings::ASKPASS.name;
/// Variable with the name of the site that is signed on to.
pub const SITE: &str = isthmus_settings::ASKPASS_SITE.name;
/// Longest question, bytes.
const LONGEST: u64 = 16 << 10;
/// How long a helper may take to say what it asks.
const SAYING: Duration = Duration::from_secs(5);

/// Told before a question is asked, with what is to be dropped when the terminal is free; and after it.
#[derive(Debug)]
pub enum Turn {
    /// A question is to be asked.
    Begins(oneshot::Sender<()>),
    /// It was answered.
    Over,
}

type Hook = Box<dyn Fn(Turn) + Send + Sync>;

/// Lets one helper ask at a time.
#[derive(Default)]
pub struct Asking {
    turn: tokio::sync::Mutex<()>,
    /// Takes the answer of the question that is asked now.
    answers: Mutex<Option<mpsc::UnboundedSender<String>>>,
    hook: Mutex<Option<Hook>>,
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive()
    }
}

impl Asking {
    /// Who has something on the terminal is told of every turn.
    pub fn tell(&self, hook: Hook) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(hook);
    }

    /// Whether a question is asked at this moment.
    pub fn is_asked(&self) -> bool {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Somebody else has read a line from the terminal, which is the answer that an ssh client waits for: false when
    /// none does.
    pub fn give(&self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\r', '\n']);
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.as_ref().is_some_and(|a| a.send(line.to_owned()).is_ok())
    }

    /// Serves helpers at a socket in this directory. Variables for ssh clients.
    pub fn serve(self: &Arc<Self>, directory: &Path, binary: &Path) -> std::io::Result<HashMap<String, PathBuf>> {
        let (socket, helper) = (directory.join("ask"), directory.join(ASKPASS));
        let listener = UnixListener::bind(&socket)?;
        symlink(binary, &helper)?;
        let asking = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = stream
                    .peer_cred()
                    .is_ok_and(|p| p.uid() == rustix::process::geteuid().as_raw());
                let asking = Arc::clone(&asking);
                if own {
                    tokio::spawn(async move { asking.take(stream).await });
                }
            }
        });
        Ok(HashMap::from([
            (SOCKET.to_owned(), socket),
            ("SSH_ASKPASS".to_owned(), helper),
            ("SSH_ASKPASS_REQUIRE".to_owned(), PathBuf::from("force")),
        ]))
    }

    async fn take(&self, stream: UnixStream) -> Option<()> {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let mut question = Vec::new();
        let mut limited = (&mut reader).take(LONGEST);
        let said = limited.read_until(b'\n', &mut question);
        tokio::time::timeout(SAYING, said).await.ok()?.ok()?;
        // Whoever gives up while others are asked closes, and the next one is served at once.
        let mut end = [0];
        let turn = tokio::select! {
            turn = self.turn.lock() => turn,
            _ = reader.read(&mut end) => return None,
        };
        let (free, freed) = oneshot::channel();
        self.say(Turn::Begins(free));
        let _ = freed.await;
        let (answers, mut answered) = mpsc::unbounded_channel();
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = Some(answers);
        let mut talk = async || -> std::io::Result<()> {
            writer.write_all(b"go\n").await?;
            loop {
                tokio::select! {
                    n = reader.read(&mut end) => if n? == 0 { return Ok(()) },
                    Some(line) = answered.recv() => writer.write_all(format!("{line}\n").as_bytes()).await?,
                }
            }
        };
        let _ = talk().await;
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.say(Turn::Over);
        drop(turn);
        Some(())
    }

    fn say(&self, turn: Turn) {
        // Without anybody who is told, what is in the message is dropped: the terminal is free.
        if let Some(hook) = &*self.hook.lock().unwrap_or_else(PoisonError::into_inner) {
            hook(turn);
        }
    }
}
