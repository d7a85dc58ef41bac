// SPDX-License-Identifier: Apache-2.0
//! Files of processes of two jobs that have met, and a process of another job that asks for what it may not have. Each
//! job is one process, with an engine of its own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::thread;

use isthmus_abi::constants as abi;
use isthmus_core::comm::{self, Comm, Whereabouts};
use isthmus_core::error::{Error, Result};
use isthmus_core::info::Info;
use isthmus_core::inter;
use isthmus_core::joining::{self, Exchange};
use isthmus_core::world::World;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Mode, ReceiveBuffer, Request, SendBuffer, register_later, with_port};
use isthmus_io::{Buffer, Calls, File, Position, Scope, Source, Target};
use isthmus_transport::memory::{Options, network};
use isthmus_wire::file::{ANSWER, Answer, Call, MAX_TEXT, Open, Path as Named};
use isthmus_wire::frame::{Header, Kind, protocol};

#[path = "../../mpi-core/tests/jobs/mod.rs"]
mod jobs;

use jobs::{Hub, pipes};

const ANSWERS: i32 = 1 << 30;
const ERROR: &str = "nobody is lost";

/// A process of job 1 or 2, connected with the other one.
struct Side {
    job: u8,
    world: &'static World,
    merged: Arc<Comm>,
    both: Arc<Barrier>,
}

impl Side {
    fn open(&self, path: &Path, amode: i32) -> Opened {
        let given = Ok((path.as_os_str().as_encoded_bytes(), Info::default()));
        let (file, service) = File::open(self.world, &self.merged, given, amode, Scope::Job).expect("it is opened");
        Opened { file, service }
    }

    /// The other process, by its rank among both.
    fn other(&self) -> u32 {
        1 - u32::from(self.job - 1)
    }

    fn all(&self) -> Whereabouts<'static> {
        Whereabouts::of(self.world, &self.merged)
    }

    /// Nobody waits for this process without its progress.
    fn meet(&self) {
        let engine = self.world.engine();
        let both = self.both.clone();
        let waits = thread::spawn(move || {
            both.wait();
        });
        while !waits.is_finished() {
            engine.lock().progress();
            thread::yield_now();
        }
    }
}

/// Runs both jobs, each with a process on a thread.
fn two_jobs(act: fn(&Side, &Path)) {
    // Once for all tests here.
    isthmus_io::allow(&[std::env::temp_dir()]);
    let place = tempfile::tempdir().expect("a directory");
    let (hub, mut pipes, both) = (Hub::default(), pipes(), Arc::new(Barrier::new(2)));
    let threads = [1_u8, 2].map(|job| {
        let (mut ends, _) = network(1, Options::default()).expect("eventfd");
        let end = ends.remove(0);
        let pipe = pipes[usize::from(job - 1)].take();
        let (hub, both, place) = (hub.clone(), both.clone(), place.path().to_owned());
        thread::spawn(move || {
            let calls = Calls::default();
            let machine = calls.machine();
            let world = jobs::start((job, 0, 1), end, &hub, |engine| {
                register_later(engine, protocol::FILES, machine);
            });
            let world: &'static World = Box::leak(Box::new(world));
            calls.begin(world);
            let to_other = || match &pipe {
                Some(pipe) => Ok(Box::new(pipe) as Box<dyn Exchange>),
                None => Err(Error::new(abi::MPI_ERR_INTERN, "not the leader")),
            };
            let everybody = comm::of_world(world);
            let inter = joining::join(world, &everybody, 0, to_other).expect(ERROR);
            let merged = inter::merge(world, &inter, job == 2).expect(ERROR);
            let side = Side {
                job,
                world,
                merged,
                both,
            };
            act(&side, &place);
            side.meet();
        })
    });
    for thread in threads {
        thread.join().expect("all is as it should be");
    }
}

struct Opened {
    file: Arc<File>,
    service: Option<Request>,
}

impl Opened {
    fn write(&self, place: Position, together: bool, content: &[u8]) -> Result<u64> {
        let (memory, byte) = (OwnMemory::with(content), Datatype::of(Basic::Byte));
        let length = content.len() as u64;
        let source = Source::new(memory.reading(), &byte, length, None)?;
        self.file.access(place, together, Ok(Buffer::Write(source, length)))
    }

    fn read(&self, place: Position, together: bool, length: usize) -> Result<Vec<u8>> {
        let (memory, byte) = (OwnMemory::with(&vec![0; length]), Datatype::of(Basic::Byte));
        let target = Target::new(memory.memory(), &byte, length as u64, None)?;
        self.file.access(place, together, Ok(Buffer::Read(target)))?;
        Ok(memory.content().clone())
    }

    fn close(self) {
        let closing = self.file.begin_close().expect("nothing is under way");
        closing.end(self.service).expect("it is closed");
    }
}

const CREATE: i32 = abi::MPI_MODE_RDWR | abi::MPI_MODE_CREATE;

/// Every way in which accesses of both meet. `path`: how this process names it.
fn use_together(side: &Side, path: &Path) {
    let me = side.job - 1;
    let file = side.open(path, CREATE);
    assert_eq!(file.file.group().size(), 2);
    let block = |of: u8| vec![b'a' + of; 1000];
    file.write(Position::At(i64::from(me) * 1000), true, &block(me))
        .expect("it is written");
    let theirs = file.read(Position::At(i64::from(1 - me) * 1000), true, 1000);
    assert_eq!(theirs, Ok(block(1 - me)));
    // Alone, while the other one is in no call.
    side.meet();
    if me == 1 {
        file.write(Position::At(500), false, b"late").expect("it is written");
        assert_eq!(file.file.size(), Ok(2000));
    }
    side.meet();
    assert_eq!(file.read(Position::At(499), false, 6), Ok(b"alatea".to_vec()));
    side.meet();
    file.file.set_size(0).expect("it may be changed");
    file.write(Position::Ordered, true, &[me; 3]).expect("it is written");
    side.meet();
    if me == 1 {
        file.write(Position::Shared, false, b"end").expect("it is written");
    }
    side.meet();
    assert_eq!(file.file.position_shared(), Ok(9));
    side.meet();
    file.file.set_atomicity(true).expect("the disk can lock");
    assert_eq!(
        file.read(Position::At(0), false, 9),
        Ok(b"\0\0\0\x01\x01\x01end".to_vec())
    );
    side.meet();
    file.close();
}

#[test]
fn both_jobs_use_one_file_that_both_see() {
    two_jobs(|side, place| use_together(side, &place.join("file")));
}

/// To the second job the name leads nowhere: it goes through the first one.
#[test]
fn who_does_not_see_the_file_uses_it_through_the_other_job() {
    two_jobs(|side, place| {
        let names = ["file", "nowhere/file"];
        use_together(side, &place.join(names[usize::from(side.job - 1)]));
        assert!(place.join("file").exists());
    });
}

/// What a liar asks, past the calls of MPI. `among`: those whom it names.
fn ask(side: &Side, among: u32, call: &Call) -> std::result::Result<Answer, String> {
    const NUMBER: i32 = 7;
    let (all, bytes) = (side.all(), call.encode());
    let token = u64::from(among) << 32 | NUMBER as u64;
    let knock = Header::control(Kind::Protocol, token, bytes.len() as u64, 0);
    let host = all.peer(side.other()).expect("both are there");
    let (channel, engine) = (all.files(), side.world.engine());
    with_port(&mut engine.lock(), protocol::FILES, |port| port.tell(host, knock));
    let data = OwnMemory::with(&bytes);
    let buffer = SendBuffer::contiguous(data.reading(), 0, bytes.len() as u64);
    let sent = engine
        .lock()
        .isend(&channel, side.other(), NUMBER, Mode::Standard, buffer);
    let told = OwnMemory::new(0, (ANSWER + MAX_TEXT) as isize);
    let buffer = ReceiveBuffer::contiguous(told.memory(), 0, (ANSWER + MAX_TEXT) as u64);
    let answer = engine
        .lock()
        .irecv(&channel, Some(side.other()), Some(ANSWERS | NUMBER), buffer);
    let done = side.world.wait(answer).map_err(|error| error.message)?;
    side.world.wait(sent).map_err(|error| error.message)?;
    Ok(Answer::decode(&told.content()[..done.bytes as usize]).expect("an answer"))
}

fn named(path: &Path) -> Named {
    Named {
        below_home: false,
        bytes: path.as_os_str().as_encoded_bytes().to_vec(),
    }
}

fn opening(side: &Side, context: u32, path: &Path) -> Call {
    Call::Open(Open {
        amode: CREATE,
        permissions: 0o600,
        context,
        members: vec![(1 - side.other(), 1)],
        path: named(path),
    })
}

fn is_refused(answer: std::result::Result<Answer, String>, word: &str) {
    let answer = answer.expect("there is an answer");
    assert_eq!(answer.class, abi::MPI_ERR_ACCESS as u32, "{answer:?}");
    assert!(answer.text.contains(word), "{answer:?}");
}

/// The directory is one that processes of other sites of the job may use.
#[test]
fn another_job_has_nothing_opened_or_deleted_that_was_not_opened_with_it() {
    two_jobs(|side, place| {
        let [mine, none, shared] = ["mine", "none", "shared"].map(|name| place.join(name));
        let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("both-{}", std::process::id()));
        if side.job == 1 {
            std::fs::write(&mine, "mine").expect("a file");
        }
        side.open(&shared, CREATE).close();
        side.open(&outside, CREATE).close();
        side.meet();
        if side.job == 2 {
            let (among, own) = (side.all().number(), side.all().alone().expect("a context"));
            let context = own.channel().context.number();
            for path in [&mine, &none] {
                is_refused(ask(side, among, &opening(side, context, path)), "together");
                is_refused(ask(side, among, &Call::Delete(named(path))), "together");
            }
            for way in ["/mine", "/shared/../mine", "/./shared/../mine"] {
                let path = PathBuf::from(format!("{}{way}", place.display()));
                is_refused(ask(side, among, &Call::Delete(named(&path))), "together");
            }
            is_refused(ask(side, among, &opening(side, context, &outside)), "--share");
            is_refused(ask(side, among, &Call::Delete(named(&outside))), "--share");
            assert!(mine.exists() && !none.exists() && outside.exists());
            // What it has a right to.
            assert_eq!(
                ask(side, among, &opening(side, context, &shared)),
                Ok(Answer::default())
            );
            assert_eq!(ask(side, among, &Call::Delete(named(&shared))), Ok(Answer::default()));
            assert!(!shared.exists());
            std::fs::remove_file(&outside).expect("it is there");
        }
        side.meet();
    });
}

#[test]
fn who_names_others_than_it_has_met_or_a_context_of_others_is_given_up() {
    two_jobs(|side, place| {
        let shared = place.join("shared");
        side.open(&shared, CREATE).close();
        if side.job == 2 {
            let own = side.all().alone().expect("a context");
            let among = side.all().number();
            let call = opening(side, own.channel().context.number(), &shared);
            let lost = ask(side, among + (1 << 20), &call).expect_err("it is given up");
            assert!(lost.contains("lost"), "{lost}");
        }
    });
    two_jobs(|side, place| {
        let shared = place.join("shared");
        side.open(&shared, CREATE).close();
        if side.job == 2 {
            // That of the communicator of both.
            let (among, context) = (side.all().number(), side.merged.channel().context.number());
            let lost = ask(side, among, &opening(side, context, &shared)).expect_err("it is given up");
            assert!(lost.contains("lost"), "{lost}");
        }
    });
}
