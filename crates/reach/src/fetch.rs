// SPDX-License-Identifier: Apache-2.0
//! Inputs that are elsewhere, brought home.
//!
//! Web addresses are fetched by the system's `curl`, which knows the proxies, certificates and passwords (`~/.netrc`)
//! of the user; a second time only what has changed. `sftp://` is fetched by OpenSSH's `sftp`, which knows the keys.
//! Files of other sites come through their service.
//!
//! ```text
//!  <cache>/isthmus/fetched/<hash of the address>/<name>, .etag
//! ```

use crate::failure::Failure;
use crate::here::here;
use crate::sharing::Access;
use crate::transfer::Line;
use crate::uncopied::{Fetched, Uncopied, without_content};
use isthmus_job::catalogue::{Catalogue, Entry};
use isthmus_job::transfer::Location;
use isthmus_stage::content::{MAX_FILE, hex};
use isthmus_wire::service::{Answer, Ask, EntryKind, File, Root};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::PoisonError;
use tokio::process::Command;

/// Where a file is at home, after it has been brought there.
pub async fn to_home(
    access: &Access,
    catalogue: &Catalogue,
    home: &Path,
    place: &Location,
    tell: &(dyn Fn(String) + Sync),
) -> Result<Fetched, Failure> {
    if let Location::Home(path) = place {
        let (path, uncopied) = (here(home, path)?, Uncopied::default());
        return Ok(Fetched { path, uncopied });
    }
    let key = place.to_string();
    let cell = access
        .fetched
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(key)
        .or_default()
        .clone();
    let fetched = cell.get_or_try_init(|| once(access, catalogue, place, tell)).await?;
    Ok(fetched.clone())
}

/// What was fetched is executable by its user.
pub fn make_executable(file: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let cannot = |e: std::io::Error| Failure::new(format!("cannot make '{}' executable: {e}", file.display()), "");
    let mode = std::fs::metadata(file).map_err(cannot)?.permissions().mode();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode | 0o100)).map_err(cannot)
}

/// Several subjobs, and jobs, may want the same: one fetches it, the others wait.
async fn once(
    access: &Access,
    catalogue: &Catalogue,
    place: &Location,
    tell: &(dyn Fn(String) + Sync),
) -> Result<Fetched, Failure> {
    let mut uncopied = Uncopied::default();
    let directory = directory(place)?;
    let _alone = alone(directory.join(".lock")).await?;
    let name = Some(place.name())
        .filter(|n| !matches!(*n, "" | "." | ".."))
        .unwrap_or("file");
    let target = directory.join(name);
    tell(format!("fetching {place}"));
    let fetched = match place {
        Location::Web(url) => web(url, &target).await,
        Location::Sftp(destination, path) => sftp(access, destination, path, &target).await,
        Location::Site(site, path) => from_site(access, catalogue, site, path, &target, tell)
            .await
            .map(|left| uncopied = left),
        Location::Home(_) => Ok(()),
    };
    fetched.map_err(|f| Failure::new(format!("'{place}' cannot be fetched: {}", f.problem), f.hint))?;
    Ok(Fetched { path: target, uncopied })
}

/// Waits until no other job fetches into this directory.
async fn alone(lock: PathBuf) -> Result<std::fs::File, Failure> {
    let locked = tokio::task::spawn_blocking(move || {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(lock)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
        Ok::<_, std::io::Error>(file)
    });
    let failed = |e: std::io::Error| Failure::new(format!("cannot lock what is fetched: {e}"), "");
    locked
        .await
        .map_err(std::io::Error::other)
        .and_then(|locked| locked)
        .map_err(failed)
}

fn directory(place: &Location) -> Result<PathBuf, Failure> {
    let none = |why| Failure::new(format!("{why}: there is no directory for files that are fetched"), "");
    let cache = isthmus_stage::cache::directory().map_err(none)?;
    let name = isthmus_stage::content::root(
        0,
        &[isthmus_stage::content::manifest(&mut place.to_string().as_bytes())
            .map_err(|e| Failure::new(e.to_string(), ""))?
            .hash],
    );
    let directory = cache.join("fetched").join(hex(&name[..16]));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .map_err(|e| Failure::new(format!("cannot create '{}': {e}", directory.display()), ""))?;
    Ok(directory)
}

async fn web(url: &str, target: &Path) -> Result<(), Failure> {
    let tag = target.with_file_name(".etag");
    let part = target.with_file_name(".part");
    let mut command = Command::new("curl");
    command.args(["--fail", "--location", "--silent", "--show-error", "--netrc-optional"]);
    command.args([
        "--proto",
        "=http,https,ftp,ftps",
        "--max-redirs",
        "10",
        "--retry",
        "3",
        "--connect-timeout",
        "30",
    ]);
    command.args(["--max-filesize", &MAX_FILE.to_string()]);
    if target.is_file() && tag.is_file() {
        command.arg("--etag-compare").arg(&tag);
    }
    command
        .arg("--etag-save")
        .arg(&tag)
        .arg("--output")
        .arg(&part)
        .args(["--", url]);
    let _ = std::fs::remove_file(&part);
    run(
        command,
        "curl",
        "install curl, or fetch the file and name it by its path",
    )
    .await?;
    // Nothing has come when what is here is still right.
    if part.is_file() {
        std::fs::rename(&part, target)
            .map_err(|e| Failure::new(format!("cannot write '{}': {e}", target.display()), ""))?;
    }
    Ok(())
}

async fn sftp(access: &Access, destination: &str, path: &str, target: &Path) -> Result<(), Failure> {
    if path.contains(['"', '\\', '\n']) {
        return Err(Failure::new(
            "its path has characters that cannot be passed to sftp",
            "",
        ));
    }
    let part = target.with_file_name(".part");
    let _ = std::fs::remove_dir_all(&part);
    let _ = std::fs::remove_file(&part);
    let quoted: String = path
        .chars()
        .flat_map(|c| if "*?[".contains(c) { vec!['\\', c] } else { vec![c] })
        .collect();
    let script = target.with_file_name(".script");
    let text = format!("get -r \"{quoted}\" \"{}\"\n", part.display());
    std::fs::write(&script, text).map_err(|e| Failure::new(format!("cannot write '{}': {e}", script.display()), ""))?;
    let mut command = Command::new("sftp");
    command.args(access.sharing.options(access, destination).await);
    command
        .arg("-q")
        .arg("-b")
        .arg(&script)
        .args(["--", &destination.replacen("ssh://", "sftp://", 1)]);
    run(command, "sftp", "check that sftp reaches the host").await?;
    let _ = std::fs::remove_dir_all(target);
    let _ = std::fs::remove_file(target);
    std::fs::rename(&part, target).map_err(|e| Failure::new(format!("cannot write '{}': {e}", target.display()), ""))
}

async fn run(mut command: Command, name: &str, hint: &str) -> Result<(), Failure> {
    let done = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output();
    let done = done
        .await
        .map_err(|e| Failure::new(format!("'{name}' cannot be run: {e}"), hint))?;
    if done.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&done.stderr);
    // curl explains at length what it has said in one line before.
    let own = words
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let said = own.or_else(|| words.trim().lines().last()).unwrap_or("nothing");
    Err(Failure::new(format!("{name} says: {said}"), "try the same by hand"))
}

/// What is known of a site by the name that the user gave it.
pub fn entry(catalogue: &Catalogue, site: &str) -> Result<Entry, Failure> {
    let known = catalogue.get(site).cloned();
    known.map_or_else(
        || Entry::bare(site).map_err(|e| Failure::new(e.problem, e.hint.unwrap_or_default())),
        Ok,
    )
}

async fn from_site(
    access: &Access,
    catalogue: &Catalogue,
    site: &str,
    path: &str,
    target: &Path,
    tell: &(dyn Fn(String) + Sync),
) -> Result<Uncopied, Failure> {
    let mut uncopied = Uncopied::default();
    let entry = entry(catalogue, site)?;
    let mut line = Line::open(access, &entry.contact, &entry.setup).await?;
    let file = |path: String| File { root: Root::Site, path };
    let Answer::Entries(entries) = line.ask(&Ask::List(file(path.to_owned()))).await? else {
        return Err(crate::service::out_of_turn());
    };
    let cannot = |e: std::io::Error| Failure::new(format!("cannot write below '{}': {e}", target.display()), "");
    for entry in entries {
        let (there, here) = match entry.path.as_str() {
            "" => (path.to_owned(), target.to_owned()),
            below => {
                isthmus_job::transfer::check_relative(below)
                    .map_err(|why| Failure::new(format!("the site names a file '{below}': {why}"), ""))?;
                (format!("{}/{below}", path.trim_end_matches('/')), target.join(below))
            }
        };
        match entry.kind {
            EntryKind::Directory => std::fs::create_dir_all(&here).map_err(cannot)?,
            EntryKind::Other if entry.path.is_empty() => {
                return Err(without_content("it"));
            }
            EntryKind::Other => uncopied.add(&entry.path),
            EntryKind::File => {
                if let Some(parent) = here.parent() {
                    std::fs::create_dir_all(parent).map_err(cannot)?;
                }
                let shown = |done, all| tell(format!("fetching {}", crate::transfer::progress(done, all)));
                line.get(&file(there), &here, entry.executable, &shown).await?;
            }
        }
    }
    line.into_service()?.leave().await;
    Ok(uncopied)
}
