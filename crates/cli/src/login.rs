// SPDX-License-Identifier: Apache-2.0
//! `isthmus login`: short-lived ssh certificates.
//!
//! A new key pair is made for each login. Its certificate comes from the user's own command (`--command`, or
//! ISTHMUS_LOGIN), which gets the path of the public key as its argument and prints the certificate, or from an
//! authority whose key is here (`--ca-key`: for laboratories and tests). With an agent the pair lives there only, and
//! ends with the certificate; without one it is kept in a private file, which ssh is told of. No key of the user goes
//! to a site.

use crate::diagnostic::{note, refuse};
use crate::kept;
use clap::Args;
use isthmus_job::{Contact, Job, JobError, JobErrors, allocation};
use isthmus_stage::guarded::Guarded;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Usual life of a certificate, seconds.
const LIFE: u32 = 8 * 3600;
/// Longest output of the user's command, bytes.
const MAX_CERTIFICATE: usize = 64 << 10;
/// Most certificates that are looked at.
const MAX_LISTED: usize = 64;

/// Get or show short-lived ssh certificates
#[derive(Args, Debug)]
pub(crate) struct Login {
    /// Show which certificates there are and how long they are valid
    #[arg(long)]
    show: bool,
    /// Key of the certificate authority that signs (for laboratories and tests)
    #[arg(long, value_name = "FILE")]
    ca_key: Option<PathBuf>,
    /// Command that gets the path of a public key and prints its certificate [default: $ISTHMUS_LOGIN]
    #[arg(long, value_name = "COMMAND", conflicts_with = "ca_key")]
    command: Option<String>,
    /// User names at the sites, for --ca-key [default: yours]
    #[arg(long = "principal", value_name = "NAME")]
    principals: Vec<String>,
    /// How long it shall be valid, for --ca-key [default: 8h]
    #[arg(long, value_name = "TIME")]
    valid: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A certificate that ssh would use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Credential {
    /// As its authority calls it.
    id: String,
    principals: Vec<String>,
    /// First and last second of its life, since 1970; nothing for one that never ends.
    until: Option<u64>,
    from: Option<u64>,
    /// Where the key is.
    place: String,
}

/// `isthmus login`.
pub(crate) fn login(arguments: &Login) -> ExitCode {
    let outcome = if arguments.show { Ok(()) } else { obtain(arguments) };
    match outcome {
        Ok(()) => show(arguments.json),
        Err(error) => refuse(&error),
    }
}

fn show(as_json: bool) -> ExitCode {
    let (now, credentials) = (isthmus_launch::now(), credentials());
    if as_json {
        let all = credentials.iter().map(|c| {
            json!({
                "id": c.id, "principals": c.principals, "from_unix_seconds": c.from, "until_unix_seconds": c.until, "place": c.place,
                "left_seconds": c.until.map(|u| u.saturating_sub(now)), "valid": c.is_valid(now),
            })
        });
        crate::json::print("login", json!({ "certificates": all.collect::<Vec<_>>() }));
    } else if credentials.is_empty() {
        crate::print("there is no ssh certificate; sites are reached with keys, if they take them (ssh-add -l)");
    } else {
        credentials.iter().for_each(|c| crate::print(&c.text(now)));
    }
    if credentials.iter().any(|c| c.is_valid(now)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Credential {
    fn is_valid(&self, now: u64) -> bool {
        self.from.is_none_or(|f| f <= now) && self.until.is_none_or(|u| now < u)
    }

    fn text(&self, now: u64) -> String {
        let life = match self.until {
            None => "for ever".to_owned(),
            Some(until) if until <= now => "no more: it has expired".to_owned(),
            Some(_) if !self.is_valid(now) => "not yet".to_owned(),
            Some(until) => format!(
                "for {} more",
                crate::rates::span(u32::try_from(until - now).unwrap_or(u32::MAX))
            ),
        };
        format!(
            "'{}' for {} is valid {life} ({})",
            self.id,
            self.principals.join(", "),
            self.place
        )
    }
}

/// Where the pair is without an agent.
fn key_file() -> Option<PathBuf> {
    kept::sites_file().map(|f| f.with_file_name("ssh").join("key"))
}

fn obtain(arguments: &Login) -> Result<(), JobErrors> {
    let command = arguments
        .command
        .clone()
        .or_else(|| isthmus_settings::LOGIN.read(std::env::var_os))
        .filter(|c| !c.trim().is_empty());
    if arguments.ca_key.is_none() && command.is_none() {
        let error = JobError::new("no certificate authority is named");
        return Err(error
            .hint("name a command with --command or ISTHMUS_LOGIN, or an authority's key with --ca-key")
            .into());
    }
    let valid = arguments.valid.as_deref().map_or(Ok(LIFE), allocation::limit)?;
    let none = |why| JobError::new(format!("{why}: there is no place for a key"));
    let base = isthmus_stage::cache::directory().map_err(none)?;
    let cannot = |e: std::io::Error| JobError::new(format!("cannot make a private directory: {e}"));
    std::fs::create_dir_all(&base).map_err(cannot)?;
    let private = Guarded::in_cache(&base).map_err(cannot)?;
    let key = private.path().join("key");
    let comment = format!(
        "isthmus login {}",
        isthmus_wire::calendar::day_of(isthmus_launch::now())
    );
    let path = key.to_string_lossy().into_owned();
    run(
        "ssh-keygen",
        &["-q", "-t", "ed25519", "-N", "", "-C", &comment, "-f", &path],
        None,
    )?;
    match &arguments.ca_key {
        Some(authority) => sign(authority, &key, &arguments.principals, valid)?,
        None => ask(&command.unwrap_or_default(), &key)?,
    }
    let certificate = private.path().join("key-cert.pub");
    let credential = look(&certificate, "")?;
    let now = isthmus_launch::now();
    if !credential.is_valid(now) {
        return Err(JobError::new(format!("the certificate is not good: {}", credential.text(now))).into());
    }
    keep(&key, credential.until.map(|until| until.saturating_sub(now)))?;
    Ok(())
}

fn sign(authority: &Path, key: &Path, principals: &[String], valid: u32) -> Result<(), JobError> {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let named = || run("id", &["-un"], None).ok().map(|name| name.trim().to_owned());
    let user = user.ok().filter(|u| !u.is_empty()).or_else(named);
    let mut names = principals.to_vec();
    if names.is_empty() {
        names.extend(user.clone());
    }
    if names.is_empty() || names.iter().any(|n| n.is_empty() || n.contains(',')) {
        return Err(JobError::new("it is not clear for which user the certificate is").hint("write --principal NAME"));
    }
    let (authority, key) = (authority.to_string_lossy(), format!("{}.pub", key.display()));
    let id = format!("isthmus {}", user.unwrap_or_else(|| names[0].clone()));
    // A minute back, for clocks that are slow.
    let life = format!("-1m:+{valid}s");
    run(
        "ssh-keygen",
        &[
            "-q",
            "-s",
            &authority,
            "-I",
            &id,
            "-n",
            &names.join(","),
            "-V",
            &life,
            &key,
        ],
        None,
    )
    .map(|_| ())
}

fn ask(command: &str, key: &Path) -> Result<(), JobError> {
    let public = format!("{}.pub", key.display());
    let script = format!("{command} \"$1\"");
    let printed = run("sh", &["-c", &script, "isthmus-login", &public], None).map_err(|error| {
        let why = error.problem.strip_prefix("sh: ").unwrap_or(&error.problem).to_owned();
        JobError::new(format!("'{command}' got no certificate: {why}"))
            .hint("it gets the path of a public key as its last argument and prints the certificate")
    })?;
    let certificate = key.with_file_name("key-cert.pub");
    let line = printed.lines().find(|l| l.contains("-cert-v01@openssh.com "));
    match line {
        Some(line) => std::fs::write(&certificate, format!("{line}\n"))
            .map_err(|e| JobError::new(format!("cannot write '{}': {e}", certificate.display()))),
        None if certificate.is_file() => Ok(()),
        None => Err(JobError::new(format!("'{command}' printed no ssh certificate"))
            .hint("it gets the path of a public key as its last argument and prints the certificate, or writes it beside the key as ssh-keygen does")),
    }
}

/// Gives the pair to the agent, or keeps it in a private file.
fn keep(key: &Path, life: Option<u64>) -> Result<(), JobError> {
    let path = key.to_string_lossy().into_owned();
    let life = life.map(|l| l.to_string());
    let mut words = vec!["-q"];
    if let Some(life) = &life {
        words.extend(["-t", life]);
    }
    words.push(&path);
    if std::env::var_os("SSH_AUTH_SOCK").is_some() && run("ssh-add", &words, None).is_ok() {
        return Ok(());
    }
    let file = key_file().ok_or_else(|| JobError::new("HOME is not set: there is no place for a key"))?;
    for (from, to) in [
        (key.to_owned(), file.clone()),
        (key.with_file_name("key-cert.pub"), file.with_file_name("key-cert.pub")),
    ] {
        let text =
            std::fs::read_to_string(&from).map_err(|e| JobError::new(format!("cannot read the new key: {e}")))?;
        kept::write_private(&to, &text)?;
    }
    Ok(())
}

/// The private pair for the ssh client, while it is valid.
pub(crate) fn identity() -> Option<PathBuf> {
    let file = key_file().filter(|f| f.is_file())?;
    let credential = look(&file.with_file_name("key-cert.pub"), "").ok()?;
    credential.is_valid(isthmus_launch::now()).then_some(file)
}

/// What a job should say of credentials before it starts: it would outlive them.
pub(crate) fn outlived(job: &Job, limit: Option<Duration>) {
    let limits = job.subjobs().iter().filter(|s| s.contact != Contact::Home);
    let longest = limits
        .filter_map(|s| s.allocation.as_ref())
        .map(|a| u64::from(a.limit))
        .chain(limit.map(|l| l.as_secs()))
        .max()
        .unwrap_or(0);
    let remote = job.subjobs().iter().any(|s| s.contact != Contact::Home);
    let credentials = if remote { credentials() } else { Vec::new() };
    let now = isthmus_launch::now();
    let Some(best) = credentials.iter().max_by_key(|c| c.until.unwrap_or(u64::MAX)) else {
        return;
    };
    let left = best.until.map_or(u64::MAX, |until| until.saturating_sub(now));
    let shown = |s: u64| crate::rates::span(u32::try_from(s).unwrap_or(u32::MAX));
    if left == 0 {
        note(
            &JobError::new(format!("the ssh certificate '{}' has expired", best.id))
                .hint("isthmus login gets a new one"),
        );
    } else if longest > left {
        let problem = format!(
            "the job may take {}, the ssh certificate '{}' is valid for {} only: no new connection can be made after that",
            shown(longest),
            best.id,
            shown(left)
        );
        note(&JobError::new(problem).hint("get a longer one with isthmus login before the job starts"));
    }
}

/// All certificates of the agent, and ours.
fn credentials() -> Vec<Credential> {
    let mut all = Vec::new();
    if std::env::var_os("SSH_AUTH_SOCK").is_some() {
        let listed = run("ssh-add", &["-L"], None).unwrap_or_default();
        let certificates = listed.lines().filter(|l| l.contains("-cert-v01@openssh.com "));
        for line in certificates.take(MAX_LISTED) {
            let printed = run("ssh-keygen", &["-L", "-f", "-"], Some(line)).unwrap_or_default();
            all.extend(parse(&printed, "in the ssh agent"));
        }
    }
    let file = key_file()
        .map(|f| f.with_file_name("key-cert.pub"))
        .filter(|f| f.is_file());
    all.extend(file.and_then(|f| look(&f, &f.display().to_string()).ok()));
    all
}

fn look(certificate: &Path, place: &str) -> Result<Credential, JobError> {
    let printed = run("ssh-keygen", &["-L", "-f", &certificate.to_string_lossy()], None)?;
    parse(&printed, place).ok_or_else(|| JobError::new("this is not an ssh certificate"))
}

/// What `ssh-keygen -L` prints, with times of UTC.
fn parse(text: &str, place: &str) -> Option<Credential> {
    let field = |name: &str| text.lines().find_map(|l| l.trim().strip_prefix(name)).map(str::trim);
    let valid = field("Valid:")?;
    let (from, until) = match valid.split_once(" to ") {
        Some((from, until)) => (seconds(from.trim_start_matches("from ")), seconds(until)),
        None => (None, None),
    };
    // A time that is not understood is no certificate that can be trusted.
    if valid != "forever" && until.is_none() && !valid.ends_with("forever") {
        return None;
    }
    let lines = text.lines().skip_while(|l| l.trim() != "Principals:").skip(1);
    let principals = lines
        .map(str::trim)
        .take_while(|l| !l.ends_with(':') && !l.contains(": "));
    Some(Credential {
        id: field("Key ID:")?.trim_matches('"').to_owned(),
        principals: principals.map(str::to_owned).collect(),
        from,
        until,
        place: place.to_owned(),
    })
}

/// `2026-11-21T20:00:00` as seconds since 1970.
fn seconds(text: &str) -> Option<u64> {
    let (date, clock) = text.trim().split_once('T')?;
    let numbers = |text: &str, mark: char| -> Option<Vec<u64>> { text.split(mark).map(|n| n.parse().ok()).collect() };
    let (date, clock) = (numbers(date, '-')?, numbers(clock, ':')?);
    let ([year @ 1970..=9999, month @ 1..=12, day @ 1..=31], [hour @ 0..=23, minute @ 0..=59, second @ 0..=60]) =
        (<[u64; 3]>::try_from(date).ok()?, <[u64; 3]>::try_from(clock).ok()?)
    else {
        return None;
    };
    // Years that begin with March, so that leap days come last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Runs a command of OpenSSH, whose questions go to the terminal.
fn run(name: &str, words: &[&str], input: Option<&str>) -> Result<String, JobError> {
    let mut command = Command::new(name);
    command
        .args(words)
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.stdin(if input.is_some() {
        Stdio::piped()
    } else {
        Stdio::inherit()
    });
    let cannot = |e: std::io::Error| {
        JobError::new(format!("'{name}' cannot be run: {e}"))
            .hint("it is a command of the OpenSSH client or of the system")
    };
    let mut child = command.spawn().map_err(cannot)?;
    if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
        let _ = pipe.write_all(input.as_bytes());
    }
    let done = child.wait_with_output().map_err(cannot)?;
    let words = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        let status = done.status.to_string();
        return Err(JobError::new(format!(
            "{name}: {}",
            words.trim().lines().last().unwrap_or(&status)
        )));
    }
    if done.stdout.len() > MAX_CERTIFICATE * MAX_LISTED {
        return Err(JobError::new(format!("'{name}' printed too much")));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "key-cert.pub:\n        Type: ssh-ed25519-cert-v01@openssh.com user certificate\n        \
        Key ID: \"isthmus me\"\n        Serial: 0\n        Valid: from 2026-11-21T19:59:00 to 2026-11-22T04:00:00\n        \
        Principals: \n                me\n                you\n        Critical Options: (none)\n";

    #[test]
    fn what_a_certificate_says() {
        let credential = parse(PRINTED, "here").unwrap();
        assert_eq!((credential.id.as_str(), credential.principals.len()), ("isthmus me", 2));
        let until = credential.until.unwrap();
        assert_eq!(until, 1_795_320_000);
        assert!(credential.is_valid(until - 1) && !credential.is_valid(until) && !credential.is_valid(0));
        assert!(credential.text(until - 3600).contains("for 1h more"));
        assert!(credential.text(until).contains("expired"));
        assert_eq!(
            parse(
                &PRINTED.replace("from 2026-11-21T19:59:00 to 2026-11-22T04:00:00", "nonsense"),
                ""
            ),
            None
        );
        assert_eq!(
            (
                seconds("1970-01-01T00:00:01"),
                seconds("2000-02-30X"),
                seconds("1-1-1T1:1:1")
            ),
            (Some(1), None, None)
        );
    }
}
