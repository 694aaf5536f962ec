// Batches on their way to a device: what its stages take, and what is sent when.
#include "worker/torch/device/device_inputs.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/engine/plain_module.h"

namespace lockstep {
namespace {

using testing::PlainModule;

const data::SampleShape kTokens{.tokens = 8, .token_bytes = 2};

class Inputs : public ::testing::Test {
 protected:
  void SetUp() override { tokens_.resize(64 * kTokens.tokens, 5); }

  Status send(uint64_t samples, uint64_t dropout_key = 0) {
    return inputs_.send(kTokens, tokens_.data(), tokens_.data(), samples,
                        {.dropout_key = dropout_key});
  }

  PlainModule module_;
  DeviceInputs inputs_{module_, at::kCPU};
  std::vector<int64_t> tokens_;
};

TEST_F(Inputs, KeepNoStageThatIsOutgrown) {
  for (const uint64_t samples : {1, 1, 32, 32}) ASSERT_TRUE(send(samples).is_ok());
  EXPECT_EQ(module_.allocated_bytes(), 2 * inputs_.bytes());
}

TEST_F(Inputs, ThatFindNoMemoryTakeSmallerBatchesAfterwards) {
  for (const uint64_t samples : {1, 1}) ASSERT_TRUE(send(samples).is_ok());
  for (const uint64_t left : {0, 9'000}) {  // for neither of a stage's two parts, and for one
    module_.bytes_left = left;
    for (int stage = 0; stage < 2; ++stage) EXPECT_EQ(send(64).code(), Code::kNoMemory);
    for (int stage = 0; stage < 2; ++stage) ASSERT_TRUE(send(1, 7).is_ok());
    EXPECT_EQ(inputs_.values()->dropout_key, 7u);
  }
}

int64_t first_token(DeviceInputs& inputs) {
  return inputs.inputs()->flatten()[0].item<int64_t>();
}

TEST_F(Inputs, ThatWereSentAheadLackOnlyTheirValues) {
  for (const uint64_t samples : {4, 4}) ASSERT_TRUE(send(samples).is_ok());
  std::vector<int64_t> next(4 * kTokens.tokens, 9);
  ASSERT_TRUE(inputs_.send_ahead(kTokens, next.data(), next.data(), 4).is_ok());
  EXPECT_EQ(module_.sample_copies, 3u);
  EXPECT_EQ(first_token(inputs_), 5);  // the slot in progress still reads its own
  ASSERT_TRUE(inputs_.send(kTokens, next.data(), next.data(), 4, {.dropout_key = 7}).is_ok());
  EXPECT_EQ(module_.sample_copies, 3u);
  EXPECT_EQ(module_.value_copies, 1u);
  EXPECT_EQ(first_token(inputs_), 9);
  EXPECT_EQ(inputs_.labels()[4 * kTokens.tokens - 1], 9);
  EXPECT_EQ(inputs_.values()->dropout_key, 7u);
}

TEST_F(Inputs, ThatWereSentAheadForAnotherBatchAreForgotten) {
  for (const uint64_t samples : {4, 4}) ASSERT_TRUE(send(samples).is_ok());
  std::vector<int64_t> next(4 * kTokens.tokens, 9);
  ASSERT_TRUE(inputs_.send_ahead(kTokens, next.data(), next.data(), 4).is_ok());
  ASSERT_TRUE(send(4).is_ok());  // an evaluation
  EXPECT_EQ(first_token(inputs_), 5);
  ASSERT_TRUE(inputs_.send(kTokens, next.data(), next.data(), 4, {}).is_ok());
  EXPECT_EQ(first_token(inputs_), 9);
  std::fill(next.begin(), next.end(), 8);
  ASSERT_TRUE(inputs_.send_ahead(kTokens, next.data(), next.data(), 4).is_ok());
  inputs_.keep(false);  // a new generation, whose batch lies where another has lain
  std::fill(next.begin(), next.end(), 3);
  ASSERT_TRUE(inputs_.send(kTokens, next.data(), next.data(), 4, {}).is_ok());
  EXPECT_EQ(first_token(inputs_), 3);
}

}  // namespace
}  // namespace lockstep
