// Batches of documents: all of each in an epoch, as wide as the longest, and by length with hardly
// any padding.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "comm/base/labels.h"
#include "comm/base/prng.h"
#include "data/dataset/dataset.h"
#include "data/loader/cut_padding.h"
#include "data/loader/label_count.h"
#include "data/loader/loader.h"
#include "data/open/open_dataset.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kBlock = 512;
constexpr uint32_t kSlots = 2;
constexpr uint64_t kBatch = 32;
constexpr uint16_t kEnd = 9;

class DocumentBatches : public ::testing::Test {
 protected:
  // Most are short, as texts are.
  DocumentBatches() {
    Prng chance(5);
    std::vector<uint16_t> tokens;
    for (int i = 0; i < 1500; ++i) {
      const uint64_t longest = uint64_t{8} << chance.below(7);
      const uint64_t length = 2 + chance.below(longest);
      for (uint64_t t = 0; t < length; ++t)
        tokens.push_back(static_cast<uint16_t>(10 + chance.below(90)));
      tokens.push_back(kEnd);
      labels_ += length;
    }
    write_file(dir_.path("x.bin"),
               {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint16_t)});
  }

  std::unique_ptr<Dataset> open(Documents documents, bool by_length) {
    SampleCut cut{.block = kBlock};
    cut.documents = documents;
    cut.document_end = kEnd;
    cut.by_length = by_length;
    auto opened =
        open_dataset(spec_of(dir_.path(""), "auto"), Split::kTrain, dir_.path("cache"), {}, cut);
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    return std::move(opened).value();
  }

  struct Epoch {
    uint64_t labels = 0;               // that count
    uint64_t places = 0;               // of all batches
    std::vector<uint32_t> longest;     // by batch
    std::map<Step, uint64_t> by_step;  // labels that count
  };

  static Epoch deliver(const Dataset& dataset, const OrderSpec& order, bool keeps_padding = false) {
    LoaderOptions options;
    options.shape = {dataset.samples(), kBatch, kSlots};
    options.order = order;
    options.end_step = steps_per_epoch(options.shape);
    options.slots = {0, kSlots};
    options.transforms = {};
    options.keeps_padding = keeps_padding;
    const auto loader = Loader::start(dataset, options);
    EXPECT_TRUE(loader.is_ok()) << loader.status().message();
    Epoch epoch;
    while (const Batch* batch = (*loader)->next().value()) {
      const uint64_t places = batch->samples * batch->shape.labels();
      const auto counts = [](int64_t label) { return label != kIgnoredLabel; };
      const auto counted =
          static_cast<uint64_t>(std::count_if(batch->labels, batch->labels + places, counts));
      uint32_t longest = 0;
      for (uint64_t i = 0; i < batch->samples; ++i) {
        const int64_t* const row = batch->labels + i * batch->shape.labels();
        const int64_t* const end = row + batch->shape.labels();
        longest = std::max(longest, static_cast<uint32_t>(std::count_if(row, end, counts)));
        // The labels of a row are its own tokens, one further on: no row has moved over another.
        const int64_t* const tokens = batch->tokens + i * batch->shape.elements();
        for (uint32_t t = 0; !batch->shape.has_positions && t + 1 < batch->shape.tokens; ++t) {
          if (counts(row[t + 1])) {
            EXPECT_EQ(row[t], tokens[t + 1]);
          }
        }
      }
      epoch.longest.push_back(longest);
      if (batch->shape.is_padded && !keeps_padding) {
        EXPECT_GE(batch->shape.tokens, longest);
        EXPECT_LT(batch->shape.tokens, longest + kWidthStep);
      } else {
        EXPECT_EQ(batch->shape.tokens, kBlock);
      }
      epoch.labels += counted;
      epoch.places += places;
      epoch.by_step[batch->step] += counted;
    }
    return epoch;
  }

  static OrderSpec order_of(const Dataset& dataset) {
    return {.seed = 3, .fingerprint = dataset.fingerprint(), .samples = dataset.samples()};
  }

  TemporaryDirectory dir_;
  uint64_t labels_ = 0;
};

double padding_of(uint64_t labels, uint64_t places) {
  return 1 - static_cast<double>(labels) / static_cast<double>(places);
}

TEST_F(DocumentBatches, HaveEveryLabelOnceAndByLengthLittlePadding) {
  const auto plain = open(Documents::kPad, false);
  const Epoch wide = deliver(*plain, order_of(*plain), /*keeps_padding=*/true);
  const Epoch cut = deliver(*plain, order_of(*plain));
  const auto sorted = open(Documents::kPad, true);
  OrderSpec in_blocks = order_of(*sorted);
  in_blocks.blocks = {64, 1};
  const Epoch by_length = deliver(*sorted, in_blocks);
  for (const Epoch* epoch : {&wide, &cut, &by_length}) EXPECT_EQ(epoch->labels, labels_);
  EXPECT_GT(padding_of(labels_, wide.places), 0.8);
  EXPECT_LT(cut.places, wide.places);
  EXPECT_LT(padding_of(labels_, by_length.places), 0.35);  // short ones are filled up to 32
  EXPECT_GT(padding_of(labels_, cut.places), 2 * padding_of(labels_, by_length.places));
}

TEST_F(DocumentBatches, OfACurriculumGetLonger) {
  const auto sorted = open(Documents::kPad, true);
  OrderSpec order = order_of(*sorted);
  order.classes = 4;
  const Epoch epoch = deliver(*sorted, order);
  EXPECT_EQ(epoch.labels, labels_);
  const size_t quarter = epoch.longest.size() / 4;
  for (size_t i = 0; i + quarter < epoch.longest.size(); i += quarter)
    EXPECT_LE(epoch.longest[i], epoch.longest[i + quarter]) << i;
  EXPECT_LT(epoch.longest.front() * 8, epoch.longest.back());
}

TEST_F(DocumentBatches, CountTheLabelsThatAStepHas) {
  for (const Documents documents : {Documents::kPad, Documents::kPack}) {
    const auto dataset = open(documents, false);
    const Epoch epoch = deliver(*dataset, order_of(*dataset));
    EXPECT_EQ(epoch.labels, labels_);
    EXPECT_EQ(all_counted_labels(*dataset), labels_);
    const RunShape shape{dataset->samples(), kBatch, kSlots};
    LabelCount count(*dataset, order_of(*dataset));
    for (const auto& [step, labels] : epoch.by_step)
      EXPECT_EQ(count.of_step(plan_step(shape, step), step, kSlots, {}), labels) << step;
  }
}

}  // namespace
}  // namespace lockstep::data
