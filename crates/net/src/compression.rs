// SPDX-License-Identifier: Apache-2.0
//! Lossless compression of segments, for links that are slower than the compressor.
//!
//! zstd, because what is gained on numerical data is gained by its entropy coder: the bytes of a smooth field that are
//! worth anything are few and unevenly distributed, once those of equal weight lie together (LZ4, which has none, gains
//! next to nothing on them). Before it one of a few *filters*: elements of 4 or 8 bytes, replaced by their first or
//! second differences as integers or left as they are, then all first bytes, all second bytes, and so on. Which filter
//! is best is found with a sample.
//!
//! ```text
//!  0         4        5
//!  +---------+--------+------------------------------
//!  | length  | filter | zstd frame of the filtered bytes
//!  +---------+--------+------------------------------
//! ```
//! `length`: of the plain bytes, at most [`MAX_SEGMENT`]; little-endian.

use std::time::{Duration, Instant};

use isthmus_wire::segment::MAX_SEGMENT;

const HEAD: usize = 5;
/// Higher ones gain a few percent on numerical data and cost several times as much.
const LEVEL: i32 = 1;
/// Segments shorter than this are left alone.
pub(crate) const SHORTEST: usize = 1 << 10;
/// Bytes of a sample. It takes 0.28 ms; 2 KiB take 0.20 ms and say up to a tenth too little, so that data next to
/// [`GAIN`] are taken for noise; 32 KiB take 0.67 ms and choose no better filter (`docs/measured/connections.md`).
const SAMPLE: usize = 8 << 10;
/// A gain below this is not worth the trouble: compressing takes up to half of a processor ([`FASTER`]) for less than a
/// tenth of the link. Between it and 1.4 are uniform numbers (1.14 of 8 bytes, 1.17 of 4), random walks (1.26) and
/// fields with little but noise (1.32); below it only what does not shrink at all.
const GAIN: f64 = 1.1;
/// The compressor must be so many times as fast as the link, for the thread has other work.
const FASTER: f64 = 2.0;
/// Bytes that pass before data that did not compress are sampled again, doubled each time up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: usize = 1 << 20;
const LONGEST_PAUSE: usize = 64 << 20;
/// Samples may take this part of the time.
const SAMPLING: u32 = 100;

/// What is done before compression. The numbers are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Bytes of an element: 1 (nothing is done), 4, 8.
    width: u8,
    /// How often differences are taken.
    order: u8,
}

const NONE: Filter = Filter { width: 1, order: 0 };

const FILTERS: [Filter; 7] = [
    NONE,
    Filter { width: 4, order: 0 },
    Filter { width: 4, order: 1 },
    Filter { width: 4, order: 2 },
    Filter { width: 8, order: 0 },
    Filter { width: 8, order: 1 },
    Filter { width: 8, order: 2 },
];

impl Filter {
    fn code(self) -> u8 {
        self.width << 4 | self.order
    }

    fn from_code(code: u8) -> Option<Self> {
        FILTERS.iter().copied().find(|f| f.code() == code)
    }

    /// Into columns of bytes; what does not fill an element comes last, as it is.
    fn apply(self, bytes: &[u8]) -> Vec<u8> {
        match self.width {
            4 => columns::<4>(bytes, self.order),
            8 => columns::<8>(bytes, self.order),
            _ => bytes.to_vec(),
        }
    }

    fn undo(self, bytes: &[u8]) -> Vec<u8> {
        match self.width {
            4 => rows::<4>(bytes, self.order),
            8 => rows::<8>(bytes, self.order),
            _ => bytes.to_vec(),
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

fn columns<const N: usize>(bytes: &[u8], order: u8) -> Vec<u8> {
    let count = bytes.len() / N;
    let mut out = vec![0; bytes.len()];
    let (mut last, mut last_difference) = (0u64, 0u64);
    for (i, element) in bytes.chunks_exact(N).enumerate() {
        let value = number(element);
        let difference = value.wrapping_sub(last);
        let coded = match order {
            0 => value,
            1 => zigzag::<N>(difference),
            _ => zigzag::<N>(difference.wrapping_sub(last_difference)),
        };
        (last, last_difference) = (value, difference);
        for (k, byte) in coded.to_le_bytes()[..N].iter().enumerate() {
            out[k * count + i] = *byte;
        }
    }
    out[count * N..].copy_from_slice(&bytes[count * N..]);
    out
}

fn rows<const N: usize>(bytes: &[u8], order: u8) -> Vec<u8> {
    let count = bytes.len() / N;
    let mut out = vec![0; bytes.len()];
    let (mut last, mut last_difference) = (0u64, 0u64);
    for i in 0..count {
        let mut coded = [0; 8];
        for k in 0..N {
            coded[k] = bytes[k * count + i];
        }
        let coded = u64::from_le_bytes(coded);
        let value = match order {
            0 => coded,
            1 => last.wrapping_add(unzigzag::<N>(coded)),
            _ => last.wrapping_add(last_difference.wrapping_add(unzigzag::<N>(coded))),
        };
        last_difference = value.wrapping_sub(last);
        last = value;
        out[i * N..(i + 1) * N].copy_from_slice(&value.to_le_bytes()[..N]);
    }
    out[count * N..].copy_from_slice(&bytes[count * N..]);
    out
}

/// Small negative numbers become small numbers.
fn zigzag<const N: usize>(value: u64) -> u64 {
    let shift = 64 - 8 * N as u32;
    let value = ((value << shift) as i64) >> shift;
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag<const N: usize>(value: u64) -> u64 {
    let shift = 64 - 8 * N as u32;
    let value = (value << shift) >> shift;
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// What arrived is not what the compressor makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt(&'static str);

impl std::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it sent compressed data with {}", self.0)
    }
}

/// The plain bytes; never more than [`MAX_SEGMENT`].
pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<u8>, Corrupt> {
    let Some((head, frame)) = bytes.split_first_chunk::<HEAD>() else {
        return Err(Corrupt("less than their header"));
    };
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let filter = Filter::from_code(head[4]).ok_or(Corrupt("an unknown filter"))?;
    if length == 0 || length > MAX_SEGMENT {
        return Err(Corrupt("a length above the limit"));
    }
    let plain = zstd::bulk::decompress(frame, length).map_err(|_| Corrupt("a damaged frame"))?;
    if plain.len() != length {
        return Err(Corrupt("another length than they say"));
    }
    Ok(filter.undo(&plain))
}

fn pack(bytes: &[u8], filter: Filter) -> Option<Vec<u8>> {
    let filtered = filter.apply(bytes);
    let mut out = Vec::with_capacity(HEAD + bytes.len());
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.push(filter.code());
    out.extend_from_slice(&zstd::bulk::compress(&filtered, LEVEL).ok()?);
    Some(out)
}

/// The best filter for data like these and what it gains.
fn best(sample: &[u8]) -> (Filter, f64) {
    let gain = |f: Filter| pack(sample, f).map_or(0.0, |out| sample.len() as f64 / out.len() as f64);
    let all = FILTERS.iter().map(|f| (*f, gain(*f)));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((NONE, 0.0))
}

/// Decides, for one class of messages, whether and how they are compressed.
#[derive(Debug)]
pub(crate) struct Adaptive {
    /// What the last sample said, and of which message it was.
    filter: Option<Filter>,
    message: Option<u64>,
    /// Bytes that pass as they are before there is another sample.
    pause: usize,
    next_pause: usize,
    /// Plain bytes per second of the compressor.
    speed: f64,
    began: Instant,
    sampling: Duration,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self {
            filter: None,
            message: None,
            pause: 0,
            next_pause: FIRST_PAUSE,
            speed: 100e6,
            began: Instant::now(),
            sampling: Duration::ZERO,
        }
    }
}

impl Adaptive {
    /// The bytes of a segment, smaller, if that pays on a link that carries so many bytes per second. `message`: the
    /// long message that they are a part of.
    pub(crate) fn press(&mut self, bytes: &[u8], message: Option<u64>, link: f64) -> Option<Vec<u8>> {
        if bytes.len() < SHORTEST || link * FASTER > self.speed {
            return None;
        }
        if message.is_some() && message != self.message {
            // Another message may be of another kind.
            self.message = message;
            self.filter = None;
            self.pause = self.pause.min(bytes.len() * 4);
        }
        if self.pause > 0 {
            self.pause = self.pause.saturating_sub(bytes.len());
            return None;
        }
        let filter = match self.filter {
            Some(filter) => filter,
            None => self.sample(bytes)?,
        };
        let began = Instant::now();
        let out = pack(bytes, filter)?;
        let speed = bytes.len() as f64 / began.elapsed().as_secs_f64().max(1e-6);
        self.speed += (speed - self.speed) / 8.0;
        if (out.len() as f64) * GAIN > bytes.len() as f64 {
            self.give_up();
            return None;
        }
        Some(out)
    }

    fn sample(&mut self, bytes: &[u8]) -> Option<Filter> {
        let began = Instant::now();
        if self.sampling > Duration::from_millis(2) + self.began.elapsed() / SAMPLING {
            return None;
        }
        let (filter, gain) = best(&bytes[..bytes.len().min(SAMPLE)]);
        self.sampling += began.elapsed();
        if gain < GAIN {
            self.give_up();
            return None;
        }
        self.next_pause = FIRST_PAUSE;
        self.filter = Some(filter);
        Some(filter)
    }

    fn give_up(&mut self) {
        self.filter = None;
        self.pause = self.next_pause;
        self.next_pause = (self.next_pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 88_172_645_463_325_252u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn field(count: usize) -> Vec<u8> {
        let value = |i: usize| 280.0 + 15.0 * (i as f32 / 900.0).sin() + (i as f32 / 70.0).cos();
        (0..count).flat_map(|i| value(i).to_le_bytes()).collect()
    }

    #[test]
    fn every_filter_is_undone() {
        for length in [0, 1, 3, 4, 7, 8, 9, 1000, 4099] {
            let bytes = noise(length);
            for filter in FILTERS {
                assert_eq!(filter.undo(&filter.apply(&bytes)), bytes, "{filter:?} {length}");
                if length > 0 {
                    assert_eq!(unpack(&pack(&bytes, filter).unwrap()).unwrap(), bytes);
                }
            }
        }
    }

    #[test]
    fn smooth_fields_gain_and_noise_is_left_alone() {
        let mut adaptive = Adaptive::default();
        let smooth = field(16_384);
        let out = adaptive.press(&smooth, Some(1), 1e6).unwrap();
        assert!(out.len() * 3 < smooth.len(), "{} of {}", out.len(), smooth.len());
        assert_eq!(unpack(&out).unwrap(), smooth);
        assert!(adaptive.press(&noise(65_536), Some(2), 1e6).is_none());
        assert!(adaptive.press(&smooth, Some(2), 1e6).is_none(), "it pauses");
        assert!(adaptive.press(&smooth, Some(3), 1e9).is_none(), "the link is faster");
    }

    #[test]
    fn numbers_that_shrink_by_a_tenth_are_told_from_noise_by_a_sample() {
        let bytes = noise(8 * SAMPLE);
        let (mut words, mut walk) = (bytes.chunks_exact(8).map(number), 0.0);
        let mut uniform = || {
            words
                .next()
                .map_or(0.0, |word| (word >> 11) as f64 / (1u64 << 53) as f64)
        };
        let doubles: Vec<u8> = (0..SAMPLE / 8).flat_map(|_| uniform().to_le_bytes()).collect();
        let singles: Vec<u8> = (0..SAMPLE / 4).flat_map(|_| (uniform() as f32).to_le_bytes()).collect();
        let mut step = || {
            walk += uniform() - 0.5;
            walk
        };
        let walks: Vec<u8> = (0..SAMPLE / 8).flat_map(|_| step().to_le_bytes()).collect();
        for data in [doubles, singles, walks] {
            let gain = best(&data).1;
            assert!((GAIN..4.0 * (GAIN - 1.0) + 1.0).contains(&gain), "{gain}");
        }
        assert!(best(&bytes[..SAMPLE]).1 < 1.0 + (GAIN - 1.0) / 4.0);
    }

    #[test]
    fn damage_is_found_and_bounded() {
        let good = pack(&field(1000), NONE).unwrap();
        assert!(unpack(&good[..3]).is_err());
        assert!(unpack(&good[..good.len() - 1]).is_err());
        for (at, value) in [(4, 0x33), (3, 0x7f), (0, good[0] + 1), (5, 0)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(unpack(&bad).is_err(), "byte {at}");
        }
    }
}
