// SPDX-License-Identifier: Apache-2.0
//! Progress, requests, waiting, executing schedules.
