// LOCKSTEP_CLONES before a function compiles one body for several instruction sets; the loader
// chooses one. Without contraction (-ffp-contract=off) all clones give the same bits.
//
// Off under sanitizers, because their runtimes are not ready when the loader chooses.
#pragma once

#if defined(__x86_64__) && !defined(LOCKSTEP_NO_CLONES)
#define LOCKSTEP_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LOCKSTEP_CLONES
#endif
