// SPDX-License-Identifier: Apache-2.0
//! What the services of sites, other commands and the files of users say.

use crate::grid::unframed;
use isthmus_job::catalogue;
use isthmus_wire::control::{Edit, Reply, Request, Standing};
use isthmus_wire::grid::Scheduler;
use isthmus_wire::joined::{Group, Joined};
use isthmus_wire::rate::Rate;
use isthmus_wire::relay::{Begin, Said};
use isthmus_wire::service::{
    Answer, Ask, CacheVerb, Cached, Entry, EntryKind, Facts, File, Manifest, Named, Placed, Queue, Root,
};

/// A message decodes to what its encoding decodes to.
macro_rules! comes_back {
    ($type:ty, $body:expr) => {
        if let Ok(message) = <$type>::decode($body) {
            assert_eq!(
                unframed(&message.encode()).map(|body| <$type>::decode(&body)),
                Some(Ok(message))
            );
        }
    };
}

/// Requests to a service and its answers: files, the cache, what a site has.
pub(crate) fn service(body: &[u8]) {
    comes_back!(Ask, body);
    // Comparing numbers that are none fails; facts have some.
    if let Ok(answer) = Answer::decode(body) {
        let bytes = answer.encode();
        let again = unframed(&bytes).map(|body| Answer::decode(&body).map(|answer| answer.encode()));
        assert_eq!(again, Some(Ok(bytes)));
    }
}

pub(crate) fn service_bodies() -> Vec<Vec<u8>> {
    let manifest = Manifest {
        hash: [1; 32],
        size: 3 << 20,
        pieces: vec![[2; 32]; 3],
    };
    let file = |root| File {
        root,
        path: "out/deep/file".to_owned(),
    };
    let placed = Placed {
        hash: [3; 32],
        name: "name".to_owned(),
        size: 9,
        path: "a/b".to_owned(),
        executable: true,
    };
    let asks = [
        Ask::Look,
        Ask::Offer {
            name: "input".to_owned(),
            manifest: manifest.clone(),
        },
        Ask::Piece {
            number: 2,
            bytes: vec![7; 100],
        },
        Ask::Enter {
            directory: "job-12ab".to_owned(),
            lease: 3600,
            silence: 60,
        },
        Ask::Link(placed.clone()),
        Ask::Deliver(placed),
        Ask::MakeDirectory(file(Root::Job)),
        Ask::List(file(Root::Site)),
        Ask::Sum(file(Root::Job)),
        Ask::Read(file(Root::Site), 4),
        Ask::Remove(file(Root::Site)),
        Ask::Cache(CacheVerb::Limit(1 << 30)),
        Ask::Libraries(vec!["libx.so.1".to_owned()]),
        Ask::Meter(vec![0; 50]),
        Ask::Dial {
            addresses: vec!["10.0.0.1".to_owned()],
            port: 4000,
            token: [5; 32],
        },
    ];
    let mut bodies: Vec<Vec<u8>> = asks.iter().map(|ask| ask.encode()[4..].to_vec()).collect();
    bodies.extend(answers(manifest).iter().map(|answer| answer.encode()[4..].to_vec()));
    bodies
}

fn answers(manifest: Manifest) -> Vec<Answer> {
    vec![
        Answer::Hello {
            version: 2,
            host: "h".to_owned(),
            architecture: "x86_64".to_owned(),
        },
        Answer::Failed("no space".to_owned()),
        Answer::Missing(vec![0, 2]),
        Answer::Got(1),
        Answer::Path("/home/me/x".to_owned()),
        Answer::Entries(vec![Entry {
            path: "a".to_owned(),
            kind: EntryKind::File,
            size: 1,
            executable: false,
        }]),
        Answer::Sum(manifest),
        Answer::Data(vec![1; 40]),
        Answer::Busy,
        Answer::Cached {
            limit: 1 << 30,
            files: vec![Cached {
                name: "x".to_owned(),
                hash: [6; 32],
                size: 3,
                age: 5,
                used: true,
            }],
        },
        Answer::Names(vec!["n".to_owned()]),
        Answer::Facts(Box::new(Facts {
            host: "lab".to_owned(),
            processors: 4,
            schedulers: vec![Scheduler::Slurm],
            queues: vec![Queue {
                scheduler: Scheduler::Slurm,
                name: "debug".to_owned(),
                nodes: 2,
                cores: 16,
                free: 4,
                memory: 0,
                limit: 3600,
                running: 1,
                pending: 0,
                wait: Queue::UNKNOWN,
                open: true,
                usual: true,
            }],
            mpis: vec![Named {
                name: "mpicc".to_owned(),
                text: "MPICH".to_owned(),
            }],
            ..Facts::default()
        })),
        Answer::Listening {
            port: 1,
            token: [7; 32],
        },
        Answer::Measured {
            round_trip: 1_000_000,
            rate: Some(Rate::bare(125_000_000)),
            address: "10.0.0.1".to_owned(),
        },
    ]
}

/// What other commands ask of a running job, and its answers; commands that run at another site.
pub(crate) fn control(body: &[u8]) {
    comes_back!(Request, body);
    comes_back!(Reply, body);
    comes_back!(Begin, body);
    comes_back!(Said, body);
}

pub(crate) fn control_bodies() -> Vec<Vec<u8>> {
    let requests = [
        Request::Status,
        Request::Signal {
            number: 10,
            site: "lab+1".into(),
        },
        Request::End,
        Request::Edit {
            site: "a".to_owned(),
            edit: Edit::Substitute("b:4".to_owned()),
        },
        Request::Edit {
            site: "a".to_owned(),
            edit: Edit::Drop,
        },
    ];
    let replies = [
        Reply::Done,
        Reply::Refused("no".to_owned()),
        Reply::Status {
            committed: true,
            subjobs: vec![Standing {
                name: "a".to_owned(),
                state: "active".to_owned(),
                detail: String::new(),
                processes: 3,
                starts: 9,
                since: 7,
            }],
            joined: vec![Joined {
                ranks: vec![0, 2],
                with: vec![Group {
                    job: "tank".into(),
                    world: [1; 16],
                    site: "lab".to_owned(),
                    host: "n1".to_owned(),
                    processes: 4,
                }],
            }],
        },
    ];
    let requests = requests.iter().map(|request| request.encode()[4..].to_vec());
    let begin = Begin {
        directory: "isthmus-jobs/1".to_owned(),
        words: vec!["ps".to_owned()],
        environment: vec![("A".to_owned(), "b".to_owned())],
    };
    let relayed = [
        begin.encode(),
        Said::Errors(b"no\n".to_vec()).encode(),
        Said::Ended(1).encode(),
    ];
    let relayed = relayed.map(|frame| frame[4..].to_vec());
    requests
        .chain(relayed)
        .chain(replies.iter().map(|reply| reply.encode()[4..].to_vec()))
        .collect()
}

/// The sites file.
pub(crate) fn sites(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(errors) = catalogue::parse(text, "sites.toml") {
        assert!(!errors.to_string().is_empty());
    }
}

pub(crate) fn site_texts() -> Vec<Vec<u8>> {
    [
        "[site.lab]\ncontact = \"me@lab\"\nscheduler = \"slurm\"\nqueue = \"debug\"\naccount = \"x\"\nlan = \"campus\"\n",
        "# mine\n[site.c1]\ncontact = \"c1\"\nsetup = [\"module load x\"]\nenvironment = { COLOUR = \"red\" }\nmpi = \"mpiexec\"\nports = \"4000-4100\"\n[site.c1.found]\narchitecture = \"x86_64\"\ncores = 8\n",
        "[site.x]\nscheduler = \"slrum\"\nqueeu = \"y\"\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// What the tools of a machine print when it is looked at, and the language of `--select`.
pub(crate) fn discovery_texts() -> Vec<Vec<u8>> {
    [
        "debug*|up|1:00:00|2|4/12/0/16|7900+\nlong|down|7-00:00:00|1|8/0/0/8|64000\n",
        "MemTotal:       16 kB\nSwapTotal: 0 kB\n",
        "0.5 0.25 0.1 2/300 4000\n",
        "cores>=64 && rtt(home)<30ms || !(site == lab) && memory > 4GiB",
        "QUEUENAME CQLOAD USED RES AVAIL TOTAL\nall.q 0.1 0 0 16 16\n",
        "nfs4 /home/me rw 0 0\next4 / rw 0 0\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// A program and its shared libraries, and the remembered hashes.
pub(crate) fn staged_files() -> Vec<Vec<u8>> {
    let own = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let head = own[..own.len().min(4096)].to_vec();
    vec![head, vec![0; 64], b"#!/bin/sh\n".to_vec()]
}
