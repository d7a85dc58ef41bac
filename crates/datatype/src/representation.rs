// SPDX-License-Identifier: Apache-2.0
//! How this process represents the types of C.

use std::ffi::c_long;
use std::mem::size_of;

use crate::basic::Basic;

/// Eight bytes that say it; two processes with equal values exchange data as they are.
///
/// ```text
///  byte 0: 1 little-endian, 2 big-endian     byte 3: sizeof(long double)
///  byte 1: sizeof(long)                      byte 4: mantissa digits of long double (LDBL_MANT_DIG, low byte)
///  byte 2: sizeof(void *)                    byte 5: sizeof(wchar_t)   6: sizeof(bool)   7: 0
/// ```
pub const fn local_representation() -> [u8; 8] {
    [
        if cfg!(target_endian = "little") { 1 } else { 2 },
        size_of::<c_long>() as u8,
        size_of::<usize>() as u8,
        Basic::LongDouble.size() as u8,
        if cfg!(target_arch = "x86_64") { 64 } else { 113 },
        Basic::Wchar.size() as u8,
        Basic::Bool.size() as u8,
        0,
    ]
}
