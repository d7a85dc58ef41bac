// SPDX-License-Identifier: Apache-2.0
//! Whatever happens to the machines of this room, in whichever order: what must hold does. The fuzz targets of the same
//! names go on for longer.

use isthmus_link::fuzz;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn anything_may_be_said_to_measure(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz::gauge(&bytes, std::time::Instant::now());
    }

    #[test]
    fn anything_may_happen_to_a_channel(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz::life(&bytes);
    }

    #[test]
    fn anything_may_become_of_a_handshake(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz::handshake(&bytes);
    }

    #[test]
    fn anything_may_come_of_dialling_and_anybody_may_come(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz::reaching(&bytes);
    }
}
