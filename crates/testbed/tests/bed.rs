// SPDX-License-Identifier: Apache-2.0
//! Whole testbeds: what hosts see, cuts, captures, and that nothing stays behind.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests stop at what they did not expect and say what they skip"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isthmus_testbed::{Error, Options, Testbed, Topology};

/// A testbed of two sites, or a visible note that this machine does not let us.
fn pair(options: &Options) -> Option<Testbed> {
    let topology = Topology::grid("2x1").and_then(|t| t.round_trip("4ms")).unwrap();
    started(&topology, options)
}

/// A testbed, or a visible note.
fn started(topology: &Topology, options: &Options) -> Option<Testbed> {
    match Testbed::start_with(topology, options) {
        Ok(bed) => Some(bed),
        Err(error @ Error::NotPermitted { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("isthmus-bed-{name}-{}", std::process::id()))
}

#[test]
fn hosts_are_machines_of_their_own() {
    let Some(bed) = pair(&Options::default()) else { return };
    let said = |host: &str, script: &str| {
        let output = bed.host(host).unwrap().output("sh", &["-c", script]).unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for script in ["hostname", "cat /proc/sys/kernel/random/boot_id", "echo $HOME"] {
        assert_ne!(said("a1", script), said("b1", script), "{script}");
    }
    said("a1", "echo secret > /dev/shm/x; echo kept > ~/file");
    assert_eq!(said("a1", "cat /dev/shm/x ~/file"), "secret\nkept\n");
    assert_eq!(said("b1", "cat /dev/shm/x ~/file 2>/dev/null"), "");
    let count: usize = said("b1", "ls -d /proc/[0-9]* | wc -l").trim().parse().unwrap();
    assert!(count < 10, "{count} processes");
}

#[test]
fn ssh_reaches_every_host_by_name_and_finds_its_home() {
    let Some(bed) = pair(&Options::default()) else { return };
    if let [limit, ..] = bed.limits() {
        eprintln!("SKIPPED: {limit}");
        return;
    }
    for (from, to) in [("a1", "b1"), ("b1", "a1"), ("a1", "a1")] {
        let output = bed
            .host(from)
            .unwrap()
            .output("ssh", &[to, "hostname; pwd; echo $HOME"])
            .unwrap();
        let home = bed.host(to).unwrap().home().display().to_string();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            text,
            format!("{to}\n{home}\n{home}\n"),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_cut_is_silent_and_tcp_goes_on_after_it() {
    let Some(bed) = pair(&Options::default()) else { return };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    let listener = b.in_network(|| TcpListener::bind("0.0.0.0:7000")).unwrap().unwrap();
    let address = SocketAddr::from((b.address(), 7000));
    let mut near = a.in_network(|| TcpStream::connect(address)).unwrap().unwrap();
    let (mut far, _) = listener.accept().unwrap();
    bed.cut("a", "b").unwrap();
    near.write_all(b"across").unwrap();
    far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut buffer = [0; 6];
    assert!(
        far.read(&mut buffer).is_err(),
        "a cut lets nothing through and says nothing"
    );
    bed.restore("b", "a").unwrap();
    far.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    far.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"across");
    assert!(bed.report().links.iter().any(|link| link.cut > 0));
    assert!(bed.cut("a", "elsewhere").unwrap_err().to_string().contains("a, b"));
}

#[test]
fn big_streams_arrive_whole_and_lossy_links_lose_what_was_asked() {
    let topology = Topology::grid("2x1")
        .and_then(|t| t.round_trip("2ms")?.rate("500mbit")?.loss("1%"))
        .unwrap();
    let Ok(bed) = Testbed::start(&topology) else {
        return eprintln!("SKIPPED: no testbed here");
    };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    let listener = b.in_network(|| TcpListener::bind("0.0.0.0:7000")).unwrap().unwrap();
    let address = SocketAddr::from((b.address(), 7000));
    let mut near = a.in_network(|| TcpStream::connect(address)).unwrap().unwrap();
    let (mut far, _) = listener.accept().unwrap();
    let data: Vec<u8> = (0..4_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let copy = data.clone();
    let sender = std::thread::spawn(move || near.write_all(&copy));
    let mut got = Vec::new();
    far.read_to_end(&mut got).unwrap();
    sender.join().unwrap().unwrap();
    assert!(got == data, "{} of {} bytes, or other ones", got.len(), data.len());
    let links = bed.report().links;
    let forward = links.iter().find(|link| link.from == "a").unwrap();
    let share = forward.lost as f64 / (forward.lost + forward.packets) as f64;
    assert!((0.004..0.02).contains(&share), "{share}");
}

#[test]
fn a_capture_holds_what_crossed() {
    let path = scratch("capture.pcap");
    let Some(bed) = pair(&Options {
        capture: Some(path.clone()),
        ..Options::default()
    }) else {
        return;
    };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    let far = b.in_network(|| UdpSocket::bind("0.0.0.0:7000")).unwrap().unwrap();
    let near = a.in_network(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    near.send_to(b"MARKER-IN-CLEAR", (b.address(), 7000)).unwrap();
    far.recv(&mut [0; 64]).unwrap();
    assert_eq!(bed.stop().unwrap().capture_missed, 0);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(bytes.windows(15).any(|w| w == b"MARKER-IN-CLEAR"));
}

#[test]
fn nothing_survives_a_killed_testbed() {
    let root = scratch("root");
    let mut child = Command::new(env!("CARGO_BIN_EXE_isthmus-testbed"))
        .args([
            "run",
            "--sites",
            "2x1",
            "--",
            "sh",
            "-c",
            "echo up; sleep 987.125 & exec sleep 987.125",
        ])
        .env("ISTHMUS_TESTBED_ROOT", &root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 3];
    if child.stdout.as_mut().unwrap().read_exact(&mut line).is_err() {
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(125));
        return eprintln!("SKIPPED: no testbed here");
    }
    let started = await_sleepers(2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(started, 2);
    assert_eq!(await_sleepers(0), 0);
    assert!(isthmus_testbed::running(&root).is_empty());
    assert_eq!(isthmus_testbed::sweep(&root).unwrap(), 1);
    std::fs::remove_dir(&root).unwrap();
}

/// Waits until there are `count` of them, at most 10 s; gives how many there are then.
fn await_sleepers(count: usize) -> usize {
    let deadline = Instant::now() + Duration::from_secs(10);
    while sleepers() != count && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    sleepers()
}

/// Living processes of `nothing_survives_a_killed_testbed`.
fn sleepers() -> usize {
    let lines = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line == b"sleep\0987.125\0").count()
}

#[test]
fn signals_reach_the_command_and_the_exit_status_comes_back() {
    let root = scratch("signal");
    let run = |script: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isthmus-testbed"));
        command
            .args(["run", "--sites", "1x1", "--", "sh", "-c", script])
            .env("ISTHMUS_TESTBED_ROOT", &root)
            .stdin(Stdio::null());
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let code = run("exit 7").wait().unwrap().code();
    if code == Some(125) {
        return eprintln!("SKIPPED: no testbed here");
    }
    assert_eq!(code, Some(7));
    let mut child = run("trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done");
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(9));
    assert!(!root.exists(), "the directory goes with the testbed");
}

#[test]
fn machines_of_a_site_are_apart_and_nodes_of_a_machine_are_not() {
    let topology = Topology::grid("2x2x2")
        .and_then(|t| t.round_trip("4ms"))
        .and_then(|t| t.local_round_trip("20ms"))
        .unwrap();
    let Some(bed) = started(&topology, &Options::default()) else {
        return;
    };
    // Counters say which lines were used; no times.
    let reached = |to: &str| {
        let target = bed.host(to).unwrap();
        let socket = target.in_network(|| UdpSocket::bind("0.0.0.0:7003")).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let probe = bed.host("a1").unwrap().in_network(|| UdpSocket::bind("0.0.0.0:0"));
        let address = SocketAddr::from((target.address(), 7003));
        probe.unwrap().unwrap().send_to(b"x", address).unwrap();
        socket.recv(&mut [0; 8]).unwrap()
    };
    let crossed = |from: &str, to: &str| {
        let links = bed.report().links;
        let link = links.iter().find(|link| link.from == from && link.to == to).unwrap();
        link.packets
    };
    let before = (crossed("a1", "a2"), crossed("a", "b"));
    assert_eq!(reached("a1n2"), 1);
    assert_eq!((crossed("a1", "a2"), crossed("a", "b")), before);
    assert_eq!(reached("a2n2"), 1);
    assert_eq!((crossed("a1", "a2"), crossed("a", "b")), (before.0 + 1, before.1));
    assert_eq!(reached("b2"), 1);
    assert_eq!((crossed("a1", "a2"), crossed("a", "b")), (before.0 + 1, before.1 + 1));
}

#[test]
fn links_change_while_things_run() {
    let Some(bed) = pair(&Options::default()) else { return };
    let send = || {
        let probe = bed.host("a1").unwrap().in_network(|| UdpSocket::bind("0.0.0.0:0"));
        let address = SocketAddr::from((bed.host("b1").unwrap().address(), 7004));
        probe.unwrap().unwrap().send_to(b"x", address).unwrap();
    };
    let lost = || bed.report().links.iter().map(|link| link.lost).sum::<u64>();
    let crossed = || bed.report().links.iter().map(|link| link.packets).sum::<u64>();
    send();
    let deadline = Instant::now() + Duration::from_secs(10);
    // The packet, and the answer that nobody is there.
    while crossed() < 2 {
        assert!(Instant::now() < deadline, "nothing crossed");
        std::thread::sleep(Duration::from_millis(10));
    }
    bed.change("a", "b", |link| link.loss = 1.0).unwrap();
    send();
    let deadline = Instant::now() + Duration::from_secs(10);
    while lost() == 0 {
        assert!(Instant::now() < deadline, "nothing was lost");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(lost(), 1);
    assert!(bed.change("a", "x", |_| {}).is_err());
}

#[test]
fn connections_have_the_congestion_control_that_was_asked_for() {
    for control in ["reno", "cubic"] {
        let grid = || Topology::grid("2x2").unwrap();
        let apart = grid().local_round_trip("1ms").unwrap();
        let six = grid().access("a=ipv6,b=ipv6").unwrap();
        for (number, mut topology) in [grid(), apart, six].into_iter().enumerate() {
            topology.congestion = control.to_owned();
            let Some(bed) = started(&topology, &Options::default()) else {
                return;
            };
            let a1 = bed.host("a1").unwrap();
            for peer in ["a2", "b1"] {
                let peer = bed.host(peer).unwrap();
                let listener = peer.in_network(|| TcpListener::bind("[::]:0")).unwrap().unwrap();
                let to: SocketAddr = (peer.reached(), listener.local_addr().unwrap().port()).into();
                let socket = a1.in_network(|| TcpStream::connect(to)).unwrap().unwrap();
                let accepted = listener.accept().unwrap().0;
                for end in [socket, accepted] {
                    let has = rustix::net::sockopt::tcp_congestion(&end).unwrap();
                    assert_eq!(has, control, "{number}: {to}");
                }
            }
        }
    }
}
