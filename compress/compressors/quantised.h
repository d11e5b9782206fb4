// SPDX-License-Identifier: Apache-2.0
// A codec as a compressor: the all-reduce that quantises twice at any world. Every rank encodes its share of each stripe (first
// rounding) and sends it to the stripe's owner, who sums in float32, in the order of ranks, encodes the sum (second rounding) and
// sends that to all. On the wire: 2 (p - 1) / p of the encoded tensor a rank, as in a ring.
//
// With feedback=1 both roundings' errors are kept and added to the next call's: what was meant and not sent, by each rank for the
// whole tensor, by an owner for its stripe.
#pragma once

#include "compress/compressor.h"

namespace shoal::compress {

// The line of the table that a codec makes.
Kind quantised(const Codec& codec);

}  // namespace shoal::compress
