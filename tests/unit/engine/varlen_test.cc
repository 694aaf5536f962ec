// Packed documents on a device that takes the places where they begin: which way a model takes, and
// that the way is right. The device's attention is a stand-in of as many operators for any
// documents, as a recorded slot needs it.
#include <ATen/ops/arange.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/made_documents.h"
#include "tests/unit/engine/plain_recorder.h"
#include "worker/torch/device/flash_attention.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_documents;
using testing::packed;
using testing::padded;
using testing::PlainModule;
using testing::TrainResult;

constexpr uint32_t kBlock = 80;
constexpr uint32_t kLongest = 30;
constexpr Step kSteps = 12;

class PlainVarlen final : public VarlenAttention {
 public:
  bool takes(at::ScalarType type, int64_t width) const override {
    return takes_floats && type == at::kFloat && width > 0;
  }
  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& begins, int64_t longest) const override {
    ++calls;
    const int64_t places = query.size(0);
    expect_valid(begins, places, longest);
    const at::Tensor place = at::arange(places, begins.options());
    const at::Tensor document = at::searchsorted(begins, place, /*out_int32=*/true, /*right=*/true);
    const at::Tensor seen =
        document.unsqueeze(0).eq(document.unsqueeze(1)).logical_and(place.unsqueeze(1).ge(place));
    const auto by_head = [](const at::Tensor& t) { return t.transpose(0, 1).unsqueeze(0); };
    return at::scaled_dot_product_attention(by_head(query), by_head(key), by_head(value), seen)
        .squeeze(0)
        .transpose(0, 1)
        .contiguous();
  }

  bool takes_floats = true;
  mutable std::atomic<int> calls{0};

 private:
  static void expect_valid(const at::Tensor& begins, int64_t places, int64_t longest) {
    EXPECT_EQ(begins.scalar_type(), at::kInt);
    const int* begin = begins.const_data_ptr<int>();
    EXPECT_EQ(begin[0], 0);
    EXPECT_EQ(begin[begins.numel() - 1], places);
    for (int64_t i = 0; i + 1 < begins.numel(); ++i) {
      EXPECT_LE(begin[i], begin[i + 1]);
      EXPECT_LE(begin[i + 1] - begin[i], longest);
    }
  }
};

wire::JobSpec job_of(const std::string& graph = "off") {
  wire::JobSpec job = testing::small_gpt2(kBlock);
  job.mutable_train()->set_graph(graph);
  return job;
}

// On `ranks` devices. `varlen` may be null.
TrainResult train(const wire::JobSpec& job, const data::Dataset& dataset, uint32_t ranks,
                  const VarlenAttention* varlen, uint32_t* recordings = nullptr) {
  std::vector<std::unique_ptr<PlainModule>> own;
  std::vector<DeviceModule*> modules;
  std::vector<testing::PlainRecorder*> recorders;
  for (uint32_t r = 0; r < ranks; ++r) {
    modules.push_back(own.emplace_back(std::make_unique<PlainModule>()).get());
    recorders.push_back(&testing::add_recorder(*own.back()));
    recorders.back()->varlen = varlen;
  }
  LoopbackWorld world(job, dataset, even_runs(4, ranks), 0, nullptr, modules);
  world.begin_generation(kSteps);
  TrainResult result = world.train_to(kSteps);
  if (recordings != nullptr) *recordings = recorders[0]->recordings;
  return result;
}

TEST(Varlen, BeginsAreWherePositionsAreZeroAndAtEachRow) {
  const at::Tensor position = at::tensor({0, 1, 0, 1, 2, 7, 8, 0, 0, 1}, at::kLong).view({2, 5});
  const at::Tensor begins = begins_of_documents(position, 8);
  const std::vector<int> found(begins.const_data_ptr<int>(),
                               begins.const_data_ptr<int>() + begins.numel());
  EXPECT_EQ(found, (std::vector<int>{0, 2, 5, 7, 8, 10, 10, 10, 10}));
}

TEST(Varlen, TheMostDocumentsAreAPowerOfTwoThatHoldsThem) {
  data::SampleShape shape;
  shape.tokens = 4;
  EXPECT_EQ(most_documents(shape, nullptr, 3), 0u);
  shape.has_positions = true;
  for (const auto& [samples, most] :
       {std::pair(1u, 256u), std::pair(64u, 256u), std::pair(65u, 512u), std::pair(200u, 1024u)}) {
    const std::vector<int64_t> all_begin(8 * samples);  // four documents a sample, of one token
    EXPECT_EQ(most_documents(shape, all_begin.data(), samples), most) << samples;
  }
}

// To rounding; and not by the mask, which would be within it as well.
TEST(Varlen, PackedDocumentsTrainAsWithAMask) {
  const auto dataset = packed(make_documents(150, kLongest), kBlock);
  const TrainResult masked = train(job_of(), *dataset, 1, nullptr);
  const PlainVarlen varlen;
  const TrainResult result = train(job_of(), *dataset, 1, &varlen);
  EXPECT_GT(varlen.calls, 0);
  ASSERT_EQ(result.losses.size(), masked.losses.size());
  for (size_t i = 0; i < masked.losses.size(); ++i)
    EXPECT_NEAR(result.losses[i], masked.losses[i], 1e-4) << i;
}

TEST(Varlen, HasTheSameBitsForAnyNumberOfRanksAndAsGraphs) {
  const auto dataset = packed(make_documents(150, kLongest), kBlock);
  const PlainVarlen varlen;
  const TrainResult one = train(job_of(), *dataset, 1, &varlen);
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    SCOPED_TRACE(ranks);
    EXPECT_TRUE(train(job_of(), *dataset, ranks, &varlen).state == one.state);
  }
  uint32_t recordings = 0;
  EXPECT_TRUE(train(job_of("on"), *dataset, 1, &varlen, &recordings).state == one.state);
  EXPECT_GE(recordings, 1u);
}

// A graph holds the number of places for documents.
TEST(Varlen, SlotsWithManyMoreDocumentsHaveAGraphOfTheirOwn) {
  auto documents = make_documents(200, kLongest);  // about 40 sequences, and as many of 80
  const auto many = make_documents(3200, 2);
  documents.insert(documents.end(), many.begin(), many.end());
  wire::JobSpec job = job_of("off");
  const auto dataset = packed(documents, kBlock);
  const PlainVarlen varlen;
  const TrainResult eager = train(job, *dataset, 1, &varlen);
  job.mutable_train()->set_graph("on");
  uint32_t recordings = 0;
  EXPECT_TRUE(train(job, *dataset, 1, &varlen, &recordings).state == eager.state);
  EXPECT_EQ(recordings, 2u);
}

TEST(Varlen, IsNotForOtherTypesNorForOneDocumentASequence) {
  const auto documents = make_documents(120, kLongest);
  PlainVarlen varlen;
  varlen.takes_floats = false;
  const auto packs = packed(documents, kBlock);
  EXPECT_TRUE(train(job_of(), *packs, 1, &varlen).state ==
              train(job_of(), *packs, 1, nullptr).state);
  varlen.takes_floats = true;
  (void)train(job_of(), *padded(documents, kBlock), 1, &varlen);
  EXPECT_EQ(varlen.calls, 0);
}

TEST(Varlen, FlashAttentionTakesShortTypesAndWidthsOfItsKernels) {
  const FlashAttention flash;
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    EXPECT_TRUE(flash.takes(type, 64));
    EXPECT_FALSE(flash.takes(type, 60));
    EXPECT_FALSE(flash.takes(type, 264));
  }
  EXPECT_FALSE(flash.takes(at::kFloat, 64));
}

}  // namespace
}  // namespace lockstep
