// A coordinator's right to the run: which journal is its own, which terms it may begin, and when
// it has to stop because another one has the run (claim.h).
//
//   started as          journal                                     refused when
//   first, --resume     the newest one                              it is locked: a coordinator
//                                                                   of this file system lives
//   --take-over         the newest one                              another seat has the run
//   --after TERM        a copy of the newest, journal-<TERM+1>.db   somebody was faster
//
// INVARIANTS
//  S1 A journal is written by coordinators of one seat only, one at a time (its lock).
//  S2 A copy counts when it is whole: it gets its name last.
//  S3 Every term is claimed before the journal hears of it.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "coordinator/claims/claim.h"
#include "coordinator/run_dir/run_dir.h"

namespace lockstep::coordinator {

struct SeatRequest {
  std::string run_dir;  // absolute
  std::string seat;     // whose coordinator this is; empty: started by hand
  bool is_take_over = false;
  Term after = 0;  // the last term of a coordinator that is lost with its machine; 0: none is
};

class Seat {
 public:
  // kRefused when another coordinator has the run, kUsage when the lock is held.
  static Result<std::unique_ptr<Seat>> take(const SeatRequest& request);

  const std::string& journal() const { return journal_; }  // path

  // Claims a term for this seat, after `last`, which the journal knows. kRefused likewise.
  Result<Term> next_term(Term last);

  // From then on nothing may be written any more, and nobody told anything.
  bool is_superseded() const;

 private:
  explicit Seat(SeatRequest request) : request_(std::move(request)) {}
  Status claim(Term term);

  SeatRequest request_;
  std::string journal_;
  std::unique_ptr<RunLock> lock_;
  Term term_ = 0;  // the newest claim, as far as we know
  bool is_ours_ = false;
  bool is_used_ = true;  // false: it was claimed, and no term has begun with it
};

}  // namespace lockstep::coordinator
