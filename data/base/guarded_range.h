// Mapped bytes that cannot be read any more: their file was cut off, or its disk failed.
//
// The kernel tells of it by SIGBUS, wherever in the program the read is: in a hash, a decoder, a
// library. In a guarded range that read gets zeros instead, and so does every later one from that
// page on. Whoever has read asks afterwards whether it counts:
//
//     read ──▶ SIGBUS ──▶ in a guarded range: damaged, its pages from there on become zeros ──▶
//     goes on
//                    └──▶ anywhere else: the handler that was there before (as a rule, death)
//
// Invariants
//  1. A read in a guarded range ends.
//  2. Who got a zero that is not of the file sees is_damaged() from then on.
//  3. The handler takes no lock and reserves nothing: the ranges are a list that only grows, and
//     whose entries are used again.
//
// The handler belongs to the process and is installed with the first range. A thread that reads
// must not block SIGBUS: the kernel then ends the process (keep_fault_signals()).
//
// Thread-safety: all calls from any thread.
#pragma once

#include <csignal>
#include <cstddef>

namespace lockstep::data {

class GuardedRange {
 public:
  GuardedRange() = default;  // of nothing
  // REQUIRES: [begin, begin + bytes) is mapped, begin at a page's begin, and stays so until this
  // goes; whoever unmaps it, also what became zeros, does so after that.
  GuardedRange(const void* begin, size_t bytes);
  GuardedRange(GuardedRange&& other) noexcept;
  GuardedRange& operator=(GuardedRange&& other) noexcept;
  ~GuardedRange();

  bool is_damaged() const;

 private:
  struct Entry;
  friend struct Guard;
  Entry* entry_ = nullptr;
};

// Of a set of signals that a thread is about to block: leaves those out that tell it of its own
// faults.
void keep_fault_signals(sigset_t& blocked);

}  // namespace lockstep::data
