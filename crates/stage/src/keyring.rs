// SPDX-License-Identifier: Apache-2.0
//! Keys by which jobs of one user know each other (`isthmus_accept`): files of a private directory in the user's home,
//! each of 64 hexadecimal digits. `own` is made on first use; others the user has brought there, and named.

use crate::content::hex;
use crate::guarded::random;
use isthmus_wire::port::MAX_PROOFS;
use isthmus_wire::question::{Kind, MAX_KEY, Refusal};
use rustix::fs::OFlags;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A key.
pub type Key = [u8; 32];

/// The name of the key that is made here.
pub const OWN: &str = "own";
/// Files that are looked at.
const MOST_FILES: usize = 1000;
/// Most keys of a user: a host at which jobs meet may have one more.
const MOST: usize = MAX_PROOFS - 1;

/// Whether a key may be called so.
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    (1..=MAX_KEY).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}

/// What a file of the directory says.
pub fn parse(text: &str) -> Option<Key> {
    let digits = text.trim_end();
    let plain = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..32).map(byte).collect::<Option<_>>().filter(|_| plain)?;
    bytes.try_into().ok()
}

/// The keys of the user that have these names; of no names, all.
///
/// # Errors
/// There is no place for keys, others can get at it, or one is missing: a sentence says so.
pub fn keys(names: &[String]) -> Result<Vec<Key>, Refusal> {
    let unable = |why: String| Refusal::new(Kind::Unable, why);
    let place = directory().map_err(|why| unable(format!("the user's keys cannot be used: {why}")))?;
    keys_at(&place, names).map_err(|error| {
        unable(format!(
            "the user's keys in {} cannot be used: {error}",
            place.display()
        ))
    })
}

/// `$XDG_STATE_HOME/isthmus/keys`, or below `$HOME/.local/state`.
fn directory() -> Result<PathBuf, String> {
    let named = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = match (named("XDG_STATE_HOME"), named("HOME")) {
        (Some(state), _) => state,
        (None, Some(home)) if home.is_dir() => home.join(".local/state"),
        (None, Some(home)) => return Err(format!("HOME is '{}', which is not a directory", home.display())),
        (None, None) => return Err("neither HOME nor XDG_STATE_HOME is set".to_owned()),
    };
    Ok(base.join("isthmus/keys"))
}

fn keys_at(place: &Path, names: &[String]) -> io::Result<Vec<Key>> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(place)?;
    check(&fs::symlink_metadata(place)?, 0o700)?;
    let own = own(place)?;
    let read = |name: &str| match name {
        OWN => Ok(own),
        _ => read(&place.join(name)).map_err(|error| io::Error::new(error.kind(), format!("'{name}': {error}"))),
    };
    if !names.is_empty() {
        let plain = names.iter().all(|name| is_name(name)) && names.len() <= MOST;
        return match plain {
            true => names.iter().map(|name| read(name)).collect(),
            false => Err(io::Error::other(format!(
                "at most {MOST} keys can be named, each by letters, digits and ._-@"
            ))),
        };
    }
    let mut found: Vec<String> = fs::read_dir(place)?
        .take(MOST_FILES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_name(name) && name != OWN)
        .collect();
    found.sort_unstable();
    // What is no key, or others can read, proves nothing.
    let others = found.iter().filter_map(|name| read(name).ok());
    Ok(std::iter::once(own).chain(others).take(MOST).collect())
}

/// Refuses what belongs to others, or others can use.
fn check(found: &fs::Metadata, mode: u32) -> io::Result<()> {
    match found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("it must be yours, and nobody else may use it (chmod {mode:o})"),
        )),
    }
}

fn read(path: &Path) -> io::Result<Key> {
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)?;
    check(&file.metadata()?, 0o600)?;
    let mut text = String::new();
    file.take(100).read_to_string(&mut text)?;
    parse(&text).ok_or_else(|| io::Error::other("it has to have 64 hexadecimal digits, and nothing else"))
}

/// The key of this home; the first who wants it makes it.
fn own(place: &Path) -> io::Result<Key> {
    let path = place.join(OWN);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => return done.map_err(|error| io::Error::new(error.kind(), format!("'{OWN}': {error}"))),
    }
    let (key, new) = (random::<32>()?, place.join(format!(".{}", hex(&random::<8>()?))));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let linked = writeln!(file, "{}", hex(&key)).and_then(|()| fs::hard_link(&new, &path));
    let _ = fs::remove_file(&new);
    match linked {
        // Somebody else was quicker.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => read(&path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_use_it() {
        let place = crate::guarded::Guarded::create(&std::env::temp_dir(), "isthmus-keys-").expect("a directory");
        let place = place.path().join("isthmus/keys");
        let all = std::thread::scope(|scope| {
            let made: Vec<_> = (0..4).map(|_| scope.spawn(|| keys_at(&place, &[]))).collect();
            made.into_iter()
                .map(|thread| thread.join().expect("no panic").expect("a key"))
                .collect::<Vec<_>>()
        });
        assert!(all.iter().all(|keys| *keys == all[0]) && all[0].len() == 1, "{all:?}");
        assert_eq!(
            fs::metadata(place.join(OWN)).expect("it is there").mode() & 0o777,
            0o600
        );
        let names = [OWN.to_owned(), "lab".to_owned()];
        assert!(keys_at(&place, &names).is_err(), "there is none of that name");
        let open = |mode| {
            fs::write(place.join("lab"), format!("{}\n", "0a".repeat(32))).expect("it is ours");
            fs::set_permissions(place.join("lab"), fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        open(0o644);
        assert!(keys_at(&place, &names).is_err(), "others can read it");
        assert_eq!(keys_at(&place, &[]).expect("the other one").len(), 1);
        open(0o600);
        assert_eq!(keys_at(&place, &names).expect("both"), [all[0][0], [10; 32]]);
        assert_eq!(keys_at(&place, &[]).expect("both").len(), 2);
        assert!(keys_at(&place, &["../own".to_owned()]).is_err());
        fs::write(place.join(OWN), "short").expect("it is ours");
        assert!(keys_at(&place, &[]).is_err(), "it is not made anew: others may have it");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("it is ours");
        assert!(keys_at(&place, &[]).is_err(), "others can see it");
    }
}
