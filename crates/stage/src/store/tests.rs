// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::content;
use isthmus_wire::service::Manifest;
use isthmus_wire::service::PIECE;

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn sum(bytes: &[u8]) -> Manifest {
    content::manifest(&mut &*bytes).unwrap()
}

fn keep(store: &Store, name: &str, bytes: &[u8]) -> PathBuf {
    let mut incoming = store.receive(sum(bytes).hash, name, bytes.len() as u64).unwrap();
    incoming.write(bytes).unwrap();
    incoming.finish().unwrap()
}

#[test]
fn a_file_is_received_once_and_found_again() {
    let cache = scratch();
    let store = Store::open(cache.path()).unwrap();
    let hash = sum(b"content").hash;
    assert!(store.find(&hash, "prog", 7).unwrap().is_none());
    let path = keep(&store, "prog", b"content");
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_eq!(store.find(&hash, "prog", 7).unwrap(), Some(path));
    let other = store
        .find(&hash, "other", 7)
        .unwrap()
        .expect("the same content has two names");
    assert_eq!(fs::read(other).unwrap(), b"content");
}

#[test]
fn damaged_long_and_abandoned_files_leave_nothing() {
    let cache = scratch();
    let store = Store::open(cache.path()).unwrap();
    let hash = sum(b"content").hash;
    let mut damaged = store.receive(hash, "prog", 7).unwrap();
    damaged.write(b"CONTENT").unwrap();
    assert!(matches!(damaged.finish(), Err(StageError::Corrupt)));
    let mut long = store.receive(hash, "prog", 7).unwrap();
    assert!(matches!(long.write(b"content and more"), Err(StageError::TooLong)));
    drop(long);
    drop(store.receive(hash, "prog", 7).unwrap());
    assert_eq!(fs::read_dir(cache.path().join("files")).unwrap().count(), 0);
}

#[test]
fn names_cannot_leave_the_cache() {
    let cache = scratch();
    let store = Store::open(cache.path()).unwrap();
    for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b"] {
        assert!(
            matches!(store.receive([0; 32], name, 1), Err(StageError::Name(_))),
            "{name:?}"
        );
    }
}

#[test]
fn a_file_with_the_name_of_our_own_is_kept_under_another_one() {
    let cache = scratch();
    let store = Store::open(cache.path()).unwrap();
    let hash = sum(b"content").hash;
    let mut file = store.receive(hash, ".lease", 7).unwrap();
    file.write(b"content").unwrap();
    let path = file.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_eq!(store.find(&hash, ".lease", 7).unwrap(), Some(path.clone()));
    assert_ne!(path.file_name(), Some(LEASE.as_ref()));
}

#[test]
fn pieces_that_are_here_are_not_wanted_again() {
    let cache = scratch();
    let store = Store::open(cache.path()).unwrap();
    let bytes: Vec<u8> = (0..3 * PIECE + 10).map(|i| (i / 3) as u8).collect();
    let piece = |n: usize| &bytes[n * PIECE..bytes.len().min((n + 1) * PIECE)];
    let manifest = sum(&bytes);
    let mut first = store.receive_pieces(manifest.clone(), "data").unwrap();
    assert_eq!(first.missing(), [0, 1, 2, 3]);
    first.write(3, piece(3)).unwrap();
    first.write(1, piece(1)).unwrap();
    assert!(
        matches!(first.write(0, piece(1)), Err(StageError::Corrupt)),
        "a wrong piece is refused"
    );
    drop(first);
    // What lies there damaged is not believed.
    let partial = cache
        .path()
        .join("files")
        .join(format!(".partial-{}", hex(&manifest.hash)));
    let file = fs::OpenOptions::new().write(true).open(&partial).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"xyz", PIECE as u64).unwrap();
    let mut second = store.receive_pieces(manifest.clone(), "data").unwrap();
    assert_eq!(second.missing(), [0, 1, 2]);
    for n in second.missing() {
        second.write(n, piece(n as usize)).unwrap();
    }
    let path = second.finish().unwrap();
    assert_eq!(fs::read(path).unwrap(), bytes);
    assert!(!partial.exists());
    let unsound = Manifest { size: 5, ..manifest };
    assert!(matches!(
        store.receive_pieces(unsound, "data"),
        Err(StageError::Corrupt)
    ));
}

#[test]
fn what_was_used_longest_ago_goes_first_and_what_is_in_use_stays() {
    let cache = scratch();
    let old = |path: &Path, seconds: u64| {
        let lease = fs::OpenOptions::new()
            .write(true)
            .open(path.with_file_name(LEASE))
            .unwrap();
        lease
            .set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(seconds))
            .unwrap();
    };
    let paths: Vec<PathBuf> = [("a", 300), ("b", 200), ("c", 100)]
        .iter()
        .map(|(name, seconds)| {
            let path = keep(&Store::open(cache.path()).unwrap(), name, name.repeat(1000).as_bytes());
            old(&path, *seconds);
            path
        })
        .collect();
    let user = Store::open(cache.path()).unwrap();
    user.find(&sum("a".repeat(1000).as_bytes()).hash, "a", 1000)
        .unwrap()
        .unwrap();
    old(&paths[0], 300);
    let store = Store::open(cache.path()).unwrap();
    assert_eq!(
        store.list().iter().map(|h| h.used).collect::<Vec<_>>(),
        [true, false, false]
    );
    store.set_limit(3500).unwrap();
    let kept = keep(&store, "d", &[7; 1000]);
    assert_eq!(
        paths.iter().map(|p| p.exists()).collect::<Vec<_>>(),
        [true, false, true]
    );
    assert!(matches!(
        store.receive([1; 32], "e", 3000),
        Err(StageError::Full { .. })
    ));
    drop(user);
    assert_eq!(store.clear(), 1000, "c went for e, d is in use by this store");
    assert!(kept.exists() && !paths[0].exists());
}

#[test]
fn a_delivered_file_leaves_the_cache() {
    let cache = scratch();
    let store = Store::open(cache.path()).unwrap();
    keep(&store, "data", b"content");
    let target = cache.path().join("there");
    let placed = |hash| Placed {
        hash,
        name: "data".into(),
        size: 7,
        path: String::new(),
        executable: false,
    };
    store.deliver(&placed(sum(b"content").hash), &target, true).unwrap();
    store.deliver(&placed(sum(b"content").hash), &target, false).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"content");
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o111, 0);
    assert!(store.list().is_empty());
    assert!(store.deliver(&placed([1; 32]), &target, false).is_err());
}

#[test]
fn several_receive_the_same_file_at_once() {
    let cache = scratch();
    let store = || Store::open(cache.path()).unwrap();
    let (first, second, third) = (store(), store(), store());
    let begin = |store: &Store, name| store.receive_pieces(sum(b"content"), name).unwrap();
    let mut one = begin(&first, "prog");
    let mut two = begin(&second, "prog");
    let mut three = begin(&third, "other");
    assert_eq!(store().clear(), 0, "what arrives is in use");
    let writing = fs::File::open(
        cache
            .path()
            .join(format!("files/.partial-{}", hex(&sum(b"content").hash))),
    )
    .unwrap();
    one.write(0, b"content").unwrap();
    two.write(0, b"content").unwrap();
    let path = one.finish().unwrap();
    assert!(
        !lease::is_at(&writing, &path),
        "a program cannot be run that others have open for writing"
    );
    assert_eq!(two.finish().unwrap(), path);
    three.write(0, b"content").unwrap();
    let other = three.finish().unwrap();
    assert_eq!(other.file_name().unwrap(), "other");
    for path in [path, other] {
        assert_eq!(fs::read(path).unwrap(), b"content");
    }
    let left = fs::read_dir(cache.path().join("files")).unwrap().count();
    assert_eq!(left, 1, "nothing stays beside the file");
}

#[test]
fn a_file_that_arrives_again_does_not_take_the_place_of_the_one_that_runs() {
    let cache = scratch();
    let store = Store::open(cache.path()).unwrap();
    let mut late = store.receive(sum(b"content").hash, "prog", 7).unwrap();
    late.write(b"content").unwrap();
    let path = keep(&store, "prog", b"content");
    let running = fs::File::open(&path).unwrap();
    assert_eq!(late.finish().unwrap(), path);
    assert!(lease::is_at(&running, &path));
    assert_eq!(fs::read_dir(cache.path().join("files")).unwrap().count(), 1);
}

#[test]
fn what_is_used_stays_while_others_remove_it() {
    let cache = scratch();
    let take = |turn: u32| {
        let store = Store::open(cache.path()).unwrap();
        let found = store.find(&sum(b"content").hash, "prog", 7).unwrap();
        let path = match found {
            Some(path) => path,
            None if turn % 2 == 0 => keep(&store, "prog", b"content"),
            None => {
                let mut partial = store.receive_pieces(sum(b"content"), "prog").unwrap();
                for piece in partial.missing() {
                    partial.write(piece, b"content").unwrap();
                }
                partial.finish().unwrap()
            }
        };
        assert_eq!(fs::read(path).unwrap(), b"content");
    };
    std::thread::scope(|scope| {
        let users: Vec<_> = (0..3).map(|_| scope.spawn(|| (0..300).for_each(take))).collect();
        while !users.iter().all(|user| user.is_finished()) {
            Store::open(cache.path()).unwrap().clear();
        }
    });
}

#[test]
fn what_a_killed_process_was_removing_goes() {
    let cache = scratch();
    let store = Store::open(cache.path()).unwrap();
    fs::create_dir(cache.path().join("files/.removed-0")).unwrap();
    fs::write(cache.path().join("files/.removed-0/prog"), b"content").unwrap();
    keep(&store, "data", b"content");
    assert!(!cache.path().join("files/.removed-0").exists());
}
