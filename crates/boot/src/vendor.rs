// SPDX-License-Identifier: Apache-2.0
//! The vendor MPI underneath: begun before this process says hello, because it is part of how the machine starts
//! programs.

use std::path::Path;

use isthmus_core::world::LARGEST_VENDOR_TAG;
use isthmus_transport::Peer;
use isthmus_vendor::{Vendor, VendorError, VendorNative, VendorTransport};
use isthmus_wire::place::PlaceTable;

use crate::BootError;
use crate::routes::{node_peers, peer_of};

/// Opens and begins the MPI whose adaptor the agent has named, if it has; gives the rank of this process in its job,
/// too. `single`: only this thread will use it.
pub(crate) fn begin(single: bool) -> Result<Option<(Vendor, u32)>, BootError> {
    let Some(adaptor) = isthmus_settings::VENDOR.read(std::env::var_os) else {
        return Ok(None);
    };
    let mut vendor = Vendor::open(&adaptor).map_err(failed)?;
    let (rank, _) = vendor.begin(single).map_err(failed)?;
    let told = isthmus_settings::VENDOR_RANK.read(std::env::var_os);
    if told != Some(u64::from(rank)) {
        let told = told.map_or_else(|| "nothing".to_owned(), |told| told.to_string());
        return Err(BootError::System(format!(
            "the machine's own MPI says that this is its rank {rank}, but its mpiexec has said {told}; was the program started by \
             the mpiexec of another MPI than that whose mpicc was found, or by srun without what this MPI finds its processes by (srun --mpi=list; \
             --env SLURM_MPI_TYPE=...)?"
        )));
    }
    Ok(Some((vendor, rank)))
}

fn failed(error: VendorError) -> BootError {
    BootError::System(error.to_string())
}

/// What there is over a vendor MPI.
pub(crate) struct Underneath {
    /// To all processes of its job.
    pub(crate) transport: VendorTransport,
    /// Communicators of its own, if all processes of the job can have them.
    pub(crate) native: Option<VendorNative>,
    /// Of the native one that is MPI_COMM_WORLD: peers in order, if all processes are in this job.
    pub(crate) everybody: bool,
    /// To be [settled](Vendor::settle) when all is set up, if the job is on several nodes.
    pub(crate) apart: Option<Vendor>,
}

/// Everything over an MPI that has begun; collective over its job. `threads`: several threads of the program may call
/// MPI at once; such a process must not be blocked inside the other MPI, so then no process of the job has
/// communicators of that.
pub(crate) fn underneath(
    mut vendor: Vendor,
    places: &PlaceTable,
    me: u32,
    directory: &Path,
    threads: bool,
) -> Result<Underneath, BootError> {
    let (peers, near) = (peers(places, me), node_peers(places, me));
    let own = places.places[me as usize].slot;
    let tags = vendor.largest_tag().map_err(failed)? >= LARGEST_VENDOR_TAG;
    let native = (tags && !threads && is_on())
        .then(|| VendorNative::new(vendor.share(), &peers, (&near, own), directory).ok())
        .flatten();
    let everybody = peers.len() == places.places.len();
    let all = vendor.all_agree(native.is_some()).map_err(failed)?;
    Ok(Underneath {
        apart: (near.len() < peers.len()).then(|| vendor.share()),
        native: native.filter(|_| all),
        everybody,
        // Without others only what has no communicator of the vendor goes by frames.
        transport: VendorTransport::new(vendor, peers, !(everybody && all)).map_err(failed)?,
    })
}

/// Whether the vendor MPI has communicators of ours. Without, it moves frames, and everything is done by them:
/// because of `ISTHMUS_VENDOR_COMMS=0`, or in a job that goes on after losses, since nobody takes back what is
/// pending in that MPI when a communicator is revoked.
pub(crate) fn is_on() -> bool {
    !goes_on() && isthmus_settings::VENDOR_COMMS.read(std::env::var_os)
}

/// Whether the job goes on when it loses processes.
pub(crate) fn goes_on() -> bool {
    isthmus_settings::ON_LOSS.read(std::env::var_os) == Some("go-on")
}

/// The processes of a process's vendor job, in the order of their ranks there.
fn peers(places: &PlaceTable, me: u32) -> Vec<Peer> {
    let subjob = places.places[me as usize].subjob;
    let mut peers: Vec<(u32, u32)> = (0u32..)
        .zip(&places.places)
        .filter(|(_, place)| place.subjob == subjob)
        .filter_map(|(rank, place)| Some((place.vendor?, rank)))
        .collect();
    peers.sort_unstable();
    peers.into_iter().map(|(_, rank)| peer_of(rank)).collect()
}
