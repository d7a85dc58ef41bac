// SPDX-License-Identifier: Apache-2.0
//! Frames of a TUN device with IFF_VNET_HDR, and cutting big TCP ones at packet boundaries.
//!
//! ```text
//! 0      1      2         4         6           8            10
//! +------+------+---------+---------+-----------+------------+----------------------
//! |flags | gso  | hdr_len | gso_size| csum_start| csum_offset| IPv4 or IPv6 packet ...
//! +------+------+---------+---------+-----------+------------+----------------------
//!   u8     u8     u16 in the machine's byte order (struct virtio_net_hdr, legacy)
//! ```
//!
//! With TSO one frame may carry up to 64 KiB of TCP payload that will be many packets on a line. The
//! kernel leaves the checksum to whoever sends it (`NEEDS_CSUM`: the field holds the sum of the pseudo
//! header only), so that a part of such a frame is made by changing lengths and numbers alone. TSO is asked for with
//! IPv4 only: a frame with an IPv6 packet is one packet.

use std::net::IpAddr;

/// Bytes in front of the IP packet.
pub(crate) const HEADER: usize = 10;
/// Largest frame a TUN device gives.
pub(crate) const MAX_FRAME: usize = HEADER + 65_535;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_ECN: u8 = 0x80;
const PROTOCOL_TCP: u8 = 6;
const FLAG_FIN: u8 = 0x01;
const FLAG_PSH: u8 = 0x08;
const FLAG_CWR: u8 = 0x80;

/// A frame seen as the packets it will be on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    /// IP and TCP headers of each packet; 0 for a frame that is one packet.
    headers: usize,
    /// TCP payload of each packet but the last.
    segment: usize,
    /// TCP payload of all; for a single packet all its IP bytes.
    payload: usize,
}

impl Burst {
    /// Reads the headers of `frame`; `None` when it is not IP or is cut short.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let packet = frame.get(HEADER..)?;
        let version = packet.first().map_or(0, |b| b >> 4);
        if packet.len() < 20 || !matches!(version, 4 | 6) {
            return None;
        }
        if version == 6 || frame[1] & !GSO_ECN != GSO_TCPV4 || packet[9] != PROTOCOL_TCP {
            return Some(Self {
                headers: 0,
                segment: packet.len(),
                payload: packet.len(),
            });
        }
        let ip = usize::from(packet[0] & 15) * 4;
        let tcp = usize::from(*packet.get(ip + 12)? >> 4) * 4;
        let headers = ip + tcp;
        let segment = usize::from(read_u16_native(frame, 4));
        if ip < 20 || tcp < 20 || segment == 0 || packet.len() <= headers {
            return None;
        }
        Some(Self {
            headers,
            segment,
            payload: packet.len() - headers,
        })
    }

    /// How many packets on the line.
    pub(crate) fn packets(&self) -> usize {
        self.payload.div_ceil(self.segment)
    }

    /// IP bytes of packet `index`.
    pub(crate) fn ip_bytes(&self, index: usize) -> usize {
        self.headers + self.segment.min(self.payload - index * self.segment)
    }

    /// A frame with `count` packets of `frame` from number `first` on.
    pub(crate) fn part(&self, frame: &[u8], first: usize, count: usize) -> Vec<u8> {
        if first == 0 && count == self.packets() {
            return frame.to_vec();
        }
        let body = HEADER + self.headers;
        let start = body + first * self.segment;
        let end = (start + count * self.segment).min(frame.len());
        let mut part = Vec::with_capacity(body + end - start);
        part.extend_from_slice(&frame[..body]);
        part.extend_from_slice(&frame[start..end]);
        self.patch(&mut part, first, count);
        part
    }

    fn patch(&self, part: &mut [u8], first: usize, count: usize) {
        part[0] |= NEEDS_CSUM;
        if count == 1 {
            part[1] = GSO_NONE;
            part[4..6].fill(0);
        }
        let packet = &mut part[HEADER..];
        let total = packet.len();
        let ip = usize::from(packet[0] & 15) * 4;
        write_u16(packet, 2, total);
        let id = usize::from(read_u16(packet, 4)) + first;
        write_u16(packet, 4, id);
        packet[10..12].fill(0);
        let sum = fold(sum(&packet[..ip]));
        write_u16(packet, 10, usize::from(!sum));
        self.patch_tcp(packet, ip, first, count);
    }

    fn patch_tcp(&self, packet: &mut [u8], ip: usize, first: usize, count: usize) {
        let total = packet.len();
        let old = u32::from_be_bytes([packet[ip + 4], packet[ip + 5], packet[ip + 6], packet[ip + 7]]);
        let skipped = u32::try_from(first * self.segment).unwrap_or(u32::MAX);
        packet[ip + 4..ip + 8].copy_from_slice(&old.wrapping_add(skipped).to_be_bytes());
        if first + count < self.packets() {
            packet[ip + 13] &= !(FLAG_FIN | FLAG_PSH);
        }
        if first > 0 {
            packet[ip + 13] &= !FLAG_CWR;
        }
        let length = u32::try_from(total - ip).unwrap_or(u32::MAX);
        let pseudo = fold(sum(&packet[12..20]) + u32::from(PROTOCOL_TCP) + length);
        write_u16(packet, ip + 16, usize::from(pseudo));
    }
}

/// Source and destination of the packet in `frame`.
pub(crate) fn ends(frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let at = |range: std::ops::Range<usize>| frame.get(HEADER + range.start..HEADER + range.end);
    if frame.get(HEADER)? >> 4 == 6 {
        let six = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from);
        return six(at(8..24)?).zip(six(at(24..40)?));
    }
    let four = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    four(at(12..16)?).zip(four(at(16..20)?))
}

fn read_u16_native(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes the low 16 bits of `value` in network byte order.
fn write_u16(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at] = (value >> 8 & 0xFF) as u8;
    bytes[at + 1] = (value & 0xFF) as u8;
}

/// Sum of the 16-bit words of an even number of bytes.
fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks_exact(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TSO frame with `payload` bytes in segments of `segment`.
    fn big(payload: usize, segment: u16) -> Vec<u8> {
        let mut frame = vec![NEEDS_CSUM, GSO_TCPV4];
        for word in [40u16, segment, 20, 16] {
            frame.extend_from_slice(&word.to_ne_bytes());
        }
        let mut ip = vec![0u8; 40];
        ip[0] = 0x45;
        write_u16(&mut ip, 2, 40 + payload);
        write_u16(&mut ip, 4, 0xFFFF);
        ip[8] = 64;
        ip[9] = PROTOCOL_TCP;
        ip[12..20].copy_from_slice(&[10, 1, 0, 1, 10, 2, 0, 1]);
        ip[24..28].copy_from_slice(&0xFFFF_FFF0u32.to_be_bytes());
        ip[32] = 5 << 4;
        ip[33] = FLAG_CWR | FLAG_PSH | FLAG_FIN | 0x10;
        frame.extend_from_slice(&ip);
        frame.extend((0..payload).map(|i| i as u8));
        frame
    }

    #[test]
    fn parts_put_together_are_the_whole() {
        let frame = big(3500, 1000);
        let burst = Burst::of(&frame).unwrap();
        assert_eq!((burst.packets(), burst.ip_bytes(0), burst.ip_bytes(3)), (4, 1040, 540));
        let parts = [
            burst.part(&frame, 0, 2),
            burst.part(&frame, 2, 1),
            burst.part(&frame, 3, 1),
        ];
        let payload: Vec<u8> = parts.iter().flat_map(|p| p[HEADER + 40..].to_vec()).collect();
        assert_eq!(payload, frame[HEADER + 40..]);
    }

    #[test]
    fn parts_have_their_own_numbers_flags_and_sums() {
        let frame = big(3500, 1000);
        let burst = Burst::of(&frame).unwrap();
        let last = burst.part(&frame, 3, 1);
        let packet = &last[HEADER..];
        assert_eq!(last[1], GSO_NONE);
        assert_eq!(usize::from(read_u16(packet, 2)), packet.len());
        assert_eq!(read_u16(packet, 4), 2, "identification wraps");
        assert_eq!(fold(sum(&packet[..20])), 0xFFFF, "IP header sum");
        assert_eq!(packet[24..28], 0xFFFF_FFF0u32.wrapping_add(3000).to_be_bytes());
        assert_eq!(packet[33], FLAG_PSH | FLAG_FIN | 0x10);
        let first = burst.part(&frame, 0, 2);
        assert_eq!(first[HEADER + 33], FLAG_CWR | 0x10);
        assert_eq!(first[1], GSO_TCPV4);
        let pseudo = fold(sum(&first[HEADER + 12..HEADER + 20]) + 6 + 2020);
        assert_eq!(read_u16(&first, HEADER + 36), pseudo);
    }

    #[test]
    fn other_packets_are_one_packet() {
        let mut frame = big(100, 1000);
        frame[1] = GSO_NONE;
        let burst = Burst::of(&frame).unwrap();
        assert_eq!((burst.packets(), burst.ip_bytes(0)), (1, 140));
        assert_eq!(burst.part(&frame, 0, 1), frame);
    }

    #[test]
    fn rubbish_is_refused() {
        assert_eq!(Burst::of(&[0; 5]), None);
        assert_eq!(Burst::of(&[0x70; 60]), None);
        let mut frame = big(100, 1000);
        frame.truncate(HEADER + 30);
        assert_eq!(Burst::of(&frame), None);
    }
}
