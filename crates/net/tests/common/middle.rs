// SPDX-License-Identifier: Apache-2.0
//! Lines that break.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// What stands between two processes and can do harm.
#[derive(Clone)]
pub(crate) struct Middle {
    pub(crate) port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    pub(crate) silent: Arc<AtomicBool>,
    /// Bytes towards who listens before the line falls silent.
    pub(crate) left: Arc<AtomicI64>,
    /// Bytes, either way, before all connections break.
    breaks: Arc<AtomicI64>,
    harm: Option<Harm>,
}

/// The first connections are harmed, each once, somewhere.
#[derive(Clone, Copy)]
pub(crate) struct Harm {
    pub(crate) seed: u64,
    /// How many of them.
    pub(crate) connections: u64,
}

/// What happens to the bytes of one direction of a connection, and where.
struct Wound {
    random: u64,
    at: u64,
    seen: u64,
}

impl Wound {
    /// Next random number, below this one.
    fn below(&mut self, n: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % n
    }

    fn new(Harm { seed, connections }: Harm, number: u64, backwards: bool) -> Option<Self> {
        let mut wound = Self {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number << 32,
            at: 0,
            seen: 0,
        };
        let hits = wound.below(4) > 0 && (wound.below(2) > 0) == backwards;
        // As often in a handshake as after it.
        let magnitude = wound.below(17);
        wound.at = (1 << magnitude) - 1 + wound.below(1 << magnitude);
        (number < connections && hits).then_some(wound)
    }

    /// What comes out instead of these bytes; `None`: the line breaks.
    fn passes(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = bytes.to_vec();
        let begin = self.seen;
        self.seen += bytes.len() as u64;
        if self.at < begin || self.at >= self.seen {
            return Some(out);
        }
        let at = (self.at - begin) as usize;
        let length = (1 + self.below(64) as usize).min(out.len() - at);
        match self.below(6) {
            0 => out[at] ^= 1 << self.below(8),
            1 => drop(out.splice(at..at, bytes[at..at + length].to_vec())),
            2 => drop(out.splice(at..at, vec![self.below(256) as u8; length])),
            3 => out[at..at + length].reverse(),
            4 => drop(out.drain(at..at + length)),
            _ => return None,
        }
        Some(out)
    }
}

impl Middle {
    pub(crate) fn new(to: u16) -> Self {
        Self::with(to, None)
    }

    pub(crate) fn harmful(to: u16, harm: Harm) -> Self {
        Self::with(to, Some(harm))
    }

    fn with(to: u16, harm: Option<Harm>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let middle = Self {
            port: listener.local_addr().unwrap().port(),
            streams: Arc::default(),
            silent: Arc::default(),
            left: Arc::new(AtomicI64::new(i64::MAX)),
            breaks: Arc::new(AtomicI64::new(i64::MAX)),
            harm,
        };
        let this = middle.clone();
        std::thread::spawn(move || {
            for (number, a) in (0..).zip(listener.incoming().map_while(Result::ok)) {
                let Ok(b) = TcpStream::connect(("127.0.0.1", to)) else {
                    continue;
                };
                // What was connected while the line was silent stays silent.
                let silent = this.silent.load(Ordering::SeqCst);
                for (from, to, backwards) in [(&a, &b, false), (&b, &a, true)] {
                    let wound = this.harm.and_then(|harm| Wound::new(harm, number, backwards));
                    this.streams.lock().unwrap().push(from.try_clone().unwrap());
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let left = (!backwards).then(|| this.left.clone());
                    this.clone().carry((from, to), silent, wound, left);
                }
            }
        });
        middle
    }

    fn carry(
        self,
        (mut from, mut to): (TcpStream, TcpStream),
        mut silent: bool,
        mut wound: Option<Wound>,
        left: Option<Arc<AtomicI64>>,
    ) {
        std::thread::spawn(move || {
            let mut buffer = [0; 5000];
            loop {
                let mut n = match from.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => n,
                };
                let before = self.breaks.fetch_sub(n as i64, Ordering::SeqCst);
                if (0..n as i64).contains(&before) {
                    self.reset();
                }
                if let Some(left) = &left {
                    let before = left.fetch_sub(n as i64, Ordering::SeqCst);
                    if before < n as i64 {
                        n = before.max(0) as usize;
                        let _ = to.write_all(&buffer[..n]);
                        self.silent.store(true, Ordering::SeqCst);
                    }
                }
                silent |= self.silent.load(Ordering::SeqCst);
                if silent {
                    continue;
                }
                let changed = wound.as_mut().map(|wound| wound.passes(&buffer[..n]));
                let passed = match &changed {
                    None => to.write_all(&buffer[..n]).is_ok(),
                    Some(Some(bytes)) => to.write_all(bytes).is_ok(),
                    Some(None) => false,
                };
                if !passed {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        });
    }

    /// All connections break when so many bytes have come.
    pub(crate) fn reset_after(&self, bytes: i64) {
        self.breaks.store(bytes, Ordering::SeqCst);
    }

    pub(crate) fn reset(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
