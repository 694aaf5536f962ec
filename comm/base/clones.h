// LOCKSTEP_CLONES before a function: one body, compiled for several instruction sets and chosen
// when the program is loaded. Without contraction (-ffp-contract=off) the bits are the same in all.
//
// Off under sanitizers, whose runtimes are not up yet when the choice is made.
#pragma once

#if defined(__x86_64__) && !defined(LOCKSTEP_NO_CLONES)
#define LOCKSTEP_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LOCKSTEP_CLONES
#endif
