// Batches on their way to a device: what its stages take, and what is sent when.
#include "worker/engine/device/device_inputs.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/engine/plain_module.h"

namespace lockstep {
namespace {

using testing::PlainModule;

constexpr data::SampleShape kTokens{.tokens = 8, .token_bytes = 2};

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
  const uint64_t bytes = module_.allocated_bytes();
  EXPECT_LT(bytes, 2 * inputs_.bytes() + 512);  // in lines of 64 bytes
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

}  // namespace
}  // namespace lockstep
