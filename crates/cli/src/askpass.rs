// SPDX-License-Identifier: Apache-2.0
//! `isthmus-askpass QUESTION`: asks at the terminal for an ssh client, when the launcher says that it is its turn.

use isthmus_reach::plain;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;
use rustix::process::{getpgid, setpgid};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Longest answer, bytes.
const LONGEST: usize = 4096;

/// Gives the answer to whoever has run this.
pub(crate) fn run(question: Option<String>) -> ExitCode {
    match ask(&question.unwrap_or_default()) {
        Ok(answer) => {
            let mut output = io::stdout().lock();
            match output.write_all(&answer).and_then(|()| output.flush()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        // The ssh client says what it lacks.
        Err(_) => ExitCode::FAILURE,
    }
}

/// No echo while this lives.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn begin(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
        let _ = (&*self.terminal).write_all(b"\n");
    }
}

fn ask(question: &str) -> io::Result<Vec<u8>> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let socket = isthmus_settings::ASKPASS.read(std::env::var_os).ok_or_else(missing)?;
    let site = isthmus_settings::ASKPASS_SITE
        .read(std::env::var_os)
        .ok_or_else(missing)?;
    let mut launcher = UnixStream::connect(socket)?;
    let one_line = question.replace(['\n', '\0'], " ");
    launcher.write_all(format!("{site}\0{one_line}\n").as_bytes())?;
    let mut go = [0; 3];
    launcher.read_exact(&mut go)?;
    join(&launcher);
    // Another reader of the terminal may be quicker: nobody waits for a line that is gone.
    let terminal = File::options()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open("/dev/tty")?;
    let shown = shown(&site, question);
    // Whether to trust a host is no secret.
    let secret = !question.contains("(yes/no");
    let quiet = if secret { Some(Quiet::begin(&terminal)?) } else { None };
    (&terminal).write_all(shown.as_bytes())?;
    let answer = read(&mut terminal.try_clone()?, &mut launcher);
    drop(quiet);
    answer
}

/// Moves into the process group of the launcher: ssh clients have groups of their own, which the system stops when they
/// touch the terminal.
fn join(launcher: &UnixStream) {
    let group = sockopt::socket_peercred(launcher).and_then(|peer| getpgid(Some(peer.pid)));
    // Where that is refused the terminal says so.
    let _ = group.and_then(|group| setpgid(None, Some(group)));
}

/// The question with the name of the site. What the other side has a say in reaches no terminal raw.
fn shown(site: &str, question: &str) -> String {
    format!("isthmus: site '{}': {}", plain(site), plain(question))
}

/// A line of the terminal, or what the launcher has read there for us. Its end is ours.
fn read(terminal: &mut File, launcher: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut piece = [0; 1024];
    while !line.ends_with(b"\n") && line.len() < LONGEST {
        let mut ready = [
            PollFd::new(&*terminal, PollFlags::IN),
            PollFd::new(&*launcher, PollFlags::IN),
        ];
        poll(&mut ready, None)?;
        let [typed, told] = ready.map(|r| !r.revents().is_empty());
        let taken = if told {
            launcher.read(&mut piece)
        } else if typed {
            terminal.read(&mut piece)
        } else {
            continue;
        };
        let n = match taken {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            taken => taken?,
        };
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(&piece[..n]);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_name_the_site_and_are_plain() {
        assert_eq!(
            shown("b1", "\x1b[2JPassword: \r"),
            "isthmus: site 'b1': \\u{1b}[2JPassword: "
        );
    }
}
