// Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011), over pairs of counters.
#pragma once

#include "backend/cpu/isa.h"

// For i of [begin, end): hash(key, (i, i + half)); the two words go to
// low[i - begin] and high[i - begin].
MLX_ISA_KERNEL(
    void,
    threefry_pairs,
    (uint32_t key0,
     uint32_t key1,
     uint32_t begin,
     uint32_t end,
     uint32_t half,
     uint32_t* low,
     uint32_t* high))
