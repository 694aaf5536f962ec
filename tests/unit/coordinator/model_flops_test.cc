#include "coordinator/report/model_flops.h"

#include <gtest/gtest.h>

namespace lockstep::coordinator {
namespace {

TEST(ModelFlops, OfGpt2With124MillionParameters) {
  wire::ModelSpec model;
  model.set_name("gpt2");
  model.set_n_layer(12);
  model.set_n_embd(768);
  model.set_block(1024);
  model.set_vocab(50257);
  // 84,934,656 weights in the blocks, 38,597,376 in the logits; 113,246,208 a token for attention.
  EXPECT_DOUBLE_EQ(flops_per_sample(model), 1024.0 * (6.0 * 123'532'032 + 113'246'208));
}

TEST(ModelFlops, OfAModelWhoseArithmeticIsNotKnownIsZero) {
  wire::ModelSpec model;
  model.set_name("cnn");
  EXPECT_EQ(flops_per_sample(model), 0);
}

}  // namespace
}  // namespace lockstep::coordinator
