// A coordinator's right to the run: its journal, the terms it may begin, and when it must stop
// because another coordinator has the run (claim.h).
//
//   started as          journal                                     refused when
//   first, --resume     the newest one                              it is locked: a coordinator
//                                                                   of this file system lives
//   --take-over         the newest one                              another seat has the run
//   --after TERM        a copy of the newest, journal-<TERM+1>.db   another seat was faster, or
//                                                                   the newest has lost its end
//
// INVARIANTS
//  S1 Only coordinators of one seat write a journal, one at a time (its lock).
//  S2 A copy is whole as soon as it has its name: the name comes last. It has every commit that
//     journal.head told of before the copy was begun (journal_head.h).
//  S3 Every term is claimed before it is in the journal.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/run/directory/claim.h"
#include "comm/run/directory/run_lock.h"

namespace lockstep::coordinator {

struct SeatRequest {
  std::string run_dir;  // absolute
  std::string seat;     // of this coordinator; empty: somebody started it by hand
  bool is_take_over = false;
  Term after = 0;  // the last term of a coordinator that is lost with its machine; 0: none
};

class Seat {
 public:
  // kRefused if another coordinator has the run, kUsage if another process holds the lock. kBadData
  // if the journal to copy is damaged or has lost its end (lineage.h).
  static Result<std::unique_ptr<Seat>> take(const SeatRequest& request);

  const std::string& journal() const { return journal_; }  // path

  // Claims a term for this seat, after the journal's last one. kRefused if another coordinator has
  // the run.
  Result<Term> next_term(Term last);

  // If true, this coordinator must not write or send anything any more.
  bool is_superseded() const;

 private:
  explicit Seat(SeatRequest request) : request_(std::move(request)) {}
  Status claim(Term term);
  // REQUIRES: it is claimed and locked.
  Status begin_copy();

  SeatRequest request_;
  std::string journal_;
  std::unique_ptr<RunLock> lock_;
  Term term_ = 0;  // the newest claim that we have seen
  bool is_ours_ = false;
  bool is_used_ = true;  // false: claimed, and no term has begun with it
};

}  // namespace lockstep::coordinator
