// SPDX-License-Identifier: Apache-2.0
//! Spawning (MPI 5.0 section 11.8). What the standard makes significant at the root alone is looked at there only.
//!
//! The root asks the launcher, which answers when the children are in MPI_Init. They meet their parents before MPI_Init
//! returns: the two roots talk through the launcher. Where it was started for the children alone, it does not know the
//! parents: then the root opens a port before it asks, to which the children connect.

use std::ffi::{OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_boot::{AskError, Helper, Leader, Running};
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_core::joining::Exchange;
use isthmus_core::world::World;
use isthmus_core::{joining, members};
use isthmus_engine::{Engine, goes_on, set_goes_on};
use isthmus_wire::question::{Ask, CARRIED_BY_LAUNCHER, MAX_PARTS, Said, SpawnProgram, THROUGH_LAUNCHER};
use isthmus_wire::word;

use crate::apart::{self, Connecting};
use crate::c::{In, Out, Text, Words};
use crate::call::call_on;
use crate::comm::{adopt, give, intra, root_of};
use crate::{info, process};

/// How long a child waits until its parents accept: they have to come to MPI_Comm_spawn all.
const PATIENCE: Duration = Duration::from_secs(300);
/// Longest file of the key `file`, bytes.
const MAX_FILE: u64 = 64 << 10;

/// What came of it, for each part: how many processes were wanted at most, and how many there are.
struct Outcome {
    wanted: Vec<u32>,
    started: std::result::Result<Vec<u32>, Error>,
    /// The name of their world, at the root.
    world: Option<[u8; 16]>,
    /// The launcher that was started for them, likewise.
    helper: Option<Mutex<Helper>>,
    /// Whether the job goes on when one of them is lost.
    goes_on: bool,
    /// Whether the launcher carries what they and their parents cannot send directly.
    carried: bool,
}

/// What the root asks for. Errors of arguments are told to all.
fn at_root(port: &str, parts: &[SpawnProgram]) -> Outcome {
    let wanted = parts.iter().map(|part| part.processes).collect();
    let ask = Ask::Spawn {
        port: port.to_owned(),
        parts: parts.to_vec(),
    };
    let (mut world, mut helper, mut goes_on, mut carried) = (None, None, false, false);
    let answer = process::underneath().map(|running| match running.ask(ask.clone()) {
        Err(AskError::NoLauncher) => Helper::start(ask).map(|(started, said)| {
            helper = Some(Mutex::new(started));
            said
        }),
        answer => answer.map_err(|why| why.to_string()),
    });
    let started = match answer {
        Ok(Ok(Said::Started(started))) => {
            world = Some(started.world);
            goes_on = started.goes_on;
            carried = started.carried;
            Ok(started.processes)
        }
        Ok(Ok(_)) => Err("the launcher answered what was not asked; please report this".to_owned()),
        Ok(Err(why)) => Err(why),
        Err(error) => Err(error.message),
    };
    Outcome {
        wanted,
        started: started.map_err(|why| Error::new(abi::MPI_ERR_SPAWN, why)),
        world,
        helper,
        goes_on,
        carried,
    }
}

impl Outcome {
    /// For the others of the communicator.
    fn encode(&self) -> Vec<u8> {
        let mut w = isthmus_wire::codec::Writer::new(u8::from(self.started.is_ok()));
        w.u8(u8::from(self.goes_on)).u8(u8::from(self.carried));
        let number = |w: &mut isthmus_wire::codec::Writer, n: &u32| {
            w.u32(*n);
        };
        w.list(&self.wanted, number);
        match &self.started {
            Ok(started) => w.list(started, number),
            Err(error) => w.u32(error.class as u32).text(&error.to_string()),
        };
        w.into_body()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = isthmus_wire::codec::Reader::new(bytes);
        let well = r.u8("well").ok()? != 0;
        let goes_on = r.u8("goes on").ok()? != 0;
        let carried = r.u8("carried").ok()? != 0;
        let wanted = r.list("wanted", |r| r.u32("number")).ok()?;
        let started = match well {
            true => Ok(r.list("started", |r| r.u32("number")).ok()?),
            false => Err(Error::new(r.u32("class").ok()? as i32, r.text("why").ok()?)),
        };
        Some(Self {
            wanted,
            started,
            world: None,
            helper: None,
            goes_on,
            carried,
        })
    }

    /// Whether the children still can come.
    fn lives(&self, world: &World) -> Result<()> {
        let helper = self.helper.as_ref().and_then(|helper| lock(helper).has_ended());
        let died = || self.world.and_then(|children| joining::death_in(world, children));
        match helper.or_else(died) {
            Some(why) => fail!(
                abi::MPI_ERR_SPAWN,
                "a process was lost before it met its parents: {why}"
            ),
            None => Ok(()),
        }
    }

    /// For how many processes there are codes.
    fn wanted(&self) -> usize {
        self.wanted.iter().map(|&wanted| wanted as usize).sum()
    }

    /// One code for each process that was wanted. It is the program that has memory for so many, if anybody.
    fn codes(&self) -> impl Iterator<Item = c_int> {
        let started = self.started.as_deref().unwrap_or_default();
        let started = started.iter().copied().chain(std::iter::repeat(0));
        let each = self.wanted.iter().copied().zip(started);
        each.flat_map(|(wanted, started)| {
            (0..wanted).map(move |at| match at < started {
                true => abi::MPI_SUCCESS,
                false => abi::MPI_ERR_SPAWN,
            })
        })
    }
}

fn spawn(
    comm: h::Comm,
    root: c_int,
    codes: Out<c_int>,
    new: Out<h::Comm>,
    wanted: impl FnOnce() -> Vec<u32>,
    parts: impl FnOnce() -> Result<Vec<SpawnProgram>>,
) -> Result<()> {
    give(new, || {
        let (world, comm) = (process::world()?, intra(comm)?);
        let root = root_of(comm, root)?;
        let _connecting = Connecting::begin();
        let mut port = None;
        let mut own = None;
        if comm.rank() == root {
            let opened = parts().and_then(|parts| {
                if !process::underneath()?.has_launcher() {
                    port = Some(isthmus_dynamic::open_inside(world)?);
                }
                Ok(parts)
            });
            own = Some(match opened {
                Ok(parts) => at_root(port.as_deref().unwrap_or_default(), &parts),
                // There is a code for each process that was wanted also where nobody was asked for it.
                Err(error) => Outcome {
                    wanted: wanted(),
                    started: Err(error),
                    world: None,
                    helper: None,
                    goes_on: false,
                    carried: false,
                },
            });
        }
        let joined = together(world, comm, root, own, port.clone(), codes);
        if let Some(port) = port {
            // Nobody else knows it.
            let _ = isthmus_dynamic::close_port(&port);
        }
        process::has_met(world);
        joined.map(Some)
    })
}

fn together(
    world: &World,
    comm: &Comm,
    root: u32,
    own: Option<Outcome>,
    port: Option<String>,
    codes: Out<c_int>,
) -> Result<Arc<Comm>> {
    let bytes = members::tell_content(
        world,
        comm,
        root,
        &own.as_ref().map(Outcome::encode).unwrap_or_default(),
    )?;
    let Some(outcome) = own.or_else(|| Outcome::decode(&bytes)) else {
        fail!(
            abi::MPI_ERR_INTERN,
            "the root described the processes in a way that makes no sense; please report this"
        );
    };
    let mut codes = match codes.is_null() {
        // MPI_ERRCODES_IGNORE
        true => None,
        false => Some(codes.slice("array_of_errcodes", outcome.wanted())?),
    };
    for (place, code) in codes.iter_mut().flat_map(|all| all.iter_mut()).zip(outcome.codes()) {
        *place = code;
    }
    if let Err(error) = &outcome.started {
        return Err(error.clone());
    }
    if outcome.goes_on {
        // Who sees a loss before the launcher tells of it has to take it for one that the job survives.
        set_goes_on(&mut world.engine().lock().core, true);
    }
    if outcome.carried {
        carry(world);
    }
    let met = match port {
        Some(port) => isthmus_dynamic::accept_while(world, comm, root, || Ok(port), || outcome.lives(world)),
        // Not at the root it is not looked at.
        None => joining::join(world, comm, root, || {
            let children = outcome.world.unwrap_or_default();
            let awaited = |engine: &mut Engine| match engine.core.lost_of(&comm.channel().members) {
                Some(lost) => Err((&lost).into()),
                None => outcome.lives(world),
            };
            Through::launcher(process::underneath()?, children, awaited)
        }),
    };
    if let Some(helper) = outcome.helper {
        keep(helper);
    }
    if let (Err(_), Some(all)) = (&met, codes) {
        all.fill(abi::MPI_ERR_SPAWN);
    }
    met.map_err(|error| match error.class {
        abi::MPIX_ERR_PROC_FAILED | abi::MPIX_ERR_REVOKED => error,
        _ => Error::new(abi::MPI_ERR_SPAWN, error.message),
    })
}

/// The launcher carries from now on what cannot go directly.
fn carry(world: &World) {
    if let Some(reacher) = joining::reacher(world) {
        reacher.carry();
    }
}

/// The other root, through the launcher of both.
struct Through<F> {
    leader: Leader<'static>,
    awaited: F,
}

impl<F: FnMut(&mut Engine) -> Result<()>> Through<F> {
    fn launcher<'e>(running: &'static Running, children: [u8; 16], awaited: F) -> Result<Box<dyn Exchange + 'e>>
    where
        F: 'e,
    {
        let leader = running.leader(children).map_err(unreached)?;
        Ok(Box::new(Self { leader, awaited }))
    }
}

impl<F: FnMut(&mut Engine) -> Result<()>> Exchange for Through<F> {
    fn exchange(&mut self, mine: &[u8]) -> Result<Vec<u8>> {
        self.leader.exchange(mine, &mut self.awaited, unreached)
    }

    fn conclude(&mut self, mine: &[u8]) -> Result<Vec<u8>> {
        // The launcher of both knows whether the other one can still answer.
        self.leader.exchange(mine, |_| Ok(()), unreached)
    }
}

fn unreached(error: AskError) -> Error {
    Error::new(abi::MPI_ERR_SPAWN, format!("parents and children cannot meet: {error}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Launchers of what was spawned without one. Those that have ended are looked after when another one begins.
static HELPERS: Mutex<Vec<Mutex<Helper>>> = Mutex::new(Vec::new());

fn keep(helper: Mutex<Helper>) {
    let mut all = lock(&HELPERS);
    all.retain(|helper| lock(helper).has_ended().is_none());
    all.push(helper);
}

fn part(command: Text, arguments: Words, most: c_int, hints: h::Info) -> Result<SpawnProgram> {
    let program = command.bytes("command", abi::MPI_ERR_SPAWN)?;
    if program.is_empty() {
        fail!(
            abi::MPI_ERR_SPAWN,
            argument("command"),
            "is empty, expected the name of a program"
        );
    }
    let Ok(processes) = u32::try_from(most) else {
        fail!(abi::MPI_ERR_ARG, argument("maxprocs"), "is {most}, expected 0 or more");
    };
    Ok(SpawnProgram {
        program: word::from_bytes(program),
        arguments: arguments.all().into_iter().map(word::from_bytes).collect(),
        processes,
        keys: keys(&info::find(hints)?)?,
    })
}

/// What the keys say, and those of the file that the key `file` names: lines KEY = VALUE.
fn keys(info: &Info) -> Result<Vec<(String, String)>> {
    let mut keys = Vec::new();
    if let Some(file) = info.get("file")? {
        let text = read(Path::new(OsStr::from_bytes(&word::to_bytes(file))))
            .map_err(|why| Error::new(abi::MPI_ERR_SPAWN, format!("file = '{file}': {why}")))?;
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let Some((key, value)) = line.split_once('=') else {
                fail!(
                    abi::MPI_ERR_SPAWN,
                    "file = '{file}': the line '{line}' is not of the form KEY = VALUE"
                );
            };
            keys.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    // What the program itself says counts more, and comes last.
    for at in 0..info.len() {
        let key = info.nth_key(at)?.to_owned();
        let value = info.get(&key)?.unwrap_or_default().to_owned();
        keys.push((key, value));
    }
    Ok(keys)
}

fn read(path: &Path) -> std::result::Result<String, String> {
    let length = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    if length > MAX_FILE {
        return Err(format!("it has {length} bytes, at most {MAX_FILE} are read"));
    }
    std::fs::read(path)
        .map(|text| word::from_bytes(&text))
        .map_err(|e| e.to_string())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_spawn(
    command: Text,
    arguments: Words,
    most: c_int,
    hints: h::Info,
    root: c_int,
    comm: h::Comm,
    new: Out<h::Comm>,
    codes: Out<c_int>,
) -> c_int {
    call_on("MPI_Comm_spawn", comm, || {
        let wanted = || u32::try_from(most).into_iter().collect();
        spawn(comm, root, codes, new, wanted, || {
            Ok(vec![part(command, arguments, most, hints)?])
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_spawn_multiple(
    count: c_int,
    commands: In<Text>,
    arguments: In<Words>,
    most: In<c_int>,
    hints: In<h::Info>,
    root: c_int,
    comm: h::Comm,
    new: Out<h::Comm>,
    codes: Out<c_int>,
) -> c_int {
    call_on("MPI_Comm_spawn_multiple", comm, || {
        let parts = usize::try_from(count).ok();
        let parts = parts.filter(|count| (1..=MAX_PARTS).contains(count));
        let wanted = || {
            let all = parts.and_then(|count| most.slice("array_of_maxprocs", count).ok());
            let all = all.unwrap_or_default().iter();
            all.map(|&most| u32::try_from(most).unwrap_or(0)).collect()
        };
        spawn(comm, root, codes, new, wanted, || {
            let Some(count) = parts else {
                fail!(
                    abi::MPI_ERR_ARG,
                    argument("count"),
                    "is {count}, expected 1 to {MAX_PARTS}"
                );
            };
            let commands = commands.slice("array_of_commands", count)?;
            let most = most.slice("array_of_maxprocs", count)?;
            let hints = hints.slice("array_of_info", count)?;
            let arguments = match arguments.address() {
                // MPI_ARGVS_NULL
                0 => None,
                _ => Some(arguments.slice("array_of_argv", count)?),
            };
            let words = |at: usize| arguments.map_or_else(Words::none, |all| all[at]);
            (0..count)
                .map(|at| part(commands[at], words(at), most[at], hints[at]))
                .collect()
        })
    })
}

/// At the end of MPI_Init: a process that was spawned connects to those who await it.
pub(crate) fn meet_parents(running: &'static Running, comm_world: &Comm) -> Result<()> {
    let world = running.world();
    let Some(port) = isthmus_settings::PARENT_PORT.read(std::env::var_os) else {
        return Ok(());
    };
    // SAFETY: called once, inside MPI_Init, which the standard lets only one thread call; programs that change the
    // environment in other threads meanwhile race with their own getenv as well.
    unsafe { std::env::remove_var(isthmus_settings::PARENT_PORT.name) };
    let is_carried = port == CARRIED_BY_LAUNCHER;
    if is_carried {
        carry(world);
    }
    let accepted = !is_carried && port != THROUGH_LAUNCHER;
    let met = match accepted {
        true => isthmus_dynamic::connect(world, comm_world, 0, || Ok((port, PATIENCE))),
        false => joining::join(world, comm_world, 0, || {
            Through::launcher(running, joining::name(world).world, |engine: &mut Engine| {
                let lost = engine.core.lost_of(&comm_world.channel().members);
                lost.map_or(Ok(()), |lost| Err((&lost).into()))
            })
        }),
    };
    match met {
        Ok(parents) => {
            process::has_met(world);
            adopt(parents);
            apart::begin(running, accepted);
        }
        // One of the two groups has lost somebody, which is no reason to end what goes on.
        Err(error) if goes_on(&world.engine().lock().core) => process::end_alone(&format!(
            "this process ends, since it cannot meet those that have spawned it: {error}"
        )),
        Err(error) => return Err(error),
    }
    Ok(())
}
