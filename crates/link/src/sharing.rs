// SPDX-License-Identifier: Apache-2.0
//! Which connection of a channel carries what: classes apart from each other, messages that ask for a kind of
//! connection on one of that kind.

/// Which traffic goes first where a link is the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Before all others, on a connection of its own.
    Latency,
    /// As it comes.
    #[default]
    Normal,
    /// After all others, and so that queues in the network stay short.
    Bulk,
}

/// The kind of connection that messages ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Straight to the peer.
    Direct,
    /// Through the gateways.
    Gateway,
}

/// Which segments a connection takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes {
    /// Those of class [`Class::Latency`].
    pub latency: bool,
    /// Those of class [`Class::Normal`].
    pub normal: bool,
    /// Those of class [`Class::Bulk`].
    pub bulk: bool,
    /// What kind of connection it is, as far as that is known.
    pub path: Option<Path>,
    /// It is there for messages that ask for its kind only.
    pub apart: bool,
}

impl Takes {
    /// All of them.
    pub const ALL: Self = Self {
        latency: true,
        normal: true,
        bulk: true,
        path: None,
        apart: false,
    };

    /// Whether it takes what is sent again: of a connection that may have been of any kind.
    pub fn takes(self, class: Class) -> bool {
        match class {
            Class::Latency => self.latency,
            Class::Normal => self.normal,
            Class::Bulk => self.bulk,
        }
    }

    /// Whether it takes messages that ask for this kind of connection. `there`: the kinds of connection that there are.
    pub fn suits(self, asked: Option<Path>, there: There) -> bool {
        match asked.filter(|path| there.has(*path)) {
            Some(path) => self.path == Some(path),
            None => !self.apart,
        }
    }
}

/// Which kinds of connection a channel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct There {
    /// One straight to the peer.
    pub direct: bool,
    /// One through the gateways.
    pub gateway: bool,
}

impl There {
    /// Whether there is one of this kind.
    pub fn has(self, path: Path) -> bool {
        match path {
            Path::Direct => self.direct,
            Path::Gateway => self.gateway,
        }
    }
}

/// The classes that have connections of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands {
    /// One connection is kept free for it.
    pub latency: bool,
    /// One connection is kept free of it.
    pub bulk: bool,
}

impl Bands {
    /// Of a channel with so many connections for all messages. Which classes its communicators ask for.
    pub fn of(common: usize, any_latency: bool, any_bulk: bool) -> Self {
        let latency = any_latency && common > 1;
        let bulk = any_bulk && common > 1 + usize::from(latency);
        Self { latency, bulk }
    }

    /// What the connection with this number among those for all takes.
    pub fn share(self, index: usize) -> Takes {
        let all = Takes::ALL;
        match (self.latency, index) {
            (true, 0) => Takes {
                normal: false,
                bulk: false,
                ..all
            },
            (latency, index) => Takes {
                latency: !latency,
                bulk: !(self.bulk && index == usize::from(latency)),
                ..all
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_connections_of_their_own_where_there_are_enough() {
        let takes = |latency, bulk, index| {
            let t = Bands { latency, bulk }.share(index);
            (t.latency, t.normal, t.bulk)
        };
        assert_eq!(takes(false, false, 0), (true, true, true));
        assert_eq!(takes(true, false, 0), (true, false, false));
        assert_eq!(takes(true, false, 1), (false, true, true));
        assert_eq!(takes(false, true, 0), (true, true, false));
        assert_eq!(takes(false, true, 1), (true, true, true));
        assert_eq!(takes(true, true, 1), (false, true, false));
        assert_eq!(takes(true, true, 2), (false, true, true));
    }
}
