// SPDX-License-Identifier: Apache-2.0
//! Which protocol a message uses.
//!
//! ```text
//!  eager        sender: Eager(data)        ->                                        done when sent
//!  synchronous  sender: EagerSync(data)    ->  receiver matches: Ack              -> done
//!  announced    sender: Announce           ->  receiver matches, or has room: Cts -> Data ... done when sent
//!  rendezvous   sender: Rts                ->  receiver matches: Cts              -> Data ... done when sent
//!               sender: Rts(handle)        ->  receiver matches, copies: Pulled   -> done
//! ```

use isthmus_wire::frame::Kind;

use crate::calling;
use crate::credit::Account;

/// What bears on the choice.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Bytes of the message.
    pub bytes: u64,
    /// The sender must learn that the message matched.
    pub synchronous: bool,
    /// The transport prefers messages up to this many bytes eager.
    pub eager: u64,
    /// Longest payload of a frame, bytes.
    pub frame: u64,
    /// An answer takes long.
    pub far: bool,
}

/// The first frame of a message; `None`: it must wait for credit.
#[inline]
pub fn first_frame(facts: Facts, account: &Account) -> Option<Kind> {
    let short = facts.bytes <= facts.eager.min(facts.frame);
    if short && account.allows_eager(facts.bytes) {
        return Some(if facts.synchronous {
            Kind::EagerSync
        } else {
            Kind::Eager
        });
    }
    let comes_ahead = facts.far && facts.bytes <= calling::LONGEST;
    let request = if short || comes_ahead {
        Kind::Announce
    } else {
        Kind::Rts
    };
    account.allows_request().then_some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_ask_first() {
        let facts = Facts {
            bytes: 4096,
            synchronous: false,
            eager: 4096,
            frame: 65536,
            far: false,
        };
        let account = Account::default();
        assert_eq!(first_frame(facts, &account), Some(Kind::Eager));
        assert_eq!(
            first_frame(
                Facts {
                    synchronous: true,
                    ..facts
                },
                &account
            ),
            Some(Kind::EagerSync)
        );
        assert_eq!(first_frame(Facts { bytes: 4097, ..facts }, &account), Some(Kind::Rts));
        assert_eq!(first_frame(Facts { frame: 4000, ..facts }, &account), Some(Kind::Rts));
        let far = |bytes| Facts {
            bytes,
            far: true,
            ..facts
        };
        assert_eq!(first_frame(far(4096), &account), Some(Kind::Eager));
        assert_eq!(first_frame(far(calling::LONGEST), &account), Some(Kind::Announce));
        assert_eq!(first_frame(far(calling::LONGEST + 1), &account), Some(Kind::Rts));
    }

    #[test]
    fn without_credit_messages_ask_or_wait() {
        let facts = Facts {
            bytes: 100,
            synchronous: false,
            eager: 4096,
            frame: 65536,
            far: false,
        };
        let mut account = Account::default();
        account.sent(crate::credit::WINDOW);
        assert_eq!(first_frame(facts, &account), Some(Kind::Announce));
        let long = Facts { bytes: 5000, ..facts };
        assert_eq!(first_frame(long, &account), Some(Kind::Rts));
        let tiny = Facts { bytes: 8, ..facts };
        assert_eq!(first_frame(tiny, &account), Some(Kind::Eager));
        account.sent(crate::credit::LIMIT);
        for facts in [facts, long, tiny] {
            assert_eq!(first_frame(facts, &account), None);
        }
    }
}
