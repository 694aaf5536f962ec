// States as values: memory of their own, and how an engine takes one over.
#include "comm/run/checkpoint/held_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "comm/run/checkpoint/weights_hash.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using testing::TestState;

std::string all_of(TestState& state) {
  return weights_hash(state.tensors(), true);
}

TEST(InstallTensors, CopiesByNameInAnyOrderAndTheOptimizersNamesAreTheirOwn) {
  TestState from = TestState::small(1);
  TestState into = TestState::small(2);
  for (TestState* state : {&from, &into})
    state->add(StateSection::kOptimizer, "fc.bias", DType::kF32, {3});
  from.fill(1);
  into.fill(2);
  from.tensors().back().data[0] = std::byte{0x55};
  std::reverse(from.tensors().begin(), from.tensors().end());
  ASSERT_NE(all_of(from), all_of(into));
  ASSERT_TRUE(install_tensors(from.tensors(), into.tensors()).is_ok());
  EXPECT_EQ(all_of(from), all_of(into));
}

TEST(InstallTensors, ABufferMayComeAsAParameterSinceFilesDoNotTell) {
  TestState from = TestState::small(1);
  TestState into = TestState::small(2);
  from.tensors()[2].section = StateSection::kParameter;
  ASSERT_TRUE(install_tensors(from.tensors(), into.tensors()).is_ok());
  EXPECT_EQ(all_of(from), all_of(into));
}

TEST(InstallTensors, AStateOfItsOwnIsNoChange) {
  TestState state = TestState::small(1);
  const std::string before = all_of(state);
  ASSERT_TRUE(install_tensors(state.tensors(), state.tensors()).is_ok());
  EXPECT_EQ(all_of(state), before);
}

TEST(InstallTensors, WhatDoesNotFitIsNamedAndNothingIsCopied) {
  const auto install = [](auto change) {
    TestState from = TestState::small(1);
    TestState into = TestState::small(2);
    change(from);
    const std::string before = all_of(into);
    const Status status = install_tensors(from.tensors(), into.tensors());
    EXPECT_EQ(all_of(into), before) << status.message();
    EXPECT_EQ(status.code(), Code::kBadData);
    return status.message();
  };
  EXPECT_THAT(install([](TestState& s) { s.tensors().pop_back(); }),
              AllOf(Names("'exp_avg.fc.weight'"), Says("lacks")));
  EXPECT_THAT(install([](TestState& s) { s.add(StateSection::kBuffer, "new", DType::kU8, {1}); }),
              AllOf(Names("'new'"), Says("does not belong")));
  EXPECT_THAT(
      install([](TestState& s) { s.add(StateSection::kBuffer, "fc.bias", DType::kF32, {3}); }),
      AllOf(Names("'fc.bias'"), Says("twice")));
  EXPECT_THAT(install([](TestState& s) { s.tensors()[0].section = StateSection::kOptimizer; }),
              Names("'fc.weight'"));
  EXPECT_THAT(install([](TestState& s) {
                s.tensors()[0].shape = {5, 3};
              }),
              AllOf(Names("'fc.weight'"), Says("F32[5, 3]", "F32[3, 5]")));
  EXPECT_THAT(install([](TestState& s) { s.tensors()[2].dtype = DType::kF64; }),
              AllOf(Names("'bn.batches'"), Says("F64[]", "I64[]")));
}

TEST(HeldState, KeepsItsMemoryWhereItIsMoved) {
  TestState from = TestState::small(1);
  HeldState held;
  for (const StateTensor& t : from.tensors()) {
    const auto room = held.add(t.section, t.name, t.dtype, t.shape);
    ASSERT_TRUE(room.is_ok());
    ASSERT_EQ(room->size(), t.bytes);
    std::copy_n(t.data, t.bytes, room->data());
  }
  const HeldState moved = std::move(held);
  EXPECT_EQ(weights_hash(moved.tensors(), true), all_of(from));
}

TEST(HeldState, EveryDTypeGoesThroughACheckpointToTheSameHash) {
  const TemporaryDirectory directory;
  TestState state;
  for (const DType dtype : kDTypes)
    for (const StateSection section : {StateSection::kParameter, StateSection::kOptimizer})
      state.add(section, std::string("of_") + dtype_safetensors_name(dtype), dtype, {2, 3});
  state.fill(5);
  const auto files = posix_file_ops();
  const auto written =
      write_checkpoint(*files, directory.path(), state.tensors(), testing::manifest_of(3));
  ASSERT_TRUE(written.is_ok()) << written.status().message();
  EXPECT_TRUE(verify_checkpoint(written->path).is_ok());
  const auto loaded = read_checkpoint(written->path);
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  EXPECT_EQ(weights_hash(loaded->state.tensors(), true), all_of(state));
  TestState into;
  for (const StateTensor& t : state.tensors()) into.add(t.section, t.name, t.dtype, t.shape);
  ASSERT_TRUE(install_tensors(loaded->state.tensors(), into.tensors()).is_ok());
  EXPECT_EQ(all_of(into), all_of(state));
}

TEST(HeldState, AShapeWithoutASizeAndOneWithoutMemoryAreErrors) {
  HeldState held;
  const int64_t huge = int64_t{1} << 40;
  EXPECT_THAT(held.add(StateSection::kBuffer, "a", DType::kF32, {-1}).status(),
              FailsWith(Code::kBadData, Names("'a'")));
  EXPECT_THAT(held.add(StateSection::kBuffer, "b", DType::kF32, {huge, huge}).status(),
              FailsWith(Code::kBadData, Names("'b'")));
  EXPECT_THAT(held.add(StateSection::kBuffer, "c", DType::kU8, {huge, 1 << 20}).status(),
              FailsWith(Code::kNoMemory, Names("'c'")));
  EXPECT_TRUE(held.tensors().empty());
}

}  // namespace
}  // namespace lockstep
