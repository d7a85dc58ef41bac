// SPDX-License-Identifier: Apache-2.0
//! A local flush of one member of a window over three nodes, while another one does nothing.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{window, world};
use isthmus_core::world::World;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::Peer;
use isthmus_rma::{Flavor, Sink, Source, TargetData, When, Window};
use isthmus_transport::memory::{Options, network};

/// Bytes of each part: many times what the network takes for a peer that reads nothing.
const BYTES: usize = 256 << 10;
/// Bytes of a put.
const LONG: usize = BYTES - 8;

fn place(rank: i32, disp: i64, count: u64, datatype: &Datatype) -> TargetData<'_> {
    TargetData {
        rank,
        disp,
        count,
        datatype,
    }
}

fn get(window: &Window, rank: i32, memory: &OwnMemory) {
    let byte = Datatype::of(Basic::Byte);
    let mut sink = Sink {
        memory: memory.memory(),
        count: 8,
        datatype: &byte,
    };
    window
        .get(&mut sink, &place(rank, 0, 8, &byte), When::Always)
        .expect("asked for");
}

#[test]
fn a_local_flush_of_one_member_waits_for_no_other() {
    let options = Options {
        frame: 4096,
        queue: 8,
        ..Options::default()
    };
    let (ends, _) = network(3, options).expect("eventfd");
    let worlds: Vec<&'static World> = (0..)
        .zip(ends)
        .map(|(rank, end)| world(Peer::new(rank), end, 3))
        .collect();
    let make = |world: &'static World| std::thread::spawn(move || window(world, (Flavor::Allocate, BYTES)));
    let made: Vec<_> = worlds.iter().map(|world| make(world)).collect();
    let windows: Vec<Arc<Window>> = made.into_iter().map(|thread| thread.join().expect("made")).collect();
    windows[1].own_memory().write(0, &[1; 8]);
    windows[2].own_memory().write(0, &[2; 8]);

    let byte = Datatype::of(Basic::Byte);
    let window = &windows[0];
    window.lock_all(0).expect("locked");
    let (near, far) = (OwnMemory::new(0, 8), OwnMemory::new(0, 8));
    get(window, 2, &far);
    let long = OwnMemory::with(&[5; LONG]);
    let source = Source {
        memory: long.reading(),
        count: LONG as u64,
        datatype: &byte,
    };
    window
        .put(&source, &place(2, 8, LONG as u64, &byte), When::Always)
        .expect("on its way");
    get(window, 1, &near);
    // Who answers while this process waits.
    let aside = |answer: &[usize], flush: &(dyn Fn() + Sync)| {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                flush();
                over.store(true, Ordering::SeqCst);
            });
            while !over.load(Ordering::SeqCst) {
                for &rank in answer {
                    worlds[rank].engine().lock().progress();
                }
                std::thread::yield_now();
            }
        });
    };
    aside(&[1], &|| window.flush_local(Some(1)).expect("its data have come"));
    assert_eq!((near.content(), far.content()), (vec![1; 8], vec![0; 8]));
    aside(&[1, 2], &|| window.flush_local(Some(2)).expect("its data have come"));
    assert_eq!(far.content(), [2; 8]);
    aside(&[1, 2], &|| window.unlock_all().expect("unlocked"));
    let mut there = vec![0; LONG];
    windows[2].own_memory().reading().read(8, &mut there);
    assert_eq!(there, long.content());
}
