// SPDX-License-Identifier: Apache-2.0
//! How connections between processes begin.

use isthmus_wire::hello::{GREETING_BYTES, Greeting, KNOCK_BYTES, Knock, Purpose};

/// The first bytes on a connection between processes.
pub(crate) fn hello(bytes: &[u8]) {
    if let Some(knock) = bytes.first_chunk::<KNOCK_BYTES>().and_then(Knock::decode) {
        assert_eq!(Knock::decode(&knock.encode()), Some(knock));
    }
    if let Some(greeting) = bytes.first_chunk::<GREETING_BYTES>().and_then(Greeting::decode) {
        assert_eq!(Greeting::decode(&greeting.encode()), Some(greeting));
    }
}

/// What is changed in one: its length, something of the certificate, something of the signature.
pub(crate) fn credentials() -> Vec<Vec<u8>> {
    let changed = |at: usize| [vec![0; at], vec![1]].concat();
    [0, 1, 30, 250, 450, 500].map(changed).into()
}

pub(crate) fn hellos() -> Vec<Vec<u8>> {
    let knock = Knock {
        from: 1,
        to: 2,
        nonce: [3; 32],
        proof: [4; 32],
    };
    vec![
        knock.encode().to_vec(),
        Greeting {
            from: 1,
            to: 2,
            verdict: 1,
            purpose: Purpose::Resume,
        }
        .encode()
        .to_vec(),
    ]
}
