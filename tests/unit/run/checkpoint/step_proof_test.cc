#include "comm/run/checkpoint/step_proof.h"

#include <gtest/gtest.h>

#include "comm/run/plan/fold_digest.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

constexpr uint32_t kSlots = 2;

wire::StepRecord record(Step step) {
  wire::StepRecord record;
  record.set_step(step);
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    wire::SlotDigest& digest = *record.add_slots();
    digest.set_slot(slot);
    digest.set_digest(step * 1000 + slot);
    digest.set_samples(3);
  }
  return record;
}

StepProof proof_of(Step steps) {
  StepProof proof;
  for (Step step = 0; step < steps; ++step) proof.add(record(step), kSlots);
  return proof;
}

TEST(StepProof, ItsBlocksAreThoseOfTheJournalsFolds) {
  const StepProof proof = proof_of(2500);
  EXPECT_EQ(proof.steps(), 2500u);
  ASSERT_EQ(proof.blocks().size(), 3u);
  Step first = 0;
  for (const ProvenBlock& block : proof.blocks()) {
    FoldDigest digest;
    for (Step step = first; step < block.last; ++step)
      for (uint32_t slot = 0; slot < kSlots; ++slot) digest.add(step, slot, step * 1000 + slot, 3);
    EXPECT_EQ(block.digest, digest.value());
    EXPECT_EQ(block.samples, digest.samples());
    first = block.last;
  }
  EXPECT_EQ(proof.blocks()[0].last, fold_block_steps(kSlots));
}

TEST(StepProof, AMissingStepMakesItUnknownForGood) {
  StepProof proof = proof_of(3);
  proof.add(record(4), kSlots);
  EXPECT_FALSE(proof.is_known());
  proof.add(record(0), kSlots);
  EXPECT_FALSE(proof.is_known());
}

TEST(StepProof, GoesFromOneWorkerToAnotherInTheMiddleOfABlock) {
  for (const StepProof& sent : {StepProof(), proof_of(1), proof_of(1700), StepProof::unknown()}) {
    const auto received = StepProof::from_bytes(sent.to_bytes());
    ASSERT_TRUE(received.is_ok());
    EXPECT_EQ(*received, sent);
  }
  StepProof proof = *StepProof::from_bytes(proof_of(1700).to_bytes());
  for (Step step = 1700; step < 2100; ++step) proof.add(record(step), kSlots);
  EXPECT_EQ(proof, proof_of(2100));
}

TEST(StepProof, DamagedBytesAreRefused) {
  const std::string bytes = proof_of(2100).to_bytes();
  EXPECT_THAT(StepProof::from_bytes(""), FailsWith(Code::kBadData));
  EXPECT_THAT(StepProof::from_bytes(bytes.substr(0, bytes.size() - 1)), FailsWith(Code::kBadData));
  EXPECT_THAT(StepProof::of({{5, 1, 1}, {5, 1, 1}}), FailsWith(Code::kBadData));
}

}  // namespace
}  // namespace lockstep
