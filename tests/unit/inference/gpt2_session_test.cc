// A gpt2 that keeps keys and values gives the logits of the model that reads the whole text again.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "worker/torch/inference/generator.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kBlockTokens = 24;

wire::ModelSpec session_spec() {
  wire::ModelSpec spec;
  spec.set_name("gpt2");
  spec.set_n_layer(3);
  spec.set_n_head(4);
  spec.set_n_embd(32);
  spec.set_block(kBlockTokens);
  return spec;
}

class Session : public ::testing::Test {
 protected:
  Session() : parts_(make_gpt2_parts(session_spec(), kVocab)) {
    for (const at::Tensor& tensor : initial_tensors(parts_.layout).parameters)
      // Larger than at the start of a run, so that attention matters.
      parameters_.push_back(tensor.dim() == 2 ? tensor.detach().mul(8) : tensor.detach());
    auto made = make_model(session_spec(), {.tokens = kBlockTokens, .token_bytes = 2}, kVocab);
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    model_ = std::move(made).value();
    for (uint64_t i = 0; i < 400; ++i)
      text_.push_back(static_cast<int64_t>((i * i + 7 * i) % kVocab));
  }
  Gpt2Session session() const { return {session_spec(), parts_, parameters_}; }

  // Returns the logits of the token after `tokens`, by the whole model.
  at::Tensor whole(std::span<const int64_t> tokens) const {
    const at::Tensor x = at::from_blob(const_cast<int64_t*>(tokens.data()),
                                       {1, static_cast<int64_t>(tokens.size())}, at::kLong);
    return model_->forward({.x = x}, parameters_, {}, ForwardMode{}).logits[0][-1];
  }
  void expect_same(const at::Tensor& logits, std::span<const int64_t> tokens) const {
    const at::Tensor wanted = whole(tokens);
    EXPECT_LT(logits.sub(wanted).abs().max().item<float>(), 1e-4F) << tokens.size();
    EXPECT_EQ(logits.argmax().item<int64_t>(), wanted.argmax().item<int64_t>()) << tokens.size();
  }
  std::span<const int64_t> first(size_t count) const { return std::span(text_).first(count); }

  Gpt2Parts parts_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<Model> model_;
  std::vector<int64_t> text_;
};

TEST_F(Session, TokenByTokenGivesTheLogitsOfTheWholeText) {
  Gpt2Session one = session();
  for (size_t count = 1; count <= kBlockTokens; ++count)
    expect_same(one.read(std::span(text_).subspan(count - 1, 1)), first(count));
}

TEST_F(Session, HoweverTheTextIsCut) {
  for (const size_t cut : {1, 2, 7, 23}) {
    Gpt2Session one = session();
    expect_same(one.read(first(cut)), first(cut));
    expect_same(one.read(std::span(text_).subspan(cut, kBlockTokens - cut)), first(kBlockTokens));
    one.forget();
    expect_same(one.read(first(5)), first(5));  // nothing of the text before is left
  }
}

TEST_F(Session, AGeneratorFollowsTheLargestLogitAndStartsOverWhereTheBlockIsFull) {
  Gpt2Session one = session();
  Generator generator(one, std::vector<bool>(kVocab, true), {.temperature = 0});
  generator.begin(first(5));
  std::vector<int64_t> window(text_.begin(), text_.begin() + 5);
  for (int i = 0; i < 100; ++i) {
    if (window.size() > kBlockTokens) window.erase(window.begin(), window.end() - kBlockTokens / 2);
    const auto token = generator.next();
    ASSERT_TRUE(token.is_ok()) << token.status().message();
    ASSERT_EQ(*token, whole(window).argmax().item<int64_t>()) << i;
    window.push_back(*token);
  }
}

TEST_F(Session, ALongPromptIsReadFromTheLastBlockOn) {
  Gpt2Session one = session();
  Generator generator(one, std::vector<bool>(kVocab, true), {.temperature = 0});
  generator.begin(text_);
  const auto token = generator.next();
  ASSERT_TRUE(token.is_ok()) << token.status().message();
  EXPECT_EQ(*token, whole(std::span(text_).last(kBlockTokens)).argmax().item<int64_t>());
}

TEST_F(Session, ATokenThatMayNotBeIsNeverChosen) {
  Gpt2Session one = session();
  std::vector<bool> may_be(kVocab, false);
  may_be[3] = true;
  Generator generator(one, may_be, {});
  generator.begin(first(2));
  for (int i = 0; i < 30; ++i) EXPECT_EQ(*generator.next(), 3u);
}

TEST_F(Session, WeightsThatAreNoNumbersAreToldSo) {
  parameters_[parts_.norm] = parameters_[parts_.norm].mul(std::numeric_limits<float>::quiet_NaN());
  Gpt2Session one = session();
  Generator generator(one, std::vector<bool>(kVocab, true), {});
  generator.begin(first(2));
  EXPECT_EQ(generator.next().status().code(), Code::kBadData);
}

}  // namespace
}  // namespace lockstep
