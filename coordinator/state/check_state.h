// What the coordinator knows of checks for silent corruption (corruption.h); part of State.
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

// Where a worker runs; the process there changes, the place does not.
struct Place {
  std::string node;
  uint32_t local_rank = 0;
  auto operator<=>(const Place&) const = default;
};

// Of a member, or of an entry that names one by where it ran.
template <typename Located>
Place place_of(const Located& located) {
  return {located.node, located.local_rank};
}

// What comparing the members has shown so far, also in earlier terms.
struct CheckHistory {
  Step agreed = 0;              // applied steps of the lineage's newest check at which all agreed
  bool is_open = false;         // a later one has found a difference; the lineage has to be cut
  std::set<Step> unexplained;   // where they differed, ever, and nobody could be named
  std::set<Place> expelled;     // no worker there takes part in the run any more
  std::optional<Step> tainted;  // by policy the lineage went on after a difference: since when
  std::vector<WitnessEntry> witnesses;  // of `unexplained`, ascending by step
};

// Reports of one check that is not judged yet.
struct PendingCheck {
  int64_t since_ms = 0;
  std::vector<MemberId> members;  // of its generation, by rank
  std::map<MemberId, wire::CheckReport> reports;
};

}  // namespace lockstep::coordinator
