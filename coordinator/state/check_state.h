// The coordinator's knowledge of checks for silent corruption (corruption.h). Part of State.
//
// Thread-safety: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

// Where a worker runs. A new process may run there, and the place stays the same.
struct Place {
  std::string node;
  uint32_t local_rank = 0;
  auto operator<=>(const Place&) const = default;
};

// The place of a member, or of a journal entry that names a node and a local rank.
template <typename Located>
Place place_of(const Located& located) {
  return {located.node, located.local_rank};
}

// The results of all checks so far, including checks of earlier terms.
struct CheckHistory {
  Step agreed = 0;              // applied steps at the newest check where all members agreed
  Step same_weights = 0;        // the same of this term, where only weights may have been compared
  bool is_open = false;         // a later check found a difference; the lineage must be cut
  std::set<Step> unexplained;   // steps where members differed and no majority named the wrong one
  std::set<Place> expelled;     // no worker there takes part in the run any more
  std::optional<Step> tainted;  // since this step the lineage goes on after a difference, by policy
  std::vector<WitnessEntry> witnesses;  // of `unexplained`, ascending by step
};

// The reports of one check that decide() has not judged yet.
struct PendingCheck {
  int64_t since_ms = 0;
  std::vector<MemberId> members;  // of the check's generation, by rank
  std::map<MemberId, wire::CheckReport> reports;
  // Members that got their weights from another one after the newest agreement. They hold what that
  // one held, damage and all, so they say nothing about who is right.
  std::set<MemberId> copies;
};

}  // namespace lockstep::coordinator
