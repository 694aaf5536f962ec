// Whose turn it is to be the run's coordinator: the newest claim tells, and nobody can take it
// back.
//
//   RUN_DIR/terms/7 = {"term":7,"seat":"node-b:812","node":"node-b","pid":812,
//                      "journal":"journal-7.db"}
//
// A *seat* is who keeps a coordinator alive: one `lockstep run`, or one agent. It starts its
// coordinator again with the journal that it has; a term of another seat begins with a copy of it
// in a file of its own (seat.h), so that two coordinators never write the same journal.
//
// A claim is made by link() of a temporary file, which network file systems do atomically too: of
// two processes that claim the same term one gets it.
//
// INVARIANTS
//  C1 Claims are never changed and never removed, but with the whole run directory.
//  C2 What is claimed is always one more than the newest, so whether term + 1 is claimed tells the
//     coordinator of `term` whether it still is the run's. It looks before every commit.
//
// Thread-safety: free functions, of several processes at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep::coordinator {

struct Claim {
  Term term = 0;
  std::string seat = {};  // empty: a coordinator that somebody started by hand
  std::string node = {};
  uint32_t pid = 0;
  std::string journal = {};  // its name in the run directory
};

// None when no term was ever claimed. kBadData when the newest claim cannot be read.
Result<std::optional<Claim>> newest_claim(const std::string& run_dir);

// Of the newest claim; 0: none.
Term newest_claimed(const std::string& run_dir);

bool is_claimed(const std::string& run_dir, Term term);

// Durable when it returns ok. kRefused, naming who has it, when the term is claimed already.
Status claim_term(const std::string& run_dir, const Claim& claim);

// Where the run's newest whole journal lies: that of the newest claim whose file is there. The
// first one's path when there is none yet.
std::string journal_path(const std::string& run_dir);

// The file that the coordinator with this journal holds locked while it lives.
std::string lock_path(const std::string& journal);

}  // namespace lockstep::coordinator
