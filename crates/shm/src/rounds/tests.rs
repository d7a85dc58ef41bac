// SPDX-License-Identifier: Apache-2.0
//! Who writes to memory that a member has offered, and for how long; what one member gives all others.

use isthmus_datatype::raw::OwnMemory;
use isthmus_transport::sharing::{Sharing, Unreached};

use super::*;

const LENGTH: usize = 1000;

#[test]
fn others_write_where_a_member_offers_until_it_withdraws() {
    let at = tempfile::tempdir().expect("a directory");
    let end = |slot| {
        let path = at.path().join("segment");
        ShmTransport::join(&path, at.path(), "write", slot, 2, Peer::first(2).collect()).expect("joined")
    };
    let (mut owner, mut writer) = (end(0), end(1));
    if writer.source(0).is_none() {
        println!("skipped: the system does not let processes copy from each other");
        return;
    }
    let slab = |me| Slab {
        number: 0,
        members: 2,
        me,
    };
    let (mut bytes, given) = (vec![0; LENGTH], OwnMemory::with(&[7; 16]));
    // SAFETY: the bytes live to the end, and are not touched before all is written.
    let memory = unsafe { WriteMemory::new(bytes.as_mut_ptr(), 0, LENGTH as isize) };
    let read = owner.offer(&memory.reading(), LENGTH as u64);
    let written = owner.offer_target(&memory.of_user().expect("the user's"), LENGTH as u64);
    let mut store = |offer, at| writer.store(&slab(1), 0, Peer::new(0), offer, at, given.reading());
    assert!(store(&written, 8));
    assert!(
        !store(&written, LENGTH as u64 - 15) && !store(&written, u64::MAX),
        "beyond what is offered"
    );
    assert!(!store(&read, 100), "to be read only");
    let to_itself = owner.store(&slab(0), 0, Peer::new(0), &written, 100, given.reading());
    owner.withdraw(&slab(0));
    assert!(!to_itself && !store(&written, 100));
    let into = OwnMemory::new(0, 8);
    assert!(
        !writer.fetch(Peer::new(0), &written, 0, into.memory(), 8),
        "to be written only"
    );
    assert!(writer.fetch(Peer::new(0), &read, 8, into.memory(), 8));
    assert_eq!(into.content(), [7; 8]);
    let mut right = vec![0; LENGTH];
    right[8..24].fill(7);
    assert_eq!(bytes, right);
}

#[test]
fn a_writer_that_has_ended_or_never_was_is_not_waited_for() {
    let at = tempfile::tempdir().expect("a directory");
    let end = |slot| {
        let path = at.path().join("segment");
        ShmTransport::join(&path, at.path(), "ended", slot, 2, Peer::first(2).collect()).expect("joined")
    };
    let (mut owner, _writer) = (end(0), end(1));
    if owner.source(1).is_none() {
        println!("skipped: the system does not let processes copy from each other");
        return;
    }
    let slab = Slab {
        number: 0,
        members: 2,
        me: 0,
    };
    // The process that has its number now is another one, which has nothing where it showed something.
    let block = owner.segment.block(1);
    block.probe[0].fetch_xor(1, Ordering::Relaxed);
    // It was killed as it wrote; one claims to be the owner, and one to be nobody.
    for claimed in [1, 0, 2, usize::MAX - 1] {
        owner.layouts.view(&owner.segment, &slab).left()[1].claim_to_write(claimed);
        owner.withdraw(&slab);
    }
}

#[test]
fn no_process_is_made_to_write_to_itself() {
    let at = tempfile::tempdir().expect("a directory");
    let path = at.path().join("segment");
    let mut end = ShmTransport::join(&path, at.path(), "itself", 0, 2, Peer::first(2).collect()).expect("joined");
    assert!(matches!(end.reach(Peer::new(0)), Err(Unreached::Refused(_))));
}

#[test]
#[should_panic(expected = "more than the cell of a member holds")]
fn a_block_does_not_go_on_in_the_cell_of_the_next_member() {
    let at = tempfile::tempdir().expect("a directory");
    let path = at.path().join("segment");
    let peers = Peer::first(3).collect();
    let mut root = ShmTransport::join(&path, at.path(), "each", 0, 3, peers).expect("joined");
    let slab = Slab {
        number: 0,
        members: 3,
        me: 0,
    };
    let (size, number, stamp) = (CellSize::Short, 0, 0);
    let block = OwnMemory::new(0, Cells::SHORT_BYTES as isize + 1);
    root.give_each_at_once(&slab, Round { size, number, stamp }, &mut |_| block.reading());
}
