// SPDX-License-Identifier: Apache-2.0
//! Memory of this process that others may have pointers to.

use std::collections::BTreeMap;

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_wire::requests::Target;

/// Most pieces of memory.
const MOST: usize = 1 << 20;

/// Address and length of each, by its number, which is used once.
#[derive(Default)]
pub(crate) struct Regions {
    all: BTreeMap<u32, (u64, u64)>,
    numbers: u32,
}

impl Regions {
    pub(crate) fn add(&mut self, address: u64, length: u64) -> Result<u32> {
        if address.checked_add(length).is_none() {
            fail!(
                abi::MPI_ERR_SIZE,
                argument("size"),
                "is {length}, more than there is memory behind that address"
            );
        }
        if self.all.len() >= MOST || self.numbers == u32::MAX {
            fail!(
                abi::MPI_ERR_NO_MEM,
                "this process has registered {MOST} pieces of memory, and there may be no more"
            );
        }
        self.numbers += 1;
        self.all.insert(self.numbers, (address, length));
        Ok(self.numbers)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Result<()> {
        match self.all.remove(&number) {
            Some(_) => Ok(()),
            None => unknown(number),
        }
    }

    /// A part of one of them.
    pub(crate) fn part(&self, number: u32, offset: u64, length: u64) -> Result<Target> {
        let Some(&(address, size)) = self.all.get(&number) else {
            return unknown(number);
        };
        if offset > size || length > size - offset {
            fail!(
                abi::MPI_ERR_RMA_RANGE,
                "{length} bytes from byte {offset} on are not within the memory, which has {size} bytes"
            );
        }
        Ok(Target {
            region: number,
            address: address + offset,
            length,
        })
    }

    /// Whether memory that another process names is registered here, all of it.
    pub(crate) fn have(&self, target: &Target) -> bool {
        let region = self.all.get(&target.region);
        region.is_some_and(|&(address, length)| {
            let offset = target.address.wrapping_sub(address);
            target.address >= address && offset <= length && target.length <= length - offset
        })
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }
}

fn unknown<T>(number: u32) -> Result<T> {
    fail!(
        abi::MPI_ERR_ARG,
        argument("memory"),
        "is {}, which isthmus_memory_register has not given, or which was unregistered",
        number as i32
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_registered_is_there() {
        let mut regions = Regions::default();
        let number = regions.add(1000, 100).expect("room");
        let target = |address, length| Target {
            region: number,
            address,
            length,
        };
        for (address, length) in [(1000, 100), (1000, 0), (1100, 0), (1050, 50)] {
            assert!(regions.have(&target(address, length)), "{address} {length}");
        }
        for (address, length) in [
            (999, 1),
            (1000, 101),
            (1101, 0),
            (1050, 51),
            (1050, u64::MAX),
            (u64::MAX, 2),
        ] {
            assert!(!regions.have(&target(address, length)), "{address} {length}");
        }
        assert!(regions.add(u64::MAX, 2).is_err());
        assert!(regions.part(number, 90, 11).is_err() && regions.part(number, u64::MAX, 1).is_err());
        assert_eq!(regions.part(number, 90, 10).ok(), Some(target(1090, 10)));
        regions.remove(number).expect("it is there");
        assert!(!regions.have(&target(1000, 1)) && regions.remove(number).is_err());
    }
}
