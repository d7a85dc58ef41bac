// SPDX-License-Identifier: Apache-2.0

use super::*;

#[test]
fn messages_come_back() {
    let manifest = Manifest {
        hash: [1; 32],
        size: PIECE as u64 + 1,
        pieces: vec![[2; 32], [3; 32]],
    };
    assert_eq!(
        (
            manifest.count(),
            manifest.length(0),
            manifest.length(1),
            manifest.length(2)
        ),
        (2, PIECE, 1, 0)
    );
    let file = File {
        root: Root::Job,
        path: "a/b".into(),
    };
    let placed = Placed {
        hash: [4; 32],
        name: "n".into(),
        size: 7,
        path: "p".into(),
        executable: true,
    };
    for ask in [
        Ask::Look,
        Ask::Offer {
            name: "f".into(),
            manifest: manifest.clone(),
        },
        Ask::Piece {
            number: 1,
            bytes: vec![1],
        },
        Ask::Link(placed.clone()),
        Ask::Deliver(placed.clone()),
        Ask::Copy(placed),
        Ask::List(file.clone()),
        Ask::Scratch(file.clone()),
        Ask::Read(file, 9),
        Ask::Cache(CacheVerb::Limit(5)),
        Ask::Cache(CacheVerb::Clear),
        Ask::Libraries(vec!["x".into()]),
        Ask::Enter {
            directory: "job-1".into(),
            lease: 60,
            silence: 9,
        },
    ] {
        assert_eq!(Ask::decode(&ask.encode()[4..]), Ok(ask));
    }
    for answer in [
        Answer::Sum(manifest),
        Answer::Missing(vec![1, 2]),
        Answer::Busy,
        Answer::Entries(vec![Entry {
            path: "x".into(),
            kind: EntryKind::Directory,
            size: 3,
            executable: false,
        }]),
        Answer::Facts(Box::new(facts::example())),
    ] {
        assert_eq!(Answer::decode(&answer.encode()[4..]), Ok(answer));
    }
}
