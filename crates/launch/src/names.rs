// SPDX-License-Identifier: Apache-2.0
//! Names that processes of a job have published, for each other.

use isthmus_wire::question::{Kind, Refusal};
use isthmus_wire::word::counted;
use std::collections::BTreeMap;

/// Most names that a process has published at a time.
pub(crate) const MOST: usize = 256;

/// A process: subjob and index.
pub(crate) type Publisher = (usize, u32);

/// The names of a job.
#[derive(Debug, Default)]
pub(crate) struct Names {
    published: BTreeMap<String, (String, Publisher)>,
}

impl Names {
    /// From now on the name stands for this port.
    pub(crate) fn publish(&mut self, by: Publisher, name: String, port: String) -> Result<(), Refusal> {
        match self.published.get(&name) {
            // A question that was asked twice, because a connection was lost.
            Some(known) if *known == (port.clone(), by) => return Ok(()),
            Some(_) => {
                let why = format!("the name '{name}' is published in this job already: unpublish it first");
                return Err(Refusal::new(Kind::Taken, why));
            }
            None => {}
        }
        if self
            .published
            .values()
            .filter(|(_, publisher)| *publisher == by)
            .count()
            >= MOST
        {
            let why = format!("this process has published {} already", counted(MOST, "name"));
            return Err(Refusal::new(Kind::Unable, why));
        }
        self.published.insert(name, (port, by));
        Ok(())
    }

    /// Which port it stands for.
    pub(crate) fn look_up(&self, name: &str) -> Option<&str> {
        self.published.get(name).map(|(port, _)| port.as_str())
    }

    /// From now on it does not stand for this port. Whether it has, as published by this process.
    pub(crate) fn unpublish(&mut self, by: Publisher, name: &str, port: &str) -> bool {
        let own = self
            .published
            .get(name)
            .is_some_and(|known| known.0 == port && known.1 == by);
        own && self.published.remove(name).is_some()
    }

    /// A process has ended, and its ports with it.
    pub(crate) fn forget(&mut self, by: Publisher) {
        self.published.retain(|_, (_, publisher)| *publisher != by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_publishers_until_that_ends() {
        let mut names = Names::default();
        let publish = |names: &mut Names, by, port: &str| names.publish(by, "ocean".into(), port.into());
        assert_eq!(publish(&mut names, (0, 1), "p"), Ok(()));
        assert_eq!(publish(&mut names, (0, 1), "p"), Ok(()), "asked again");
        for (by, port) in [((0, 1), "q"), ((0, 2), "p")] {
            assert_eq!(publish(&mut names, by, port).unwrap_err().kind, Kind::Taken);
            assert!(!names.unpublish(by, "ocean", port));
        }
        assert_eq!(names.look_up("ocean"), Some("p"));
        assert_eq!(names.look_up("Ocean"), None);
        assert!(names.unpublish((0, 1), "ocean", "p") && !names.unpublish((0, 1), "ocean", "p"));
        assert_eq!(publish(&mut names, (0, 2), "r"), Ok(()));
        names.forget((0, 2));
        assert_eq!(names.look_up("ocean"), None);
    }

    #[test]
    fn a_process_has_so_many_names() {
        let mut names = Names::default();
        for n in 0..MOST {
            assert_eq!(names.publish((0, 0), n.to_string(), "p".into()), Ok(()));
        }
        assert_eq!(
            names.publish((0, 0), "x".into(), "p".into()).unwrap_err().kind,
            Kind::Unable
        );
        assert_eq!(names.publish((0, 1), "x".into(), "p".into()), Ok(()));
    }
}
