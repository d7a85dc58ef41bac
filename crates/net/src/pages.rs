// SPDX-License-Identifier: Apache-2.0
//! Where in its page the kernel puts what is sent, as far as that can be known.
//!
//! The kernel copies what is sent into pages that it fills one behind the other, whatever the socket, and when a system
//! call begins while nothing that lies in them is needed any more, it begins at the start of its pages again. Where the
//! place of a copy lies just behind its source, modulo the size of a page, processors take the next loads for loads of
//! what is still being stored and wait: `rep movsb`, with which the kernel copies, took 0.29 ns a byte at a distance of
//! 1 to 15 bytes on Zen 4, up to 0.08 at 16 to 31, otherwise 0.025. While it waits, the receiver takes everything, so
//! that the kernel begins at the start of its pages again and the next fragment is as slow. Large memory of `malloc`
//! begins 16 bytes into a page, and our headers have 32: without care most long messages are copied at just this
//! distance.
//!
//! Hence fragments that are followed by others end where pages end, so that it does not matter whether the kernel
//! begins again there; and where a payload would come too near to its source, padding comes before it.

use isthmus_wire::frame::{HEADER_BYTES, Header, Kind};

/// Bytes of the pages modulo which processors compare addresses.
const PAGE: usize = 4096;
/// Least distance, in both directions: the stores that may still be on their way to the cache.
const APART: usize = 512;
/// Shorter fragments are not worth the padding.
const WORTH: usize = 512 << 10;
/// Longest payload of a [`Kind::Padding`].
pub(crate) const MAX_PADDING: usize = PAGE;

/// The place in its page of the next byte that a thread sends, if the kernel did not begin again since
/// [`Fill::restart`]. A guess: the program may have sockets of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fill(usize);

impl Fill {
    /// So many bytes were sent.
    pub(crate) fn sent(&mut self, n: usize) {
        self.0 = (self.0 + n) % PAGE;
    }

    /// The other ends have all that was sent.
    pub(crate) fn restart(&mut self) {
        self.0 = 0;
    }

    /// Whether it matters where fragments of so many bytes lie.
    pub(crate) fn matters(fragment: usize) -> bool {
        fragment >= WORTH
    }

    /// Least distance, modulo a page, of a payload at `address` from the places where the kernel may put it after
    /// `before` bytes.
    fn apart(self, before: usize, address: usize) -> usize {
        let distance = |place: usize| (place + before).wrapping_sub(address) % PAGE;
        let least = |place| distance(place).min(PAGE - distance(place));
        least(0).min(least(self.0))
    }

    /// What to send before the header of the payload at this address: padding where it helps.
    pub(crate) fn lead(self, address: usize, lead: &mut Vec<u8>) {
        lead.clear();
        if self.apart(HEADER_BYTES, address) < APART {
            let sizes = (0..MAX_PADDING).step_by(HEADER_BYTES);
            let best = sizes.max_by_key(|bytes| self.apart(HEADER_BYTES + bytes + HEADER_BYTES, address));
            let bytes = best.unwrap_or_default();
            lead.extend_from_slice(&Header::control(Kind::Padding, 0, 0, bytes as u64).encode());
            lead.resize(HEADER_BYTES + bytes, 0);
        }
    }

    /// Bytes of a fragment, at most `fragment`, that ends where a page ends if its `lead` bytes of padding and header
    /// began where one began.
    pub(crate) fn whole_pages(fragment: usize, lead: usize) -> usize {
        fragment - lead % PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_far_from_their_sources_modulo_a_page() {
        let mut lead = Vec::new();
        for place in (0..PAGE).step_by(24) {
            for address in (1 << 20..(1 << 20) + PAGE).step_by(8) {
                Fill(place).lead(address, &mut lead);
                for start in [0, place] {
                    let apart = (start + lead.len() + HEADER_BYTES).wrapping_sub(address) % PAGE;
                    assert!((APART..=PAGE - APART).contains(&apart), "{place} {address}: {apart}");
                }
                if let Some((header, rest)) = lead.split_first_chunk() {
                    let header = Header::decode(header).unwrap();
                    assert_eq!(
                        (header.kind, header.payload_bytes()),
                        (Kind::Padding, rest.len() as u64)
                    );
                    assert!(rest.len() <= MAX_PADDING);
                }
            }
        }
    }

    #[test]
    fn nothing_is_added_where_it_would_not_help() {
        let mut lead = vec![1];
        Fill(0).lead(2048, &mut lead);
        assert!(lead.is_empty());
        Fill(0).lead(16, &mut lead);
        assert_eq!(lead.len() / HEADER_BYTES, PAGE / 2 / HEADER_BYTES);
    }

    #[test]
    fn fragments_end_where_pages_end() {
        for lead in [HEADER_BYTES, 2048, PAGE, PAGE + HEADER_BYTES] {
            let size = Fill::whole_pages(1 << 20, lead);
            assert_eq!((lead + size) % PAGE, 0);
            assert!(size <= 1 << 20 && size > (1 << 20) - PAGE);
        }
    }

    #[test]
    fn places_are_counted_from_the_last_start() {
        let mut fill = Fill::default();
        fill.sent(3 * PAGE + 7);
        assert_eq!(fill, Fill(7));
        fill.restart();
        assert_eq!(fill, Fill::default());
    }
}
