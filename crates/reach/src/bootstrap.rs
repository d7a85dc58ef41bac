// SPDX-License-Identifier: Apache-2.0
//! Getting `isthmus` itself to a bare site: a small script for any POSIX shell with coreutils.
//!
//! ```text
//!  script                                     coordinator
//!    |  ISTHMUS have|want SYSTEM MACHINE \n --->  |    after anything that login scripts print
//!    |  <--- SIZE bytes of the binary             |    when it was `want`
//!    |  ISTHMUS have SYSTEM MACHINE               |    when it was `want`,
//!    |        | fail WHY | unfit LIBC: WHY ---->   |    or the reason why not
//!    |  becomes the agent                         |
//! ```
//! The binary is kept as `isthmus-<hash>` in the user's cache, written under another name, compared with
//! its hash and given its name. One that another job has put there meanwhile stays: it runs, and has to find itself.

use crate::failure::{Failure, plain};
use isthmus_stage::content::hex;
use isthmus_wire::grid::Hash;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How long a script that takes no more may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What to do about a site where nothing can be kept.
const ROOM: &str = "check the space and rights there, or name another place in the sites file: cache = \"/scratch/me\"";
/// Most bytes of login noise before the script's first line.
const MAX_NOISE: u64 = 256 << 10;
/// So much of the noise is quoted, bytes.
const MAX_QUOTED: usize = 1 << 10;

/// The remote command. What it makes is private; what it becomes has the umask of the user's shell. It contains
/// no single quote, newline or exclamation mark, so that every login shell
/// passes it on as it is.
///
/// `setup`: commands of the user before anything else, in octal digits for the same reason; what they print is noise.
pub(crate) fn command(hash: &Hash, size: u64, verb: &str, setup: &[String]) -> String {
    let script = SCRIPT.replace("HASH", &hex(hash)).replace("SIZE", &size.to_string());
    let script = script.replace("VERB", verb);
    let script = match setup {
        [] => script,
        setup => format!("eval \"$(printf %b \"{}\")\" >&2; {script}", octal(&setup.join("\n"))),
    };
    format!(
        "exec sh -c '{}'",
        script.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

fn octal(text: &str) -> String {
    text.bytes().map(|byte| format!("\\0{byte:03o}")).collect()
}

const SCRIPT: &str = r#"
    u="$(umask)"; umask 077; m="$(uname -s) $(uname -m)";
    d="${XDG_CACHE_HOME:-$HOME/.cache}/isthmus"; f="$d/isthmus-HASH";
    if test -x "$f"; then echo "ISTHMUS have $m"; umask "$u"; exec "$f" VERB; fi;
    echo "ISTHMUS want $m"; t="$f.$$";
    trap "rm -f \"$t\"" EXIT; trap "exit 1" HUP INT TERM;
    w=; test -n "$XDG_CACHE_HOME" || test -d "$HOME" || w="the home directory $HOME does not exist";
    test -n "$w" || { mkdir -p "$d" && : > "$t"; } 2>/dev/null || w="cannot write to $d";
    test -z "$w" || { head -c SIZE > /dev/null; echo "ISTHMUS fail $w"; exit 1; };
    head -c SIZE > "$t" || { echo "ISTHMUS fail cannot write $t, is the disk full?"; exit 1; };
    s="$(sha256sum < "$t")";
    if test "${s%% *}" = HASH; then :; else echo "ISTHMUS fail the binary arrived damaged"; exit 1; fi;
    chmod 700 "$t"; test -x "$t" || { echo "ISTHMUS fail no program may be run in $d, its file system is mounted noexec"; exit 1; };
    set -f; e="$("$t" --version 2>&1)" || { echo "ISTHMUS unfit $(getconf GNU_LIBC_VERSION 2>/dev/null):" $e; exit 1; };
    ln "$t" "$f" 2>/dev/null || test -x "$f" || mv -f "$t" "$f" || { echo "ISTHMUS fail cannot create $f"; exit 1; };
    rm -f "$t"; trap - EXIT HUP INT TERM; echo "ISTHMUS have $m"; umask "$u"; exec "$f" VERB
"#;

/// The end of what a site printed that is no answer.
#[derive(Debug, Default)]
pub(crate) struct Noise(Vec<u8>);

impl Noise {
    fn add(&mut self, line: &[u8]) {
        self.0.extend_from_slice(line);
        let cut = self.0.len().saturating_sub(MAX_QUOTED);
        self.0.drain(..cut);
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        plain(String::from_utf8_lossy(&self.0).trim())
    }
}

/// What the script said.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Have,
    Want {
        system: String,
        machine: String,
    },
    Fail(String),
    /// The binary does not run there: the site's C library, what was said.
    Unfit(String, String),
}

/// Talks with the script until the agent runs. `binary` is read only when the site wants it.
pub(crate) async fn converse<R, W>(
    reader: &mut R,
    writer: &mut W,
    binary: &std::path::Path,
    progress: impl Fn(),
    noise: &mut Noise,
) -> Result<(), Failure>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    match read_line(reader, noise).await? {
        Line::Have => return Ok(()),
        Line::Fail(why) => return Err(Failure::new(why, ROOM)),
        Line::Unfit(system, why) => return Err(unfit(&system, &why, &needed(binary))),
        Line::Want { system, machine } => check_machine(&system, &machine)?,
    }
    let sent = send(writer, binary, &progress).await;
    let answer = match sent {
        Ok(()) => read_line(reader, noise).await?,
        // Whoever takes no more may have said why.
        Err(failure) => match tokio::time::timeout(LAST_WORDS, read_line(reader, noise)).await {
            Ok(Ok(said @ (Line::Fail(_) | Line::Unfit(..)))) => said,
            _ => return Err(failure),
        },
    };
    match answer {
        Line::Have => Ok(()),
        Line::Fail(why) => Err(Failure::new(why, ROOM)),
        Line::Unfit(system, why) => Err(unfit(&system, &why, &needed(binary))),
        Line::Want { .. } => Err(Failure::new("the start-up script answered out of turn", "")),
    }
}

fn check_machine(system: &str, machine: &str) -> Result<(), Failure> {
    let own = std::env::consts::ARCH;
    if system == "Linux" && isthmus_stage::content::runs(machine, own) {
        return Ok(());
    }
    Err(Failure::new(
        format!("the site is {system} on {machine}, this isthmus is built for Linux on {own}"),
        "only sites like this machine can be used so far",
    ))
}

/// The glibc that distributions of Isthmus are built for.
const OLDEST: [u32; 2] = [2, 17];

/// The glibc that the binary needs.
fn needed(binary: &std::path::Path) -> Vec<u32> {
    isthmus_stage::elf::oldest_glibc(binary).unwrap_or_default()
}

/// A site whose system cannot run the binary. `system`: name and version of its C library as `getconf` says them, or
/// nothing; `needed`: the glibc that the binary needs. What its dynamic linker says is for people only.
fn unfit(system: &str, why: &str, needed: &[u32]) -> Failure {
    let version = system.strip_prefix("glibc ").map(|version| {
        let numbers = version.split('.').map_while(|n| n.trim().parse::<u32>().ok());
        numbers.collect::<Vec<_>>()
    });
    let (problem, hint) = match version {
        Some(version) if version.as_slice() >= needed => (
            "Isthmus does not run on its system".to_owned(),
            "install the missing part there".to_owned(),
        ),
        _ => {
            let has = if system.is_empty() { "another C library" } else { system };
            let wants = if needed.is_empty() { &OLDEST } else { needed };
            let wants = wants.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
            let hint = format!(
                "Isthmus needs glibc {wants} or a later one there (2.17 is that of RHEL 7); a container with a later system can be a site too"
            );
            (
                format!("its system is too old, or of another kind, for Isthmus: it has {has}"),
                hint,
            )
        }
    };
    Failure::new(format!("{problem}: {why}"), hint)
}

async fn send<W: AsyncWrite + Unpin>(
    writer: &mut W,
    binary: &std::path::Path,
    progress: &impl Fn(),
) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::new(format!("cannot read '{}': {error}", binary.display()), "");
    let mut file = tokio::fs::File::open(binary).await.map_err(cannot)?;
    let mut buffer = vec![0; 128 << 10];
    loop {
        let n = file.read(&mut buffer).await.map_err(cannot)?;
        if n == 0 {
            break;
        }
        writer.write_all(&buffer[..n]).await.map_err(|_| Failure::closed())?;
        progress();
    }
    writer.flush().await.map_err(|_| Failure::closed())
}

/// The next line of the script; whatever else is printed is passed over.
async fn read_line<R: AsyncBufRead + Unpin>(reader: &mut R, noise: &mut Noise) -> Result<Line, Failure> {
    let mut limited = reader.take(MAX_NOISE);
    loop {
        let mut line = Vec::new();
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) if limited.limit() == 0 => {
                return Err(Failure::new(
                    "its login scripts print too much",
                    "make them silent in shells that are not interactive",
                ));
            }
            Ok(0) => return Err(Failure::closed()),
            Ok(_) => {}
            Err(error) => return Err(Failure::new(format!("the connection failed: {error}"), "")),
        }
        if let Some(parsed) = parse(&String::from_utf8_lossy(&line)) {
            return Ok(parsed);
        }
        noise.add(&line);
    }
}

fn parse(line: &str) -> Option<Line> {
    // Noise without a newline may stand in front.
    let at = line.find("ISTHMUS ")?;
    let mut words = line[at..].split_whitespace().skip(1);
    match words.next()? {
        "have" => Some(Line::Have),
        "want" => Some(Line::Want {
            system: words.next()?.to_owned(),
            machine: words.next()?.to_owned(),
        }),
        "fail" => Some(Line::Fail(plain(&words.collect::<Vec<_>>().join(" ")))),
        "unfit" => {
            let text = plain(&words.collect::<Vec<_>>().join(" "));
            let (system, why) = text.split_once(':')?;
            Some(Line::Unfit(system.to_owned(), why.trim().to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_survives_every_login_shell() {
        let setup = ["module load 'x'!".to_owned(), "A=1 | b".to_owned()];
        let command = command(&[0xab; 32], 123, "agent", &setup);
        let inner = command
            .strip_prefix("exec sh -c '")
            .and_then(|c| c.strip_suffix('\''))
            .unwrap();
        assert!(!inner.contains(['\'', '\n', '!']), "{inner}");
        assert!(inner.contains("isthmus-abab") && inner.contains("head -c 123"));
    }

    #[test]
    fn what_it_makes_is_private_and_the_agent_has_the_users_umask() {
        use std::os::unix::fs::PermissionsExt;
        let home = std::env::temp_dir().join(format!("isthmus-bootstrap-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let binary = "#!/bin/sh\ntest \"$1\" = --version || umask\n";
        std::fs::write(home.join("binary"), binary).unwrap();
        let (hash, _) = isthmus_stage::content::sha256(&home.join("binary")).unwrap();
        let run = |setup: &[String], input: &str| {
            let line = command(&hash, binary.len() as u64, "agent", setup);
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &format!("umask 027; {line}")]).env("HOME", &home);
            shell.env_remove("XDG_CACHE_HOME");
            shell
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped());
            let mut shell = shell.spawn().unwrap();
            std::io::Write::write_all(&mut shell.stdin.take().unwrap(), input.as_bytes()).unwrap();
            String::from_utf8_lossy(&shell.wait_with_output().unwrap().stdout).into_owned()
        };
        let first = run(&[], binary);
        assert!(first.contains("ISTHMUS want ") && first.ends_with("0027\n"), "{first}");
        assert!(run(&[], "").ends_with("0027\n"));
        assert!(run(&["umask 002".to_owned()], "").ends_with("0002\n"));
        let mode = std::fs::metadata(home.join(".cache/isthmus"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn one_that_another_job_has_put_there_meanwhile_stays() {
        use std::os::unix::fs::MetadataExt;
        let home = std::env::temp_dir().join(format!("isthmus-bootstrap-late-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        // The other job comes when this one tries whether the binary runs.
        let binary =
            "#!/bin/sh\ntest \"$1\" != --version || { cp \"$0\" \"${0%.*}\"; cp -l \"${0%.*}\" \"$HOME/other\"; }\n";
        std::fs::write(home.join("binary"), binary).unwrap();
        let (hash, _) = isthmus_stage::content::sha256(&home.join("binary")).unwrap();
        let done = std::process::Command::new("sh")
            .args(["-c", &command(&hash, binary.len() as u64, "agent", &[])])
            .env("HOME", &home)
            .env_remove("XDG_CACHE_HOME")
            .stdin(std::fs::File::open(home.join("binary")).unwrap())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        let names = std::fs::read_dir(home.join(".cache/isthmus")).unwrap();
        let files: Vec<u64> = names.map(|entry| entry.unwrap().metadata().unwrap().ino()).collect();
        assert_eq!(files, [std::fs::metadata(home.join("other")).unwrap().ino()]);
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn set_up_commands_are_run_as_they_are() {
        let script = "A='it works'!\nprintf '%s\\n' \"$A\" >&3".to_owned();
        let line = format!("exec 3>&1; eval \"$(printf %b \"{}\")\"", octal(&script));
        let done = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout), "it works!\n", "{done:?}");
    }

    #[test]
    fn lines_are_found_behind_noise() {
        assert_eq!(parse("Welcome to lab!\n"), None);
        let want = Line::Want {
            system: "Linux".into(),
            machine: "aarch64".into(),
        };
        assert_eq!(parse("motd ISTHMUS want Linux aarch64\n"), Some(want));
        assert_eq!(parse("ISTHMUS fail no space\n"), Some(Line::Fail("no space".into())));
        assert_eq!(parse("ISTHMUS want Linux\n"), None);
        let unfit = Line::Unfit("glibc 2.12".into(), "isthmus-ab: version `GLIBC_2.14' not found".into());
        assert_eq!(
            parse("ISTHMUS unfit glibc 2.12: isthmus-ab: version `GLIBC_2.14' not found\n"),
            Some(unfit)
        );
    }

    #[test]
    fn a_site_that_cannot_run_it_is_told_why() {
        let old = unfit("glibc 2.12", "isthmus-ab: version `GLIBC_2.14' not found", &[2, 17]);
        assert!(old.problem.contains("it has glibc 2.12") && old.hint.contains("glibc 2.17"));
        let other = unfit("", "sh: 1: isthmus-ab: not found", &[2, 17]);
        assert!(other.problem.contains("another C library"));
        // The words of a dynamic linker, in whichever language, decide nothing.
        let lacks = unfit(
            "glibc 2.36",
            "isthmus-ab: Version `GLIBC_2.14' nicht gefunden",
            &[2, 17],
        );
        assert!(lacks.problem.starts_with("Isthmus does not run on its system"));
        let translated = unfit("glibc 2.9", "kann nicht", &[2, 17]);
        assert!(translated.problem.contains("it has glibc 2.9"));
    }
}
