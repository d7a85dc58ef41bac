// SPDX-License-Identifier: Apache-2.0
//! Operations in shared memory: right for every root and size, without a message, and only where they are allowed.

use isthmus_schedule::check::Case;
use isthmus_schedule::{Call, Network, Operation, Overrides, together};
use isthmus_topology::{Level, Shape};

const OPERATIONS: [Operation; 8] = [
    Operation::Barrier,
    Operation::Bcast,
    Operation::Reduce,
    Operation::Allreduce,
    Operation::Gather,
    Operation::Scatter,
    Operation::Allgather,
    Operation::Alltoall,
];

#[test]
fn every_operation_is_right_and_sends_nothing() {
    for size in [1, 2, 3, 5, 16] {
        let network = Network::plain(Shape::flat(size, Level::Node));
        for operation in OPERATIONS {
            for root in 0..size {
                for (units, in_place) in [(1, false), (3, true), (7, false)] {
                    let mut case = Case::new(&network, operation, units);
                    case.call.together = true;
                    case.call.commutative = false;
                    case.call.root = root;
                    case.call.in_place = in_place && !matches!(operation, Operation::Bcast | Operation::Barrier);
                    let report = case.check(u64::from(root) + 1);
                    let report =
                        report.unwrap_or_else(|fault| panic!("{} of {size}, root {root}: {fault}", operation.name()));
                    assert_eq!(report.data.messages, [0; Level::COUNT], "{}", operation.name());
                }
            }
        }
    }
}

#[test]
fn only_where_it_is_allowed() {
    let none = Overrides::default();
    let mut call = Call::new(Operation::Allreduce, 4);
    assert_eq!(together(&call, &none, 4, 0), None);
    call.together = true;
    assert!(together(&call, &none, 4, 0).is_some());
    call.fixed = true;
    assert_eq!(
        together(&call, &none, 4, 0),
        None,
        "the fixed order of association is another one"
    );
    call.fixed = false;
    let said = |text| together(&call, &Overrides::parse(text).unwrap(), 4, 0).is_some();
    assert!(said("allreduce=together") && said("bcast=tree") && !said("allreduce=doubling"));
    assert_eq!(
        together(
            &Call {
                operation: Operation::Scan,
                ..call
            },
            &none,
            4,
            0
        ),
        None
    );
}
