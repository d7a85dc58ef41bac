// SPDX-License-Identifier: Apache-2.0
//! What is fuzzed. A target takes any bytes and must not panic; where something can be decoded, what it encodes
//! to must decode to the same again.

use crate::{datatypes, files, grid, hello, links, memory, service, traces, words};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{ALL, Datatype, Foreign, Packer, Unpacker};
use isthmus_job::Job;
use isthmus_job::forms::{Form, Input};
use isthmus_schedule::Overrides;
use isthmus_topology::{LinkEstimates, Measured, Origin, Rate};
use isthmus_wire::frame::{HEADER_BYTES, Header, Kind};
use isthmus_wire::gateway::{FromGateway, Settled, ToGateway};
use isthmus_wire::guard;
use isthmus_wire::links::Table;
use isthmus_wire::segment::{self, SEGMENT_BYTES, Segment};
use isthmus_wire::waiting;

/// One parser with good inputs to begin from.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
    pub(crate) corpus: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "frame",
        run: frame,
        corpus: frames,
    },
    Target {
        name: "datatype",
        run: datatypes::described,
        corpus: datatypes::types,
    },
    Target {
        name: "traces",
        run: traces::two,
        corpus: traces::samples,
    },
    Target {
        name: "file",
        run: files::messages,
        corpus: files::corpus,
    },
    Target {
        name: "windows",
        run: files::windows,
        corpus: files::operations,
    },
    Target {
        name: "requests",
        run: files::requests,
        corpus: files::pointers,
    },
    Target {
        name: "stripes",
        run: files::stripes,
        corpus: files::layouts,
    },
    Target {
        name: "boot",
        run: grid::boot,
        corpus: grid::boot_bodies,
    },
    Target {
        name: "stream",
        run: grid::stream,
        corpus: grid::boot_streams,
    },
    Target {
        name: "to-agent",
        run: grid::to_agent,
        corpus: grid::to_agent_bodies,
    },
    Target {
        name: "from-agent",
        run: grid::from_agent,
        corpus: grid::from_agent_bodies,
    },
    Target {
        name: "guard",
        run: guard::fuzz,
        corpus: grid::guard_answers,
    },
    Target {
        name: "port",
        run: isthmus_wire::port::fuzz,
        corpus: words::ports,
    },
    Target {
        name: "joining",
        run: isthmus_wire::joining::fuzz,
        corpus: words::offers,
    },
    Target {
        name: "gathering",
        run: isthmus_wire::gathering::fuzz,
        corpus: words::parts,
    },
    Target {
        name: "waiting",
        run: waiting::fuzz,
        corpus: grid::waiting_processes,
    },
    Target {
        name: "rules",
        run: rules,
        corpus: rule_texts,
    },
    Target {
        name: "gauge",
        run: links::gauge,
        corpus: links::happenings,
    },
    Target {
        name: "life",
        run: isthmus_link::fuzz::life,
        corpus: links::happenings,
    },
    Target {
        name: "reaching",
        run: isthmus_link::fuzz::reaching,
        corpus: links::happenings,
    },
    Target {
        name: "handshake",
        run: isthmus_link::fuzz::handshake,
        corpus: links::handshakes,
    },
    Target {
        name: "trunk",
        run: isthmus_link::trunk::fuzz_trunk,
        corpus: links::trunks,
    },
    Target {
        name: "gateway",
        run: gateway,
        corpus: gateway_bodies,
    },
    Target {
        name: "hello",
        run: hello::hello,
        corpus: hello::hellos,
    },
    Target {
        name: "proofs",
        run: isthmus_net::fuzz_hello,
        corpus: hello::hellos,
    },
    Target {
        name: "credential",
        run: isthmus_net::fuzz_credential,
        corpus: hello::credentials,
    },
    Target {
        name: "records",
        run: links::records,
        corpus: links::record_lists,
    },
    Target {
        name: "plain",
        run: plain,
        corpus: plain_streams,
    },
    Target {
        name: "channel",
        run: channel,
        corpus: channels,
    },
    Target {
        name: "assist",
        run: memory::assist,
        corpus: memory::desks,
    },
    Target {
        name: "conversion",
        run: conversion,
        corpus: foreign_data,
    },
    Target {
        name: "words",
        run: words::words,
        corpus: words::odd_words,
    },
    Target {
        name: "links",
        run: link_table,
        corpus: link_tables,
    },
    Target {
        name: "scheduler",
        run: isthmus_sched::fuzz,
        corpus: scheduler_answers,
    },
    Target {
        name: "job",
        run: isthmus_job::fuzz,
        corpus: job_texts,
    },
    Target {
        name: "rsl",
        run: rsl,
        corpus: rsl_texts,
    },
    Target {
        name: "service",
        run: service::service,
        corpus: service::service_bodies,
    },
    Target {
        name: "control",
        run: service::control,
        corpus: service::control_bodies,
    },
    Target {
        name: "discovery",
        run: isthmus_discovery::fuzz,
        corpus: service::discovery_texts,
    },
    Target {
        name: "stage",
        run: isthmus_stage::fuzz,
        corpus: service::staged_files,
    },
    Target {
        name: "sites",
        run: service::sites,
        corpus: service::site_texts,
    },
    Target {
        name: "form",
        run: form,
        corpus: job_texts,
    },
];

/// The target of this name.
pub(crate) fn find(name: &str) -> Result<&'static Target, String> {
    let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
    TARGETS
        .iter()
        .find(|t| t.name == name)
        .ok_or_else(|| format!("no target `{name}`; there are: {}", names.join(", ")))
}

/// Data of a process that represents them in some way: its description, a choice of types, the data. What arrives must
/// be what comes back when it is sent there, if it can be.
fn conversion(bytes: &[u8]) {
    let Some((description, rest)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    let Some((choice, data)) = rest.split_first_chunk::<4>() else {
        return;
    };
    let Ok(form) = isthmus_datatype::Representation::decode(*description) else {
        return;
    };
    let basic = |at: usize| Datatype::of(ALL[usize::from(choice[at]) % ALL.len()]);
    let places = [0, 64, 160];
    let Ok(datatype) = Datatype::structure(
        &[1, i64::from(choice[3] % 3), 1],
        &places,
        &[basic(0), basic(1), basic(2)],
    ) else {
        return;
    };
    let Ok(Some(foreign)) = Foreign::new(&datatype, form) else {
        return;
    };
    let (basics, _) = foreign.basics_in(data.len() as u64);
    let count = basics.div_ceil(datatype.signature().elements().max(1));
    let data = &data[..foreign.bytes_of(basics) as usize];
    let Ok((low, high)) = datatype.window(count) else {
        return;
    };
    let memory = OwnMemory::new(low, high);
    let Ok(mut unpacker) = Unpacker::new(&datatype, count, memory.memory()) else {
        return;
    };
    if foreign.unpack(0, basics, data, &mut unpacker).is_err() {
        return;
    }
    let Ok(mut packer) = Packer::new(&datatype, count, memory.reading()) else {
        return;
    };
    let mut there = vec![0; data.len()];
    if foreign.pack(0, basics, &mut packer, &mut there).is_ok() {
        let again = OwnMemory::new(low, high);
        if let Ok(mut unpacker) = Unpacker::new(&datatype, count, again.memory()) {
            assert_eq!(foreign.unpack(0, basics, &there, &mut unpacker), Ok(()));
            assert_eq!(memory.content(), again.content());
        }
    }
}

fn foreign_data() -> Vec<Vec<u8>> {
    let machines = [
        [2, 8, 8, 16, 113, 4, 1, 0],
        [1, 4, 4, 12, 64, 4, 1, 0],
        [2, 4, 4, 8, 53, 2, 4, 0],
    ];
    machines
        .iter()
        .flat_map(|machine| (0..8u8).map(move |i| [&machine[..], &[i * 9, i * 7 + 1, i * 5 + 2, i], &[i; 90]].concat()))
        .collect()
}

fn rules(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Overrides::parse(text) {
        Ok(rules) => assert_eq!(Overrides::parse(&rules.to_string()).as_ref(), Ok(&rules)),
        Err(error) => assert!(error.at <= text.len() && !error.what.is_empty()),
    }
}

fn rule_texts() -> Vec<Vec<u8>> {
    [
        "bcast@wide=flat,seg=64K; allreduce:64K..=split",
        "*@node=fibonacci(3); reduce_scatter_block:..1M=tree,lanes=4,leaders=2",
        "alltoall:1K..2MiB=pairwise;;gather@local=knomial(5)",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// What messages cost: the table and measurements.
fn link_table(bytes: &[u8]) {
    if let Ok(all) = Measured::decode_all(bytes) {
        assert_eq!(Measured::encode_all(&all), bytes);
    }
    let Ok(table) = Table::decode(bytes) else { return };
    assert_eq!(table.encode(), bytes);
    let known = LinkEstimates::from_wire(table.clone()).unwrap_or_else(|e| panic!("{e:?}"));
    for (_, _, link) in known.pairs() {
        let _ = (link.gap.at(u64::MAX), link.gap.as_rate(), link.send.at(1));
    }
    let measure = table.measure;
    assert_eq!(
        Table {
            measure,
            ..known.to_wire()
        },
        table
    );
}

fn link_tables() -> Vec<Vec<u8>> {
    let mut measured = Vec::new();
    let mut known = LinkEstimates::default();
    let mut all = vec![known.to_wire().encode()];
    for a in 0..3 {
        measured.push(Measured {
            between: (a, 3),
            latency: (a > 0).then_some(20_000_000),
            rate: Some(Rate {
                at_least: a > 1,
                ..Rate::bare(12_500_000)
            }),
        });
        known = known.learn(&measured, Origin::Measured);
        all.push(known.to_wire().encode());
        all.push(Measured::encode_all(&measured));
    }
    all
}

/// The header in front of messages between processes.
fn frame(bytes: &[u8]) {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return;
    };
    // Most changes are found out by the check; what comes behind it is tried too.
    for header in [*header, isthmus_wire::frame::checked(*header)] {
        if let Ok(decoded) = Header::decode(&header) {
            let _ = (decoded.payload_bytes(), decoded.auxiliary());
            assert_eq!(Header::decode(&decoded.encode()), Ok(decoded));
        }
    }
}

fn frames() -> Vec<Vec<u8>> {
    (0..=255)
        .filter_map(Kind::from_code)
        .map(|kind| Header::new(kind, 3, 1, 7, 4096, 9).encode().to_vec())
        .collect()
}

/// What schedulers print; standard error stands behind a zero byte.
fn scheduler_answers() -> Vec<Vec<u8>> {
    [
        &b"17;cluster\n\0"[..],
        b"PENDING|Resources\n\0",
        b"\0slurm_load_jobs error: Invalid job id specified\n",
        b"job-ID prior name user state\n 17 0.5 isthmus root qw 11/21/2026 17:30:00 1\n\0",
        b"failed 100 : assumedly after job\nexit_status 137\n\0",
        b"Job Id: 17.server\n    job_state = F\n    Exit_status = 271\n    comment = x\n\0",
        b"Job <17> is submitted to queue <normal>.\n\0",
        b"EXIT|140|TERM_RUNLIMIT: job killed|-\n\0Job <17> is not found\n",
        b"2(x3),1\0",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

fn gateway(bytes: &[u8]) {
    if let Ok(message) = ToGateway::decode(bytes) {
        assert_eq!(ToGateway::decode(&message.encode()), Ok(message));
    }
    if let Ok(message) = FromGateway::decode(bytes) {
        assert_eq!(FromGateway::decode(&message.encode()), Ok(message));
    }
    words::gate(bytes);
}

fn gateway_bodies() -> Vec<Vec<u8>> {
    let settled = Settled {
        area: 1,
        outward: "10.0.0.1:5".to_owned(),
        ..Settled::default()
    };
    vec![
        FromGateway::Settled(settled).encode(),
        ToGateway::Measure(3).encode(),
        words::lead(),
        ToGateway::Areas(vec![isthmus_wire::gateway::Area::default()]).encode(),
    ]
}

/// What a peer that passed the handshake says on a connection between sites; the first byte says how it comes in
/// pieces.
fn channel(bytes: &[u8]) {
    let Some((cut, stream)) = bytes.split_first() else {
        return;
    };
    isthmus_net::fuzz_channel(stream, usize::from(*cut));
    if let Some(segment) = stream
        .first_chunk::<SEGMENT_BYTES>()
        .and_then(|b| Segment::decode(b).ok())
    {
        assert_eq!(Segment::decode(&segment.encode()), Ok(segment));
        let hello = segment::Hello::decode(&segment, &stream[SEGMENT_BYTES..]);
        assert!(hello.is_none_or(|h| h.encode() == stream));
    }
}

/// What a peer that passed the handshake says on a connection inside a site; the first byte says how it comes in
/// pieces.
fn plain(bytes: &[u8]) {
    if let Some((cut, stream)) = bytes.split_first() {
        isthmus_net::fuzz_plain(stream, usize::from(*cut));
    }
}

fn plain_streams() -> Vec<Vec<u8>> {
    let frame = |header: Header, body: &[u8]| [&header.encode()[..], body].concat();
    let eager = frame(Header::new(Kind::Eager, 1, 2, 3, 5, 0), b"hello");
    let padding = frame(Header::control(Kind::Padding, 0, 0, 40), &[0; 40]);
    let data = |offset: u64| frame(Header::control(Kind::Data, 1, offset, 32), &[7; 32]);
    let farewell = [isthmus_wire::hello::FAREWELL; 1];
    vec![
        [&[9], &eager[..], &padding, &data(0), &eager, &data(32)].concat(),
        [&[255], &padding[..], &data(48)].concat(),
        [&[40], &eager[..], &farewell, &[0; 31], &eager].concat(),
    ]
}

fn channels() -> Vec<Vec<u8>> {
    let hello = segment::Hello {
        below: 9,
        ranges: vec![(10, 12), (20, 21)],
    }
    .encode();
    let frame = Header::new(Kind::Eager, 1, 2, 3, 5, 0).encode();
    let segment = |kind: segment::Kind, number: u64, position: u64, body: &[u8]| {
        let head = Segment {
            length: body.len() as u32,
            position,
            token: u64::from(kind == segment::Kind::Fragment),
            ..Segment::control(kind, number)
        };
        [&head.encode()[..], body].concat()
    };
    let ordered = segment(segment::Kind::Ordered, 1, 0, &[&frame[..], b"hello"].concat());
    let late = segment(segment::Kind::Ordered, 2, 99, b"later");
    let fragment = segment(segment::Kind::Fragment, 3, 100, &[7; 64]);
    let ack = segment(segment::Kind::Ack, 2, 0, &[]);
    vec![
        [&[5], &hello[..], &ordered, &late, &fragment, &ack].concat(),
        [&[255], &hello[..], &fragment, &fragment].concat(),
        [&[1], &hello[..]].concat(),
    ]
}

/// Job files, host files and command lines.
fn job_texts() -> Vec<Vec<u8>> {
    let texts = [
        "program = \"./climate\"\narguments = [\"--years\", \"20\"]\n[[subjob]]\nsite = \"home\"\ncount = 4\n\
         [[subjob]]\nsite = \"lab\"\ncount = 16\nlan = \"campus\"\n",
        "program.x86_64 = \"./a\"\nprogram.aarch64 = \"./b\"\n[environment]\nA = \"1\"\n[[subjob]]\nsite = \"x\"\ncount = 1\n",
        "node1:4\nnode2 slots=2 # comment\nuser@node3\n",
        "-n 4 -wdir /tmp -env A b ./app x : -n 2 -host a:2,b ./other",
        "home:4\nlab=login.example.org:16\n",
        "host1 tcp 100\nhost2 tcp 100 (ssh -l me host2 mpirun -np 102 {exe})\nhost3 tcp 1 #\n",
        "\"a.example/jobmanager-slurm\" 10\nb.example 5\nc.example\n",
        "SLURM_HET_SIZE=2\nSLURM_JOB_NODELIST_HET_GROUP_0=cpu[01-03,07]\nSLURM_TASKS_PER_NODE_HET_GROUP_0=4(x3),2\n\
         SLURM_JOB_NODELIST_HET_GROUP_1=gpu1\n",
        "program = \"a\"\nstage = false\nrequests = [\"queue=fast\", \"min_memory >= 5\"]\n[[subjob]]\nsite = \"lab\"\n\
         scheduler = \"pbs\"\nlimit = \"90s\"\nnodes = 1\nexclusive = true\ndirectives = [\"-x\"]\nappnum = 3\n",
        "arguments = [\"x\"]\n[[subjob]]\nsite = \"home\"\n[[subjob.section]]\nprogram = \"./a\"\ncount = 3\n[[subjob.section]]\n\
         program = \"./b\"\narguments = []\nenvironment = { A = \"2\" }\ndirectory = \"d\"\nappnum = 7\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A request. What can be read must come back from the text that is written of it, and so must its job.
fn rsl(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let bindings = [
        ("HOME".to_owned(), "/home/me".to_owned()),
        ("GLOBUSRUN_GASS_URL".to_owned(), "file://".to_owned()),
    ];
    if let Ok(request) = isthmus_job::rsl::evaluate(&text, "fuzz.rsl", &bindings) {
        let written = isthmus_job::rsl::canonical(&request);
        let again = isthmus_job::rsl::evaluate(&written, "again.rsl", &[]);
        match again {
            Ok(again) => assert_eq!(isthmus_job::rsl::canonical(&again), written),
            // A compound whose members were all bindings has none left, and nothing stands for that.
            Err(_) => assert!(text.to_lowercase().replace('_', "").contains("rslsubstitution")),
        }
    }
    match isthmus_job::rsl::job(&text, "fuzz.rsl", &bindings, None) {
        Ok(described) => returns(&described.job, &bindings),
        Err(errors) => drop(errors.to_string()),
    }
}

/// A job comes back from every form that can say all of it.
fn returns(job: &Job, bindings: &[(String, String)]) {
    let first = job.subjobs().first().cloned();
    for form in [Form::Rsl, Form::Toml, Form::Pacx, Form::Machines, Form::Slurm] {
        let written = form.write(job);
        let input = Input {
            bindings,
            program: first.as_ref().filter(|_| !form.names_program()),
            ..Input::of(&written.text, "again")
        };
        // Places that name no program lose the program, and nothing else may be lost.
        if written.lost.len() > usize::from(!form.names_program()) {
            continue;
        }
        match form.read(&input) {
            Ok(again) => assert_eq!(again.job, *job, "{}", written.text),
            Err(errors) => panic!("{errors}\n{}", written.text),
        }
    }
}

fn rsl_texts() -> Vec<Vec<u8>> {
    let texts = [
        "+\n( &(resourceManagerContact=\"a.example/jobmanager-slurm\")(count=10)(jobtype=mpi)(label=\"subjob 0\")\n\
         (environment=(GLOBUS_DUROC_SUBJOB_INDEX 0)(GLOBUS_LAN_ID one))(directory=/d)(executable=/x)(queue=q)(hostCount=2))\n\
         ( &(resource_manager_contact=home)(count=2)(label=b)(environment=(GLOBUS_DUROC_SUBJOB_INDEX 1)\n\
         (GLOBUS_LAN_ID one)(A \"\"))(arguments=1 2 'a ''b' ^%x%%y%)(executable=$(GLOBUSRUN_GASS_URL) # \"/x\"))\n",
        "& (rsl_substitution = (A /data/run) (B $(A)/bin)) (executable = $(B)/x$(C y)) (arguments = -i \"--in=\" # $(A)/in)",
        "& (* comment ( \" *) (executable=/bin/true) (| (queue=fast) (queue=slow)) (minMemory>=512) (project!=guest)",
        "executable = /bin/date",
        "&(executable=x)(stdout=/a (x-gass-cache://u t))(fileStageIn=(u p)(v q))(fileCleanUp=a b)(maxWallTime=5)(saveState=yes)",
        "+(&(executable=x)(resourceManagerContact=a))(+(&(executable=y)(resourceManagerContact=\"b:1/jobmanager-sge:/O=x\")(maxTime=9)))",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Descriptions in every form, told apart by their content.
fn form(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let program = isthmus_job::sites::template(isthmus_job::Program::one("./a"), Vec::new());
    let form = Form::detect("fuzz", &text);
    let input = Input {
        program: Some(&program),
        ..Input::of(&text, "fuzz")
    };
    match form.read(&input) {
        Ok(described) => returns(&described.job, &isthmus_job::rsl::bindings(|_| None)),
        Err(errors) => drop(errors.to_string()),
    }
}
