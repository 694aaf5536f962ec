// Says which coordinator has the run: the owner of the newest claim. No process can take a claim
// back.
//
//   RUN_DIR/terms/7 = {"term":7,"seat":"node-b:812:5bd1…","node":"node-b","pid":812,
//                      "journal":"journal-7.db"}
//
// A *seat* keeps a coordinator alive: one `lockstep run`, or one agent. It restarts its coordinator
// with the same journal. A term of another seat begins with a copy in a file of its own (seat.h),
// so that two coordinators never write the same journal.
//
// To claim a term, a process makes a link() of a temporary file, which is atomic on network file
// systems, too. If two processes claim the same term, one of them gets it.
//
// INVARIANTS
//  C1 Claims never change, and go only with the whole run directory.
//  C2 A claim is always one more than the newest. So the coordinator of `term` still has the run if
//     term + 1 is not claimed. It looks before every commit.
//
// Thread-safety: free functions, of several processes at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

struct Claim {
  Term term = 0;
  std::string seat = {};  // empty: somebody started the coordinator by hand
  std::string node = {};
  uint32_t pid = 0;
  std::string journal = {};  // its name in the run directory
};

// None if no term was ever claimed. kBadData if the newest claim is unreadable.
Result<std::optional<Claim>> newest_claim(const std::string& run_dir);

// The term of the newest claim; 0: none.
Term newest_claimed(const std::string& run_dir);

bool is_claimed(const std::string& run_dir, Term term);

// The name of a seat of this process, which no other process of any machine has: pids and names of
// nodes may be the same on two machines.
std::string new_seat(const std::string& node);

// The claim is durable when it returns ok. kRefused, with the owner, if the term is claimed
// already.
Status claim_term(const std::string& run_dir, const Claim& claim);

// The path of the run's newest whole journal: the newest claim whose file exists has it. The first
// journal's path if there is none yet.
std::string journal_path(const std::string& run_dir);

// The file that the coordinator with this journal holds locked while it lives.
std::string lock_path(const std::string& journal);

}  // namespace lockstep
