#include "comm/run/checkpoint/step_proof.h"

#include <cstring>
#include <utility>

#include "comm/run/plan/fold_digest.h"

namespace lockstep {
namespace {

// In front of the blocks, so that no bytes at all are not a proof of nothing.
constexpr char kKnown = 'k';
constexpr char kUnknown = 'u';

}  // namespace

Result<StepProof> StepProof::of(std::vector<ProvenBlock> blocks) {
  Step end = 0;
  for (const ProvenBlock& block : blocks) {
    if (block.last <= end)
      return Status(Code::kBadData, "the blocks of a proof of steps do not follow each other");
    end = block.last;
  }
  StepProof proof;
  proof.blocks_ = std::move(blocks);
  return proof;
}

StepProof StepProof::unknown() {
  StepProof proof;
  proof.is_known_ = false;
  return proof;
}

void StepProof::add(const wire::StepRecord& record, uint32_t slots) {
  if (!is_known_) return;
  const Step step = record.step();
  if (step != steps()) {
    *this = unknown();
    return;
  }
  if (step % fold_block_steps(slots) == 0) blocks_.emplace_back();
  ProvenBlock& block = blocks_.back();
  FoldDigest digest(block.digest, block.samples);
  for (const wire::SlotDigest& slot : record.slots())
    digest.add(step, slot.slot(), slot.digest(), slot.samples());
  block = {step + 1, digest.samples(), digest.value()};
}

std::string StepProof::to_bytes() const {
  std::string bytes(1, is_known_ ? kKnown : kUnknown);
  bytes.append(reinterpret_cast<const char*>(blocks_.data()), blocks_.size() * sizeof(ProvenBlock));
  return bytes;
}

Result<StepProof> StepProof::from_bytes(std::string_view bytes) {
  if (bytes.size() == 1 && bytes[0] == kUnknown) return unknown();
  if (bytes.empty() || bytes[0] != kKnown || (bytes.size() - 1) % sizeof(ProvenBlock) != 0)
    return Status(Code::kBadData, "the proof of steps is damaged");
  std::vector<ProvenBlock> blocks((bytes.size() - 1) / sizeof(ProvenBlock));
  if (!blocks.empty()) std::memcpy(blocks.data(), bytes.data() + 1, bytes.size() - 1);
  return of(std::move(blocks));
}

}  // namespace lockstep
