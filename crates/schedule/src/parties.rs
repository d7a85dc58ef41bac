// SPDX-License-Identifier: Apache-2.0
//! Rounds of halving or doubling need a power of two: members above it come in pairs with neighbours, from the first
//! on. The first of a pair, a *guest*, gives the second what he has, who takes part for both, and gets his result from
//! him.

/// Those who take part in the rounds: single members, and the pairs of the first ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parties {
    /// How many there are: a power of two.
    pub(crate) count: u32,
    /// How many of them, the first ones, are pairs.
    pub(crate) pairs: u32,
}

/// What a member does. Others are named by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Another member takes part in the rounds for him.
    Guest { host: u32 },
    /// Takes part as the party of this number.
    Party { number: u32, guest: Option<u32> },
}

impl Parties {
    /// Those of so many members.
    pub(crate) const fn of(members: u32) -> Self {
        let count = 1 << members.ilog2();
        Self {
            count,
            pairs: members - count,
        }
    }

    /// Number of rounds.
    pub(crate) const fn rounds(self) -> u32 {
        self.count.ilog2()
    }

    /// What a member does.
    pub(crate) const fn role(self, member: u32) -> Role {
        if member >= 2 * self.pairs {
            return Role::Party {
                number: member - self.pairs,
                guest: None,
            };
        }
        match member % 2 {
            0 => Role::Guest { host: member + 1 },
            _ => Role::Party {
                number: member / 2,
                guest: Some(member - 1),
            },
        }
    }

    /// The member who takes part as a party.
    pub(crate) const fn host(self, party: u32) -> u32 {
        match party < self.pairs {
            true => 2 * party + 1,
            false => party + self.pairs,
        }
    }

    /// Messages where each party sends one in so many rounds, and guests and hosts one to each other.
    pub(crate) fn messages(members: u64, rounds: impl Fn(u64) -> u64) -> u64 {
        let each = u64::from(members.max(1).ilog2());
        let count = 1 << each;
        count * rounds(each) + 2 * (members.max(1) - count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_one_role_and_every_party_one_host() {
        for members in 1..40 {
            let parties = Parties::of(members);
            assert!(parties.count.is_power_of_two() && parties.count <= members && members < 2 * parties.count);
            let mut hosts = 0;
            for member in 0..members {
                match parties.role(member) {
                    Role::Guest { host } => assert!(matches!(
                        parties.role(host),
                        Role::Party { guest: Some(guest), .. } if guest == member
                    )),
                    Role::Party { number, .. } => {
                        assert_eq!((parties.host(number), number), (member, hosts));
                        hosts += 1;
                    }
                }
            }
            assert_eq!(hosts, parties.count);
        }
        assert_eq!(Parties::messages(6, |rounds| rounds), 4 * 2 + 2 * 2);
    }
}
