// SPDX-License-Identifier: Apache-2.0
//! How Lustre says that it has laid a file out: `struct lov_user_md` or `struct lov_comp_md_v1` of lustre_user.h.
//!
//! ```text
//!  plain      0  u32 magic 0x0bd1_0bd0, 0x0bd3_0bd0, 0x0bd5_0bd0
//!             24 u32 bytes of a stripe, 28 u16 number of stripes (0xffff: all servers)
//!  composite  0  u32 magic 0x0bd6_0bd0, 14 u16 number of components
//!             32 for each component 48 bytes, in which 24 u32 where its plain layout begins
//! ```

/// Stripes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of one; 0: not known.
    pub unit: u32,
    /// Servers that they go to in turn; 0: not known.
    pub count: u16,
}

impl Layout {
    /// What the bytes say. In files of several components the last one has most of the data.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match long(bytes, 0)? {
            0x0bd1_0bd0 | 0x0bd3_0bd0 | 0x0bd5_0bd0 => Self::plain(bytes),
            0x0bd6_0bd0 => {
                let last = usize::from(short(bytes, 14)?.checked_sub(1)?);
                // Entries have 48 bytes and begin behind 32.
                let place = long(bytes, 32 + 48 * last + 24)? as usize;
                Self::plain(bytes.get(place..)?)
            }
            _ => None,
        }
    }

    fn plain(bytes: &[u8]) -> Option<Self> {
        let unit = long(bytes, 24)?;
        // All servers there are.
        let count = short(bytes, 28).filter(|count| *count != u16::MAX)?;
        (unit > 0).then_some(Self { unit, count })
    }

    /// As processes tell each other.
    pub fn encode(self) -> [u8; 8] {
        (u64::from(self.unit) | u64::from(self.count) << 32).to_le_bytes()
    }

    /// What another process has told.
    pub fn decode(word: u64) -> Self {
        Self {
            unit: word as u32,
            count: (word >> 32) as u16,
        }
    }
}

/// Numbers are little-endian on every machine.
fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct lov_user_md_v3` without objects.
    fn plain(unit: u32, count: u16) -> Vec<u8> {
        let mut bytes = 0x0bd3_0bd0_u32.to_le_bytes().to_vec();
        bytes.resize(24, 7);
        bytes.extend(unit.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.resize(48, 0);
        bytes
    }

    fn composite(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = 0x0bd6_0bd0_u32.to_le_bytes().to_vec();
        bytes.resize(14, 7);
        bytes.extend((parts.len() as u16).to_le_bytes());
        bytes.resize(32, 0);
        let mut place = 32 + 48 * parts.len();
        for part in parts {
            let entry = bytes.len();
            bytes.resize(entry + 24, 7);
            bytes.extend((place as u32).to_le_bytes());
            bytes.resize(entry + 48, 0);
            place += part.len();
        }
        bytes.extend(parts.concat());
        bytes
    }

    #[test]
    fn layouts_of_lustre_are_understood() {
        let wanted = Layout {
            unit: 4 << 20,
            count: 8,
        };
        let whole = plain(4 << 20, 8);
        assert_eq!(Layout::parse(&whole), Some(wanted));
        assert_eq!(Layout::decode(u64::from_le_bytes(wanted.encode())), wanted);
        let parts = composite(&[plain(1 << 20, 1), whole]);
        assert_eq!(Layout::parse(&parts), Some(wanted));
        // Whatever is cut off or makes no sense is not known.
        for length in 0..parts.len() {
            let cut = Layout::parse(&parts[..length]);
            assert!(cut.is_none() || cut == Some(wanted), "{length}: {cut:?}");
        }
        assert_eq!(Layout::parse(&plain(0, 1)), None);
        assert_eq!(Layout::parse(&plain(1 << 20, u16::MAX)), None);
        assert_eq!(Layout::parse(&composite(&[])), None);
    }
}
