// SPDX-License-Identifier: Apache-2.0
//! The coordinator: reaches sites, co-allocates, collects output, ends jobs.
