// SPDX-License-Identifier: Apache-2.0
//! Groups, communicators, attributes, errors: MPI without C.
