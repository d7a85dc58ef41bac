// SPDX-License-Identifier: Apache-2.0
//! The machine's own MPI underneath: begun before this process says hello, because it is part of how the machine starts programs.

use std::path::Path;

use isthmus_vendor::{Vendor, VendorError, VendorTransport};
use isthmus_wire::place::PlaceTable;

use crate::BootError;

/// Opens and begins the MPI whose adaptor the agent has named, if it has. `index`: of this process in its subjob.
pub(crate) fn begin(index: u32) -> Result<Option<Vendor>, BootError> {
    let Some(adaptor) = std::env::var_os("ISTHMUS_VENDOR").filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let mut vendor = Vendor::open(Path::new(&adaptor)).map_err(failed)?;
    let (rank, _) = vendor.begin().map_err(failed)?;
    if rank != index {
        return Err(BootError::System(format!(
            "the machine's own MPI says that this is its rank {rank}, but its mpiexec has said {index}; was the program started by \
             the mpiexec of another MPI than that whose mpicc was found?"
        )));
    }
    Ok(Some(vendor))
}

fn failed(error: VendorError) -> BootError {
    BootError::System(error.to_string())
}

/// The transport to all processes of the machine's own MPI's job.
pub(crate) fn transport(vendor: Vendor, places: &PlaceTable, me: u32) -> Result<VendorTransport, BootError> {
    VendorTransport::new(vendor, peers(places, me)).map_err(failed)
}

/// Ranks in MPI_COMM_WORLD of the processes of a process's vendor job, in the order of their ranks there.
fn peers(places: &PlaceTable, me: u32) -> Vec<u32> {
    let subjob = places.places[me as usize].subjob;
    let mut peers: Vec<(u32, u32)> = (0u32..)
        .zip(&places.places)
        .filter(|(_, place)| place.subjob == subjob)
        .filter_map(|(rank, place)| Some((place.vendor?, rank)))
        .collect();
    peers.sort_unstable();
    peers.into_iter().map(|(_, rank)| rank).collect()
}
