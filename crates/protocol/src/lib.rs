// SPDX-License-Identifier: Apache-2.0
//! Message matching and the point-to-point protocol as state machines without I/O.
