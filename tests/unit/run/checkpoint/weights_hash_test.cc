#include "comm/run/checkpoint/weights_hash.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using testing::TestState;

// The grammar of the header, spelled out by hand.
TEST(WeightsHash, IsTheSha256OfExactlyTheBytesInTheHeader) {
  TestState state;
  state.add(StateSection::kParameter, "b", DType::kF32, {1, 2});
  state.add(StateSection::kBuffer, "a", DType::kU8, {});
  state.add(StateSection::kOptimizer, "m", DType::kU8, {1});
  std::memcpy(state.tensors()[0].data, "12345678", 8);
  std::memcpy(state.tensors()[1].data, "x", 1);
  std::memcpy(state.tensors()[2].data, "y", 1);
  const auto le64 = [](char low) { return std::string(1, low) + std::string(7, '\0'); };
  const std::string weights = "lockstep weights 1\n" +                                         //
                              le64(1) + "a" + le64(2) + "U8" + le64(0) + le64(1) + "x" +       //
                              le64(1) + "b" + le64(3) + "F32" + le64(2) + le64(1) + le64(2) +  //
                              le64(8) + "12345678";
  const std::string all = weights + "optimizer 1\n" + le64(1) + "m" + le64(2) + "U8" + le64(1) +
                          le64(1) + le64(1) + "y";
  EXPECT_EQ(weights_hash(state.tensors(), false), to_hex(sha256(weights)));
  EXPECT_EQ(weights_hash(state.tensors(), true), to_hex(sha256(all)));
}

TEST(WeightsHash, BothAtOnceAreTheSameAsEachByItself) {
  TestState state = TestState::small(1);
  const WeightsHashes both = weights_hashes(state.tensors());
  EXPECT_EQ(both.weights, weights_hash(state.tensors(), false));
  EXPECT_EQ(both.state, weights_hash(state.tensors(), true));
}

TEST(WeightsHash, DoesNotDependOnTheOrderOfTheTensors) {
  TestState state = TestState::small(1);
  const std::string hash = weights_hash(state.tensors(), true);
  std::reverse(state.tensors().begin(), state.tensors().end());
  EXPECT_EQ(weights_hash(state.tensors(), true), hash);
}

TEST(WeightsHash, SeesEveryByteNameShapeAndDtype) {
  TestState state = TestState::small(1);
  const std::string hash = weights_hash(state.tensors(), false);
  const auto changed = [&](auto change) {
    TestState other = TestState::small(1);
    change(other.tensors());
    return weights_hash(other.tensors(), false) != hash;
  };
  EXPECT_TRUE(changed([](auto& t) { t[0].data[59] ^= std::byte{1}; }));
  EXPECT_TRUE(changed([](auto& t) { t[0].name += "x"; }));
  EXPECT_TRUE(changed([](auto& t) { t[0].shape = {5, 3}; }));
  EXPECT_TRUE(changed([](auto& t) { t[2].dtype = DType::kF64; }));
  EXPECT_TRUE(changed([](auto& t) { t.erase(t.begin()); }));
  EXPECT_FALSE(changed([](auto& t) { t[4].data[0] ^= std::byte{1}; }));  // optimizer
}

}  // namespace
}  // namespace lockstep
