// SPDX-License-Identifier: Apache-2.0
//! Operations that move data. Units are bytes of the packed stream.

use std::ffi::c_int;

use isthmus_core::collective::{start, start_with_counts};
use isthmus_core::error::Result;
use isthmus_engine::{Binding, BoundBuffer, Request};
use isthmus_schedule::{Blocks, Call, Operation};

use super::{Elements, Number, Place, Unequal};
use crate::c::{Source, Target};

pub(super) fn barrier(place: &Place) -> Result<Request> {
    Ok(start(
        place.world,
        place.comm,
        &Call::new(Operation::Barrier, 0),
        Binding::nothing(),
    ))
}

pub(super) fn bcast(place: &Place, data: Elements<Target>, root: c_int) -> Result<Request> {
    let mut call = Call::new(Operation::Bcast, data.bytes(place)?);
    call.root = place.root(root)?;
    let binding = Binding::bytes(BoundBuffer::none(), data.writing(1)?);
    Ok(start(place.world, place.comm, &call, binding))
}

pub(super) fn gather(place: &Place, from: Elements<Source>, into: Elements<Target>, root: c_int) -> Result<Request> {
    let root = place.root(root)?;
    let at_root = root == place.comm.rank();
    let in_place = at_root && from.is_in_place();
    let bytes = if in_place {
        into.bytes(place)?
    } else {
        from.bytes(place)?
    };
    let mut call = Call::new(Operation::Gather, bytes);
    (call.root, call.in_place) = (root, in_place);
    let send = if in_place {
        BoundBuffer::none()
    } else {
        from.reading(1)?
    };
    let receive = if at_root {
        into.writing(place.size())?
    } else {
        BoundBuffer::none()
    };
    Ok(start(place.world, place.comm, &call, Binding::bytes(send, receive)))
}

pub(super) fn gatherv<C: Number, D: Number>(
    place: &Place,
    from: Elements<Source>,
    into: Unequal<Target, C, D>,
    root: c_int,
) -> Result<Request> {
    let root = place.root(root)?;
    let at_root = root == place.comm.rank();
    let in_place = at_root && from.is_in_place();
    let mut call = Call::new(Operation::Gatherv, 0);
    (call.root, call.in_place) = (root, in_place);
    let send = if in_place {
        BoundBuffer::none()
    } else {
        from.reading(1)?
    };
    let (receive, own) = if at_root {
        let sizes = into.sizes(place)?;
        let own = sizes[place.rank()];
        call.blocks = Blocks::known(sizes);
        (into.writing(place.size())?, own)
    } else {
        let own = from.bytes(place)?;
        call.blocks = Blocks::Own(own);
        (BoundBuffer::none(), own)
    };
    start_with_counts(place.world, place.comm, call, Binding::bytes(send, receive), &[own])
}

pub(super) fn scatter(place: &Place, from: Elements<Source>, into: Elements<Target>, root: c_int) -> Result<Request> {
    let root = place.root(root)?;
    let at_root = root == place.comm.rank();
    let in_place = at_root && into.is_in_place();
    let bytes = if at_root {
        from.bytes(place)?
    } else {
        into.bytes(place)?
    };
    let mut call = Call::new(Operation::Scatter, bytes);
    (call.root, call.in_place) = (root, in_place);
    let send = if at_root {
        from.reading(place.size())?
    } else {
        BoundBuffer::none()
    };
    let receive = if in_place {
        BoundBuffer::none()
    } else {
        into.writing(1)?
    };
    Ok(start(place.world, place.comm, &call, Binding::bytes(send, receive)))
}

pub(super) fn scatterv<C: Number, D: Number>(
    place: &Place,
    from: Unequal<Source, C, D>,
    into: Elements<Target>,
    root: c_int,
) -> Result<Request> {
    let root = place.root(root)?;
    let at_root = root == place.comm.rank();
    let in_place = at_root && into.is_in_place();
    let mut call = Call::new(Operation::Scatterv, 0);
    (call.root, call.in_place) = (root, in_place);
    let receive = if in_place {
        BoundBuffer::none()
    } else {
        into.writing(1)?
    };
    let (send, sizes) = if at_root {
        let sizes = from.sizes(place)?;
        call.blocks = Blocks::known(sizes.iter().copied());
        (from.reading(place.size())?, sizes)
    } else {
        call.blocks = Blocks::Own(into.bytes(place)?);
        (BoundBuffer::none(), Vec::new())
    };
    start_with_counts(place.world, place.comm, call, Binding::bytes(send, receive), &sizes)
}

pub(super) fn allgather(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Request> {
    let mut call = Call::new(Operation::Allgather, into.bytes(place)?);
    call.in_place = from.is_in_place();
    let send = if call.in_place {
        BoundBuffer::none()
    } else {
        from.reading(1)?
    };
    let receive = into.writing(place.size())?;
    Ok(start(place.world, place.comm, &call, Binding::bytes(send, receive)))
}

pub(super) fn allgatherv<C: Number, D: Number>(
    place: &Place,
    from: Elements<Source>,
    into: Unequal<Target, C, D>,
) -> Result<Request> {
    let mut call = Call::new(Operation::Allgatherv, 0);
    call.in_place = from.is_in_place();
    call.blocks = Blocks::known(into.sizes(place)?);
    let send = if call.in_place {
        BoundBuffer::none()
    } else {
        from.reading(1)?
    };
    let receive = into.writing(place.size())?;
    Ok(start(place.world, place.comm, &call, Binding::bytes(send, receive)))
}

pub(super) fn alltoall(place: &Place, from: Elements<Source>, into: Elements<Target>) -> Result<Request> {
    let mut call = Call::new(Operation::Alltoall, into.bytes(place)?);
    call.in_place = from.is_in_place();
    let send = if call.in_place {
        BoundBuffer::none()
    } else {
        from.reading(place.size())?
    };
    let receive = into.writing(place.size())?;
    Ok(start(place.world, place.comm, &call, Binding::bytes(send, receive)))
}

pub(super) fn alltoallv<C: Number, D: Number>(
    place: &Place,
    from: Unequal<Source, C, D>,
    into: Unequal<Target, C, D>,
) -> Result<Request> {
    let mut call = Call::new(Operation::Alltoallv, 0);
    call.in_place = from.buffer.address() == isthmus_abi::constants::MPI_IN_PLACE;
    call.receive_blocks = Blocks::known(into.sizes(place)?);
    let send = if call.in_place {
        // In place what is sent has the shape of what is received (MPI 5.0 section 6.8).
        call.blocks = call.receive_blocks.clone();
        BoundBuffer::none()
    } else {
        call.blocks = Blocks::known(from.sizes(place)?);
        from.reading(place.size())?
    };
    let receive = into.writing(place.size())?;
    Ok(start(place.world, place.comm, &call, Binding::bytes(send, receive)))
}
