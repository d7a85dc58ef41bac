// SPDX-License-Identifier: Apache-2.0
//! From environment to world: the only room that knows which transports exist.
