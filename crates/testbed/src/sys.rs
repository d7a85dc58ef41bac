// SPDX-License-Identifier: Apache-2.0
//! The system calls without a safe interface: TUN devices and entering namespaces.
//!
//! The only unsafe code of this room. Rules: (1) every function owns what it passes to the kernel for
//! the length of the call; (2) namespaces are entered on threads made for that, which end afterwards.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{IntegerSetter, Updater, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::error::Error;

const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
const TUN_F_CSUM: usize = 0x01;
const TUN_F_TSO4: usize = 0x02;
const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);
const TUNSETOFFLOAD: rustix::ioctl::Opcode = opcode::write::<u32>(b'T', 208);

/// `struct ifreq` of <linux/if.h> with its `ifr_flags` member: 40 bytes on 64-bit machines.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// Makes a TUN device in the network namespace of the calling thread. It lives as long as the descriptor.
pub(crate) fn open_tun(name: &str) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(tun_refused("open /dev/net/tun"))?;
    let mut request = InterfaceRequest {
        name: [0; 16],
        flags: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR,
        rest: [0; 22],
    };
    let length = name.len().min(15);
    request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: TUNSETIFF reads and writes one struct ifreq; InterfaceRequest has its size and layout.
    let setting = unsafe { Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request) };
    // SAFETY: the descriptor is /dev/net/tun, for which the opcode is defined; the request outlives the call.
    unsafe { ioctl(&fd, setting) }.map_err(tun_refused("make a TUN device"))?;
    // SAFETY: TUNSETOFFLOAD takes a set of flags by value.
    let setting = unsafe { IntegerSetter::<TUNSETOFFLOAD>::new_usize(TUN_F_CSUM | TUN_F_TSO4) };
    // SAFETY: as above; nothing is passed by address.
    unsafe { ioctl(&fd, setting) }.map_err(tun_refused("set the offloads of a TUN device"))?;
    Ok(fd)
}

/// The namespaces of a host, held open.
#[derive(Debug)]
pub(crate) struct Namespaces {
    net: OwnedFd,
    others: Vec<(OwnedFd, LinkNameSpaceType)>,
}

impl Namespaces {
    /// Those of the process `pid` and of its children: network alone, or everything a host has.
    pub(crate) fn of(pid: u32, everything: bool) -> Result<Self, Error> {
        let open = |name: &str| {
            let path = format!("/proc/{pid}/ns/{name}");
            File::open(&path)
                .map(OwnedFd::from)
                .map_err(Error::system(format!("open {path}")))
        };
        let mut others = Vec::new();
        if everything {
            others.push((open("uts")?, LinkNameSpaceType::HostNameAndNISDomainName));
            others.push((open("ipc")?, LinkNameSpaceType::InterProcessCommunication));
            others.push((open("pid_for_children")?, LinkNameSpaceType::ProcessID));
            others.push((open("mnt")?, LinkNameSpaceType::Mount));
        }
        Ok(Self {
            net: open("net")?,
            others,
        })
    }

    /// Runs `work` on a thread inside the network namespace only.
    pub(crate) fn in_network<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        on_thread(|| {
            enter(&self.net, LinkNameSpaceType::Network)?;
            Ok(work())
        })
    }

    /// Runs `work` on a thread inside all namespaces; processes it starts belong to the host.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        on_thread(|| {
            // SAFETY: no flag of this call takes memory away; CLONE_FS only gives this thread its own
            // working directory and root, which entering a mount namespace demands.
            unsafe { unshare_unsafe(UnshareFlags::FS) }.map_err(Error::call("separate a thread's directory"))?;
            enter(&self.net, LinkNameSpaceType::Network)?;
            for (fd, kind) in &self.others {
                enter(fd, *kind)?;
            }
            Ok(work())
        })
    }
}

fn enter(fd: &OwnedFd, kind: LinkNameSpaceType) -> Result<(), Error> {
    move_into_link_name_space(fd.as_fd(), Some(kind)).map_err(Error::call("enter a namespace of a host"))
}

/// A thread of its own, because a namespace cannot be left again.
fn on_thread<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("in-namespace".to_owned())
            .spawn_scoped(scope, work)
            .map_err(Error::system("start a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn tun_refused(doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> Error {
    move |errno| Error::NotPermitted {
        doing: format!("{doing}: {errno}"),
        hint: "run as root; /dev/net/tun must exist (modprobe tun) and, without root, be writable for everybody"
            .to_owned(),
    }
}
