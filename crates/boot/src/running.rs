// SPDX-License-Identifier: Apache-2.0
//! A running MPI process.

mod ending;
mod launcher;
mod ways;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use isthmus_core::faults::set_asker;
use isthmus_core::joining::set_reacher;
use isthmus_core::world::Measuring;
use isthmus_core::world::World;
use isthmus_engine::{Engine, Maker, NativeComm, Policy, Processes, Setup, Shared, register_later, set_goes_on};
use isthmus_identity::derived;
use isthmus_lock::OneAtATime;
use isthmus_net::{ArrivalHook, Gatekeeper, Listener, Prober};
use isthmus_topology::{LinkEstimates, Topology};
use isthmus_vendor::Vendor;
use isthmus_wire::boot::{self, Counters};
use isthmus_wire::place::{Node, Place, PlaceTable, Representation, Subjob};
use isthmus_wire::waiting::Waiting;

use self::ways::{Native, Offer, Ways};
use crate::BootError;
use crate::abroad;
use crate::agreeing;
use crate::listening::listen;
use crate::origin::Origin;
use crate::rendezvous::{Agent, Invitation, path_of};
use crate::routes::{peer_of, way};
use crate::saying::say;
use crate::survey::{self, Survey};
use crate::trace::Recorder;
use crate::traffic;
use crate::vendor;

/// What MPI_Init makes and MPI_Finalize ends.
pub struct Running {
    world: Arc<World>,
    /// `None`: a world of one, started by hand.
    agent: Option<Arc<Mutex<Agent>>>,
    /// The thread that makes progress while the program computes.
    keeper: Mutex<Option<JoinHandle<()>>>,
    host: String,
    /// For messages: `rank 3 (site lab)`.
    name: String,
    /// What is to be measured before communication begins.
    survey: Option<(Survey, Prober)>,
    /// The vendor MPI, if its job is on several nodes.
    apart: Option<Mutex<Vendor>>,
    /// Knows what passes to other sites.
    prober: Option<Prober>,
    /// Sends what is recorded, when the job is traced.
    recorder: Mutex<Option<Recorder>>,
    /// Directories and files of this machine that processes of other sites reach.
    reached: Vec<PathBuf>,
}

/// Who hears a protocol beside messages.
pub struct Hearer {
    /// Its number ([`isthmus_wire::frame::protocol`]).
    pub protocol: u8,
    /// Makes what takes its frames, when it is needed.
    pub make: Maker,
}

fn register(engine: &mut Engine, hearers: Vec<Hearer>) {
    for Hearer { protocol, make } in hearers {
        register_later(engine, protocol, make);
    }
}

fn shared(engine: Engine, policy: Policy, promise: Option<OneAtATime>) -> Shared {
    match promise {
        Some(promise) => Shared::for_one_at_a_time(engine, policy, promise),
        None => Shared::new(engine, policy),
    }
}

impl Running {
    /// Becomes an MPI process. Without a promise several threads may call MPI at the same time. `single`: no other
    /// thread of the program does. `hearers`: who hears protocols beside messages.
    pub fn start(promise: Option<OneAtATime>, single: bool, hearers: Vec<Hearer>) -> Result<Self, BootError> {
        match crate::check_stack().and_then(|()| Origin::from_environment())? {
            Origin::Nobody => Self::alone(promise, hearers),
            Origin::Agent(invitation) => Self::invited(&invitation, promise, single, hearers),
        }
    }

    fn alone(promise: Option<OneAtATime>, hearers: Vec<Hearer>) -> Result<Self, BootError> {
        let host = host_name();
        let places = PlaceTable {
            subjobs: vec![Subjob {
                name: "home".into(),
                lan: "home".into(),
                first_rank: 0,
                count: 1,
                programs: vec![(0, 0)],
            }],
            nodes: vec![Node {
                host: host.clone(),
                addresses: vec![],
                subjob: 0,
                processes: 1,
                processors: 0,
            }],
            places: vec![Place {
                subjob: 0,
                node: 0,
                port: 0,
                slot: 0,
                representation: representation(),
                vendor: None,
            }],
        };
        let setup = Setup {
            me: peer_of(0),
            processes: Processes::of("", 1),
            transports: vec![],
            routes: vec![0],
            levels: vec![4],
            representations: vec![],
        };
        let policy = Policy {
            threads: promise.is_none(),
            guests: false,
        };
        let mut engine = Engine::new(setup);
        register(&mut engine, hearers);
        let engine = shared(engine, policy, promise);
        let id = abroad::random().map_err(BootError::System)?;
        let world = Arc::new(World::new(0, Arc::new(places), engine).with_id(id));
        set_reacher(&world, abroad::Sockets::of(&world, None, None));
        set_asker(&world, None);
        Ok(Self {
            world,
            agent: None,
            keeper: Mutex::new(None),
            host,
            name: "this process".into(),
            survey: None,
            apart: None,
            prober: None,
            recorder: Mutex::new(None),
            reached: Vec::new(),
        })
    }

    fn invited(
        invitation: &Invitation,
        promise: Option<OneAtATime>,
        single: bool,
        hearers: Vec<Hearer>,
    ) -> Result<Self, BootError> {
        let threads = promise.is_none();
        let Met {
            agent,
            mut told,
            offer,
            vendor,
        } = meet(invitation, single)?;
        let places = Arc::new(std::mem::take(&mut told.places));
        let representations = representations(&places)?;
        let (me, topology) = (told.rank, Topology::new(&places));
        let measure = told.links.measure;
        let estimates = LinkEstimates::from_wire(std::mem::take(&mut told.links))
            .map_err(|e| BootError::agent(format!("its message about links is invalid: {e:?}")))?;
        let processes = Processes::of(&told.job, topology.size());
        let ways = Ways::open(&told, &places, &topology, (offer, vendor), &processes, threads)?;
        let (far, inside) = (ways.leave_the_node(), ways.stay_inside());
        let prober = ways.wide.as_ref().map(|(_, prober)| prober.clone());
        let survey = prober
            .clone()
            .filter(|_| measure)
            .and_then(|p| Some((Survey::plan(&topology, &estimates, me)?, p)));
        let mut engine = Engine::new(Setup {
            me: peer_of(me),
            processes,
            routes: (0..topology.size())
                .map(|peer| ways.route(way(&topology, me, peer)))
                .collect(),
            levels: (0..topology.size())
                .map(|peer| topology.level_between(me, peer).index() as u8)
                .collect(),
            transports: ways.transports.into_iter().map(|(_, t)| t).collect(),
            representations,
        });
        register(&mut engine, hearers);
        let (engine, native_world) = with_native(engine, ways.native, places.places.len())?;
        let measuring = prober
            .clone()
            .map(|prober| -> Measuring { Box::new(move |settled| survey::measured(&prober, &topology, me, settled)) });
        let node = &places.nodes[places.places[me as usize].node as usize];
        let host = node.host.clone();
        let name = format!("rank {me} ({} on {host})", places.subjobs[node.subjob as usize].name);
        let id = derived(&told.secret, format!("isthmus world {}", told.job).as_bytes());
        let policy = Policy { threads, guests: far };
        let world = World::new(me, places, shared(engine, policy, promise))
            .with_links(estimates, measuring)
            .with_native(native_world)
            .with_id(std::array::from_fn(|at| id[at]))
            .with_title(std::mem::take(&mut told.title));
        let world = Arc::new(world);
        if let Some((hook, prober)) = ways.wide {
            report(&world, &agent, &hook, &prober);
        }
        let recorder = Recorder::start(&world, agent.voice(), prober.clone())?;
        let agent = Arc::new(Mutex::new(agent));
        let gatekeeper = Gatekeeper::of(&told.paths, &told.job, me);
        set_reacher(&world, abroad::Sockets::of(&world, Some(&agent), gatekeeper));
        set_goes_on(&mut world.engine().lock().core, vendor::goes_on());
        listen(&world, &agent)?; // A word that has come says more of losses.
        set_asker(&world, Some(agreeing::Coordinator::of(&world, &agent)));
        // What comes from other sites is the hook's business.
        let keeper = (far && inside).then(|| start_keeper(&world)).transpose()?;
        Ok(Self {
            world,
            agent: Some(agent),
            keeper: Mutex::new(keeper),
            host,
            name,
            survey,
            apart: ways.apart.map(Mutex::new),
            prober,
            recorder: Mutex::new(recorder),
            reached: told.shared.iter().map(|path| path_of(path)).collect(),
        })
    }

    /// What all processes of the job do together before they use any communicator. Afterwards none of them is needed by
    /// others who are still at it.
    pub fn prepare(&self) -> Result<(), BootError> {
        self.survey()?;
        let Some(vendor) = &self.apart else { return Ok(()) };
        // Threads of the library do not use it meanwhile. It blocks, but what its other members still wait for in the
        // survey comes from members: what is agreed on reaches a job once and goes on inside it.
        let _engine = self.world().engine().lock();
        let mut vendor = vendor.lock().unwrap_or_else(PoisonError::into_inner);
        let all = vendor.world();
        vendor.settle(&all).map_err(|e| BootError::System(e.to_string()))
    }

    /// Measures what is not known of the links between local areas, for a bounded time, and agrees on it.
    fn survey(&self) -> Result<(), BootError> {
        let Some((survey, prober)) = &self.survey else {
            return Ok(());
        };
        survey.run(prober, self.world().rank());
        self.world().agree_links(&survey.speakers).map_err(|error| {
            BootError::System(format!(
                "cannot agree with the other sites on what their links do: {error}; with ISTHMUS_LINKS_MEASURE=0 a job \
                 measures nothing when it begins"
            ))
        })
    }

    /// From now on progress is made while the program computes, also in a job on one node: for whoever expects what
    /// nobody here waits for. An error says why that cannot be; then only calls of MPI make progress.
    pub fn keep_progress(&self) -> Result<(), BootError> {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if keeper.is_none() {
            if self.world().engine().lock().underneath().is_there() {
                return Err(BootError::System(
                    "progress while the program computes is not implemented on one node on top of a machine's own MPI in \
                     this version of Isthmus"
                        .into(),
                ));
            }
            if !self.world().engine().invite() {
                return Err(BootError::System(
                    "this system is too old for progress while the program computes: it has no membarrier (Linux \
                     4.14)"
                        .into(),
                ));
            }
            *keeper = Some(start_keeper(&self.world)?);
        }
        self.world().engine().watch();
        Ok(())
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Directories and files of this machine that processes of other sites reach through this one.
    pub fn reached(&self) -> &[PathBuf] {
        &self.reached
    }

    /// From now on the agent is told what this process waits for when nothing has come for a second. `call`: the MPI
    /// function that the calling thread is in.
    pub fn watch(&self, call: fn() -> &'static str) {
        let Some(agent) = &self.agent else { return };
        let voice = agent.lock().unwrap_or_else(PoisonError::into_inner).voice();
        self.world().engine().name_waits(call);
        let (told, speaker) = (Arc::downgrade(&self.world), voice.clone());
        self.world().engine().reports().tell_time(Box::new(move || {
            if let Some(world) = told.upgrade() {
                speaker.mention(&boot::Message::Time(world.engine().reports().time()));
            }
        }));
        self.world().engine().reports().tell_waits(Box::new(move |waits| {
            let waiting = waits.map(|(idle, items, more)| Waiting {
                call: call().to_owned(),
                idle: idle.as_millis().try_into().unwrap_or(u64::MAX),
                items: items.to_vec(),
                more,
            });
            voice.mention(&boot::Message::Waiting(waiting))
        }));
    }

    /// What has passed between this process and all other sites so far.
    pub fn traffic(&self) -> boot::LinkTraffic {
        let mut sum = boot::LinkTraffic::default();
        let passed = self.prober.as_ref().map(Prober::traffic).unwrap_or_default();
        let links = traffic::summary(passed, self.world());
        links.iter().for_each(|link| sum.add(link));
        sum
    }

    /// Whether a launcher has started this process.
    pub fn has_launcher(&self) -> bool {
        self.agent.is_some()
    }

    /// Name of the node, for MPI_Get_processor_name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Ends the job and this process. `code`: exit status of the job.
    pub fn abort(&self, code: i32, reason: &str) -> ! {
        match &self.agent {
            Some(agent) => {
                let text = format!("{}: {reason}", self.name);
                // Without an agent there is nobody left to tell but the person at the terminal.
                if agent
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .abort(code, &text)
                    .is_err()
                {
                    say(&text);
                }
            }
            None => say(reason),
        }
        std::process::exit(code)
    }
}

/// What has come of the rendezvous.
struct Met {
    agent: Agent,
    told: boot::World,
    offer: Offer,
    /// The vendor MPI underneath, which has begun.
    vendor: Option<Vendor>,
}

/// Says hello to the agent, and hears of the world.
fn meet(invitation: &Invitation, single: bool) -> Result<Met, BootError> {
    let offer = match Offer::new() {
        Err(BootError::System(why)) => return Err(Agent::give_up(invitation, representation(), why)),
        offer => offer?,
    };
    let request = match &offer.key {
        Some(key) => key.signing_request().map_err(|e| BootError::System(e.to_string()))?,
        None => vec![],
    };
    let port = offer.listener.as_ref().map_or(0, Listener::port);
    // Where messages leave the node, threads of the library make progress too.
    let (vendor, rank) = vendor::begin(single && offer.listener.is_none())?.unzip();
    let (agent, told) = Agent::join(invitation, port, representation(), rank, request)?;
    Ok(Met {
        agent,
        told,
        offer,
        vendor,
    })
}

/// With the vendor's communicators, and that of all `processes`, if they have one.
fn with_native(
    engine: Engine,
    native: Option<Native>,
    processes: usize,
) -> Result<(Engine, Option<NativeComm>), BootError> {
    let Some(Native { comms, everybody }) = native else {
        return Ok((engine, None));
    };
    let mut engine = engine.with_native(Box::new(comms), everybody);
    if !everybody {
        return Ok((engine, None));
    }
    let peers: Vec<_> = (0..processes as u32).map(peer_of).collect();
    let made = engine.underneath().create(&peers, 0);
    let made = made.map_err(|e| BootError::System(e.to_string()))?;
    Ok((engine, made))
}

/// What comes from other sites makes progress, and what has passed is told to the agent.
fn report(world: &Arc<World>, agent: &Agent, hook: &ArrivalHook, prober: &Prober) {
    let here = Arc::downgrade(world);
    hook.set(Arc::new(move || {
        if let Some(world) = here.upgrade() {
            world.engine().progress_from_thread();
        }
    }));
    let (voice, here) = (agent.voice(), Arc::downgrade(world));
    prober.report(move |passed| {
        if let Some(world) = here.upgrade() {
            voice.mention(&boot::Message::Traffic(traffic::summary(passed, &world)));
            voice.mention(&boot::Message::Time(world.engine().reports().time()));
        }
    });
}

/// Starts the thread that makes progress inside the site while the program computes.
fn start_keeper(world: &Arc<World>) -> Result<JoinHandle<()>, BootError> {
    let world = world.clone();
    let work = move || {
        // Without descriptors for it the program's own threads make progress, and report the lack when they need one.
        let _ = world.engine().keep();
    };
    isthmus_lock::spawn_quiet("isthmus-keeper", work).map_err(|e| {
        BootError::System(format!(
            "failed to start a thread for progress while the program computes: {e}"
        ))
    })
}

/// How the processes represent data; empty if all do as this one.
fn representations(places: &PlaceTable) -> Result<Vec<isthmus_datatype::Representation>, BootError> {
    let own = representation();
    if places.places.iter().all(|place| place.representation == own) {
        return Ok(vec![]);
    }
    let decode = |(rank, place): (usize, &Place)| {
        isthmus_datatype::Representation::decode(place.representation.0).map_err(|error| {
            let host = &places.nodes[place.node as usize].host;
            BootError::System(format!(
                "the processor or compiler of rank {rank} on {host} is of a kind whose data cannot be converted: {error}; run the \
                 job without that machine, or use one version of Isthmus everywhere"
            ))
        })
    };
    places.places.iter().enumerate().map(decode).collect()
}

fn representation() -> Representation {
    Representation(isthmus_datatype::Representation::LOCAL.encode())
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// `ISTHMUS_STATS=1` without a launcher that would print them.
fn print_counters(counters: &Counters) {
    if isthmus_settings::STATS.read(std::env::var_os) {
        for (operation, calls) in &counters.calls {
            say(&format!("{operation}: {calls} calls"));
        }
    }
}

#[cfg(test)]
mod tests;
