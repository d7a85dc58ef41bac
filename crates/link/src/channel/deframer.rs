// SPDX-License-Identifier: Apache-2.0
//! From the bytes of a connection to segments.

use isthmus_wire::segment::{SEGMENT_BYTES, Segment};

use super::Violation;

/// What comes out, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Deframed<'a> {
    /// A segment begins.
    Head(Segment),
    /// Some of what follows its header.
    Bytes(&'a [u8]),
    /// All of it has come.
    End,
}

/// Cuts a stream of bytes, however it comes, into segments. Keeps no more than a header.
#[derive(Debug)]
pub struct Deframer {
    head: [u8; SEGMENT_BYTES],
    have: usize,
    /// Bytes of the body that are still to come.
    left: usize,
}

impl Default for Deframer {
    fn default() -> Self {
        Self {
            head: [0; SEGMENT_BYTES],
            have: 0,
            left: 0,
        }
    }
}

impl Deframer {
    /// Whether something has begun that has not ended.
    pub fn is_inside(&self) -> bool {
        self.have > 0 || self.left > 0
    }

    /// Takes all of these bytes. Stops at the first error, its own or of `to`.
    pub fn feed<E: From<Violation>>(
        &mut self,
        mut bytes: &[u8],
        to: &mut dyn FnMut(Deframed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let n = bytes.len().min(self.left);
                self.left -= n;
                to(Deframed::Bytes(&bytes[..n]))?;
                bytes = &bytes[n..];
                if self.left == 0 {
                    to(Deframed::End)?;
                }
                continue;
            }
            let n = bytes.len().min(SEGMENT_BYTES - self.have);
            self.head[self.have..self.have + n].copy_from_slice(&bytes[..n]);
            self.have += n;
            bytes = &bytes[n..];
            if self.have == SEGMENT_BYTES {
                self.have = 0;
                let segment = Segment::decode(&self.head).map_err(Violation::Segment)?;
                self.left = segment.length as usize;
                to(Deframed::Head(segment))?;
                if self.left == 0 {
                    to(Deframed::End)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use isthmus_wire::segment::Kind;

    use super::*;

    #[test]
    fn segments_come_out_however_the_stream_is_cut() {
        let long = Segment {
            length: 100,
            ..Segment::control(Kind::Ordered, 1)
        };
        let ack = Segment::control(Kind::Ack, 7);
        let stream = [&long.encode()[..], &[5; 100], &ack.encode()].concat();
        for step in [1, 31, 32, 33, 1000] {
            let (mut deframer, mut heads, mut bytes, mut ends) = (Deframer::default(), vec![], 0, 0);
            for piece in stream.chunks(step) {
                let mut to = |part: Deframed<'_>| -> Result<(), Violation> {
                    match part {
                        Deframed::Head(h) => heads.push(h),
                        Deframed::Bytes(b) => bytes += b.len(),
                        Deframed::End => ends += 1,
                    }
                    Ok(())
                };
                deframer.feed(piece, &mut to).unwrap();
            }
            assert_eq!((heads, bytes, ends), (vec![long, ack], 100, 2), "step {step}");
        }
        let refused: Result<(), Violation> = Deframer::default().feed(&[9; 32], &mut |_| Ok(()));
        assert!(matches!(refused, Err(Violation::Segment(_))));
    }
}
