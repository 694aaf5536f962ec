// Mapped bytes that can become unreadable: a program truncates the file, or its disk fails.
//
// The kernel then sends SIGBUS to the reader, wherever in the program the read is: in a hash, a
// decoder, a library. In a guarded range the read gets zeros instead, and so does every later read
// from that page on. The reader asks afterwards whether the bytes count:
//
//     read ──▶ SIGBUS ──▶ in a guarded range: damaged, its pages from there on become zeros,
//                    │    and the read goes on
//                    └──▶ anywhere else: the handler that was there before (as a rule, death)
//
// Invariants
//  1. A read in a guarded range ends.
//  2. A reader that got a zero that is not in the file sees is_damaged() from then on.
//  3. The handler takes no lock and allocates nothing. The ranges are a list that only grows; new
//     ranges use the entries of old ones again.
//
// The handler belongs to the process; the first range installs it. A thread that reads must not
// block SIGBUS, or the kernel ends the process (keep_fault_signals()).
//
// Thread-safety: all calls from any thread.
#pragma once

#include <csignal>
#include <cstddef>

namespace lockstep::data {

class GuardedRange {
 public:
  GuardedRange() = default;  // an empty range
  // REQUIRES: [begin, begin + bytes) is mapped, and `begin` is the start of a page. The mapping,
  // with the pages that became zeros, outlives this object: unmap only afterwards.
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

// Removes from a set of signals to block the signals that report a thread's own faults.
void keep_fault_signals(sigset_t& blocked);

}  // namespace lockstep::data
