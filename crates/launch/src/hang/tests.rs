// SPDX-License-Identifier: Apache-2.0
use super::*;
use isthmus_wire::waiting::Waiting;

fn process(rank: u32, call: &str, items: Vec<Item>) -> Process {
    Process {
        rank,
        site: "home".into(),
        waiting: Some(Waiting {
            call: call.into(),
            idle: 5000,
            items,
            more: 0,
        }),
        ..Process::default()
    }
}

fn receive(peer: u32, tag: u32) -> Item {
    Item {
        kind: Kind::Receive,
        peer,
        tag,
        context: 2,
        ..Item::default()
    }
}

fn collective(name: &str, size: u32) -> Item {
    Item {
        kind: Kind::Collective,
        name: name.into(),
        size,
        context: 2,
        ..Item::default()
    }
}

fn all(processes: Vec<Process>) -> Whereabouts {
    Whereabouts {
        processes,
        ..Whereabouts::default()
    }
}

#[test]
fn two_receives_are_a_deadlock() {
    let all = all(vec![
        process(0, "MPI_Recv", vec![receive(1, 7)]),
        process(1, "MPI_Recv", vec![receive(0, 7)]),
    ]);
    let said = suspicions(&all);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("deadlock: ranks 0-1 wait for each other"),
        "{said:?}"
    );
    assert_eq!(groups(&all).len(), 2);
    let name = "request".to_owned();
    let item = Item { name, ..receive(3, 1) };
    assert_eq!(pending(&item, ""), "rank 3 to answer a request");
}

#[test]
fn who_has_not_come_and_who_is_elsewhere_is_named() {
    let mut processes: Vec<Process> = (0..4)
        .map(|r| process(r, "MPI_Allreduce", vec![collective("allreduce", 4)]))
        .collect();
    processes[2] = process(2, "MPI_Recv", vec![receive(3, 9)]);
    let said = suspicions(&all(processes.clone()));
    assert!(
        said[0].contains(
            "ranks 0-1, 3 are in allreduce; rank 2 is not: rank 2 is in MPI_Recv: a message from rank 3, tag 9"
        ),
        "{said:?}"
    );
    processes[2] = process(2, "MPI_Barrier", vec![collective("barrier", 4)]);
    let said = suspicions(&all(processes));
    assert!(
        said[0].contains("rank 2 is in barrier") && said[0].contains("different"),
        "{said:?}"
    );
}

#[test]
fn processes_that_have_ended_are_not_missed() {
    let world: Vec<Process> = [0, 1, 4]
        .map(|rank| process(rank, "MPI_Barrier", vec![collective("barrier", 3)]))
        .into();
    let mut waits = world.clone();
    waits[2] = process(4, "MPI_Recv", vec![receive(1, 9)]);
    assert!(suspicions(&all(waits))[0].contains("ranks 0-1 are in barrier; rank 4 is not"));
    let said = suspicions(&all(world));
    assert!(!said.iter().any(|sentence| sentence.contains("is not")), "{said:?}");
}

#[test]
fn members_that_are_in_the_same_operation_and_do_not_go_on_are_told_why() {
    let of = |change: fn(u32, &mut Item)| {
        let mut processes: Vec<Process> = Vec::new();
        for rank in 0..3 {
            let mut item = collective("bcast", 3);
            item.sequence = 5;
            change(rank, &mut item);
            processes.push(process(rank, "MPI_Bcast", vec![item]));
        }
        processes
    };
    let said = |processes: Vec<Process>| suspicions(&all(processes));
    let same = of(|_, _| {});
    assert!(said(same.clone())[0].contains("they may have given different roots"));
    let ahead = said(of(|rank, item| item.sequence += rank / 2));
    assert!(
        ahead[0].contains("not in the same one: ranks 0-1; rank 2; before it"),
        "{ahead:?}"
    );
    let other = said(of(|rank, item| item.context += rank % 2));
    assert!(
        other[0].contains("different communicators: ranks 0, 2; rank 1"),
        "{other:?}"
    );
    // Something comes to one of them.
    let mut goes_on = same;
    goes_on[1].waiting.as_mut().unwrap().idle = 100;
    assert_eq!(said(goes_on), Vec::<String>::new());
    // Several at a time, the same ones everywhere.
    let two = |rank| {
        process(
            rank,
            "MPI_Waitall",
            vec![collective("bcast", 2), collective("barrier", 2)],
        )
    };
    assert_eq!(said(vec![two(0), two(1)]), Vec::<String>::new());
}

#[test]
fn a_message_with_another_tag_is_seen_and_so_is_a_stopped_process() {
    let other = Item {
        kind: Kind::Unexpected,
        peer: 1,
        tag: 8,
        context: 2,
        bytes: 40,
        ..Item::default()
    };
    let mut one = process(1, "MPI_Barrier", vec![]);
    one.stopped = true;
    let said = suspicions(&all(vec![process(0, "MPI_Recv", vec![receive(1, 7), other]), one]));
    assert!(said[0].contains("rank 1 has been stopped"), "{said:?}");
    assert!(said[1].contains("another tag: 40 bytes from rank 1, tag 8"), "{said:?}");
}

#[test]
fn what_a_rank_does_whose_site_is_not_heard_is_not_known() {
    let one = |waiting| Process {
        unheard: 12,
        ended: false,
        ..waiting
    };
    let idle = one(Process::default());
    assert_eq!(doing(&idle), "not heard: nothing has come from its site for 12 s");
    let before = one(process(1, "MPI_Barrier", vec![]));
    assert_eq!(
        doing(&before),
        "in MPI_Barrier; nothing has come from its site for 12 s"
    );
    assert_eq!(doing(&Process { ended: true, ..idle }), "ended");
}

#[test]
fn ranks_are_told_as_ranges() {
    assert_eq!(named(&[0, 1, 2, 5]), "ranks 0-2, 5");
    assert_eq!(named(&[3]), "rank 3");
    assert_eq!([500, 130_000, 9_000_000].map(time), ["0 s", "2 min", "2 h"]);
}

#[test]
fn who_waits_for_another_job_in_the_same_call_is_not_missed() {
    let inside = || vec![collective("communicator-exchange", 3)];
    let mut processes: Vec<Process> = (0..3).map(|r| process(r, "MPI_Comm_accept", inside())).collect();
    processes[1] = process(1, "MPI_Comm_accept", Vec::new());
    assert_eq!(suspicions(&all(processes.clone())), Vec::<String>::new());
    processes[1] = process(1, "MPI_Comm_connect", Vec::new());
    let said = suspicions(&all(processes));
    assert!(
        said[0].contains("rank 1 is not: rank 1 is in MPI_Comm_connect"),
        "{said:?}"
    );
}
