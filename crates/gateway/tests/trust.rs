// SPDX-License-Identifier: Apache-2.0
//! A gateway carries for its own local area only, and nobody but a gateway is taken for one.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use common::{Gate, PAIR, PATIENCE, SECRET, ask, knock, run, settle_in};
use isthmus_link::trunk::{Event, Trunk};
use isthmus_wire::gateway::WISH_STREAM;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

#[test]
fn nobody_is_taken_for_the_gateway_of_an_area_who_is_not() {
    run(async {
        let mut gate = Gate::start(0).await;
        gate.meet(1, 0).await;
        assert!(knock(gate.port, 1, 0, &PAIR).await.is_some());
        assert!(
            knock(gate.port, 1, 0, &SECRET).await.is_none(),
            "what processes of the area know"
        );
        assert!(
            knock(gate.port, 1, 0, &[9; 32]).await.is_none(),
            "another pair's secret"
        );
    });
}

#[test]
fn a_gateway_that_carries_for_others_is_given_up() {
    run(async {
        let mut gate = Gate::start(0).await;
        let mut elsewhere = Gate::start(5).await;
        // Ranks 0 and 1 are in area 0, ranks 2 and 3 in area 1; the gateway of area 2 has none.
        settle_in([&mut gate, &mut elsewhere], 2).await;
        gate.meet(1, 0).await;
        gate.meet(2, 0).await;
        for (area, from, refused) in [(1, 2, false), (2, 3, true), (2, 3, true), (1, 1, true)] {
            let mut trunk = Trunk::new(true);
            let mut events = Vec::new();
            trunk.open(from, 0, WISH_STREAM).unwrap();
            let question = trunk.output(1 << 16, &mut events);
            let mut stream = knock(gate.port, area, 0, &PAIR).await.unwrap();
            let _ = stream.write_all(&question).await;
            let mut opened = false;
            let mut buffer = [0; 4096];
            while !opened {
                let Ok(n @ 1..) = timeout(PATIENCE, stream.read(&mut buffer)).await.expect("no answer") else {
                    break;
                };
                trunk.input(&buffer[..n], &mut events).unwrap();
                opened = events.iter().any(|e| matches!(e, Event::Opened(_)));
            }
            assert_eq!(opened, !refused, "area {area} in the name of rank {from}");
        }
        gate.until_settled(|s| s.area == 2 && s.why.contains("in the name of rank 3"))
            .await;
        assert!(ask(gate.port, 0, 2, WISH_STREAM).await.is_none());
    });
}
