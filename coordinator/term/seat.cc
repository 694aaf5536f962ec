#include "coordinator/term/seat.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "comm/base/host_name.h"
#include "comm/run/directory/layout.h"
#include "coordinator/journal/journal_copy.h"
#include "coordinator/journal/journal_head.h"
#include "coordinator/term/lineage.h"

namespace lockstep::coordinator {
namespace {

Status other_seat(const Claim& claim) {
  return {Code::kRefused, "the run has a coordinator on node " + claim.node + " (term " +
                              std::to_string(claim.term) + ", pid " + std::to_string(claim.pid) +
                              ")"};
}

}  // namespace

Result<std::unique_ptr<Seat>> Seat::take(const SeatRequest& request) {
  std::unique_ptr<Seat> seat(new Seat(request));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto newest, newest_claim(request.run_dir));
  if (request.after == 0) {
    seat->term_ = newest ? newest->term : 0;
    const bool follows_itself = request.is_take_over && !request.seat.empty();
    if (follows_itself && newest && newest->seat != request.seat) return other_seat(*newest);
    const std::string whole = journal_path(request.run_dir);
    seat->journal_ = follows_itself && newest ? request.run_dir + "/" + newest->journal : whole;
    LOCKSTEP_ASSIGN_OR_RETURN(seat->lock_, RunLock::take(seat->journal_));
    // The seat's earlier coordinator may have died before its copy was whole.
    if (seat->journal_ != whole) LOCKSTEP_RETURN_IF_ERROR(seat->begin_copy());
    return seat;
  }
  const Term term = request.after + 1;
  seat->journal_ = request.run_dir + "/journal-" + std::to_string(term) + ".db";
  LOCKSTEP_RETURN_IF_ERROR(seat->claim(term));
  seat->is_used_ = false;
  LOCKSTEP_ASSIGN_OR_RETURN(seat->lock_, RunLock::take(seat->journal_));
  LOCKSTEP_RETURN_IF_ERROR(seat->begin_copy());
  return seat;
}

Status Seat::begin_copy() {
  const auto head = read_head(head_path(journal_));  // before the look for the newest journal
  const Status copied = copy_journal(journal_path(request_.run_dir), journal_, head);
  if (copied.code() != Code::kBadData) return copied;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto on_disk, list_checkpoints(rundir::file_in(
                                                    request_.run_dir, rundir::kCheckpoints)));
  return lost_journal("cannot be taken over (" + copied.message() + ")", on_disk, request_.run_dir);
}

Status Seat::claim(Term term) {
  const std::string name = std::filesystem::path(journal_).filename().string();
  LOCKSTEP_RETURN_IF_ERROR(claim_term(request_.run_dir, {term, request_.seat, host_name(),
                                                         static_cast<uint32_t>(::getpid()), name}));
  term_ = term;
  is_ours_ = true;
  return Status::ok();
}

Result<Term> Seat::next_term(Term last) {
  // Claims the term after the newest that was there when we looked, which fails if another seat has
  // claimed it since. The journal may know less, because a writer may have died between claim and
  // commit.
  if (is_used_) LOCKSTEP_RETURN_IF_ERROR(claim(std::max(last, term_) + 1));
  is_used_ = true;
  return term_;
}

bool Seat::is_superseded() const {
  return is_ours_ && is_claimed(request_.run_dir, term_ + 1);
}

}  // namespace lockstep::coordinator
