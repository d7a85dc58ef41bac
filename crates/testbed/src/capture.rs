// SPDX-License-Identifier: Apache-2.0
//! Writing what enters the wide-area links into a pcap file.
//!
//! Link type RAW (101), nanosecond time stamps. A TSO frame stands as one long packet, as in captures
//! taken on a host. The forwarder never waits for the disk: what does not fit is counted as missed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::packet;

const MAGIC_NANOSECONDS: u32 = 0xA1B2_3C4D;
const LINKTYPE_RAW: u32 = 101;
/// Frames that may wait for the disk.
const BACKLOG: usize = 8192;

/// The end of a capture that forwarder threads hold.
#[derive(Clone, Debug)]
pub(crate) struct Tap {
    frames: SyncSender<(SystemTime, Vec<u8>)>,
    missed: Arc<AtomicU64>,
}

impl Tap {
    /// Keeps a copy of the packet in `frame`.
    pub(crate) fn see(&self, frame: &[u8]) {
        let copy = frame[packet::HEADER..].to_vec();
        if self.frames.try_send((SystemTime::now(), copy)).is_err() {
            self.missed.fetch_add(1, Relaxed);
        }
    }
}

/// A running capture; finished by [`Capture::finish`] after all taps are gone.
#[derive(Debug)]
pub(crate) struct Capture {
    writer: JoinHandle<std::io::Result<()>>,
    missed: Arc<AtomicU64>,
}

impl Capture {
    /// Starts writing to `path`.
    pub(crate) fn start(path: &Path) -> Result<(Self, Tap), Error> {
        let doing = format!("write the capture {}", path.display());
        let mut file = BufWriter::new(File::create(path).map_err(Error::system(doing.clone()))?);
        write_header(&mut file).map_err(Error::system(doing.clone()))?;
        let (frames, inbox) = sync_channel(BACKLOG);
        let missed = Arc::new(AtomicU64::new(0));
        let writer = std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_all(file, &inbox))
            .map_err(Error::system(doing))?;
        Ok((
            Self {
                writer,
                missed: Arc::clone(&missed),
            },
            Tap { frames, missed },
        ))
    }

    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }

    /// Waits until everything is in the file.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let result = self
            .writer
            .join()
            .unwrap_or_else(|_| Err(std::io::Error::other("the writer panicked")));
        result.map_err(Error::system("write the capture"))
    }
}

fn write_header(file: &mut impl Write) -> std::io::Result<()> {
    file.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
    file.write_all(&2u16.to_le_bytes())?;
    file.write_all(&4u16.to_le_bytes())?;
    file.write_all(&[0; 8])?;
    file.write_all(&262_144u32.to_le_bytes())?;
    file.write_all(&LINKTYPE_RAW.to_le_bytes())
}

fn write_all(mut file: BufWriter<File>, inbox: &Receiver<(SystemTime, Vec<u8>)>) -> std::io::Result<()> {
    while let Ok((at, bytes)) = inbox.recv() {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        file.write_all(&(since.as_secs() as u32).to_le_bytes())?;
        file.write_all(&since.subsec_nanos().to_le_bytes())?;
        file.write_all(&length.to_le_bytes())?;
        file.write_all(&length.to_le_bytes())?;
        file.write_all(&bytes)?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_holds_what_was_seen() {
        let path = std::env::temp_dir().join(format!("isthmus-capture-{}.pcap", std::process::id()));
        let (capture, tap) = Capture::start(&path).unwrap();
        tap.see(&[&[0; packet::HEADER][..], b"marker in a packet"].concat());
        drop(tap);
        assert_eq!(capture.missed(), 0);
        capture.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + 18);
        assert!(bytes.ends_with(b"marker in a packet"));
    }
}
