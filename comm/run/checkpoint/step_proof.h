// Which samples the applied steps of a lineage have used, as one number for each block of steps
// (comm/run/plan/fold_digest.h). Every checkpoint carries it, so that the audit can check the steps
// before a checkpoint when the journal with their records is lost (term/rebuild.h).
//
// INVARIANTS
//  P1 A proof covers all steps from 0 on, or it is unknown. add() of another step than the next
//     makes it unknown.
//
// Thread-safety: a value; one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// The steps from the end of the block before, or from 0.
struct ProvenBlock {
  Step last = 0;  // exclusive
  uint64_t samples = 0;
  uint64_t digest = 0;
  bool operator==(const ProvenBlock&) const = default;
};

class StepProof {
 public:
  StepProof() = default;  // of no step: the initial weights
  // kBadData unless the blocks ascend.
  static Result<StepProof> of(std::vector<ProvenBlock> blocks);
  static StepProof unknown();

  // The next applied step. `slots`: of the run.
  void add(const wire::StepRecord& record, uint32_t slots);

  bool is_known() const { return is_known_; }
  // REQUIRES: is_known().
  Step steps() const { return blocks_.empty() ? 0 : blocks_.back().last; }
  const std::vector<ProvenBlock>& blocks() const { return blocks_; }

  // For a transfer between workers of one build.
  std::string to_bytes() const;
  static Result<StepProof> from_bytes(std::string_view bytes);

  bool operator==(const StepProof&) const = default;

 private:
  std::vector<ProvenBlock> blocks_;
  bool is_known_ = true;
};

}  // namespace lockstep
