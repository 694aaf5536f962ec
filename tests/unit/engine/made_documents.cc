#include "tests/unit/engine/made_documents.h"

#include <algorithm>
#include <string>
#include <utility>

#include "comm/base/labels.h"
#include "comm/base/prng.h"

namespace lockstep::testing {
namespace {

class MadeDocuments final : public data::Sequences {
 public:
  MadeDocuments(std::vector<std::vector<Document>> sequences, const data::SampleShape& shape)
      : sequences_(std::move(sequences)), shape_(shape) {}

  int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const override {
    std::fill(input, input + shape_.elements(), 0);
    std::fill(labels, labels + shape_.labels(), kIgnoredLabel);
    int64_t largest = 0;
    uint64_t at = 0;
    for (const Document& document : sequences_[i])
      for (uint64_t p = 0; p + 1 < document.size(); ++p, ++at) {
        input[at] = document[p];
        if (shape_.has_positions) input[shape_.tokens + at] = static_cast<int64_t>(p);
        labels[at] = document[p + 1];
        largest = std::max({largest, input[at], labels[at]});
      }
    return largest;
  }
  uint64_t counted_labels(uint64_t i) const override {
    uint64_t labels = 0;
    for (const Document& document : sequences_[i]) labels += document.size() - 1;
    return labels;
  }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

 private:
  const std::vector<std::vector<Document>> sequences_;
  const data::SampleShape shape_;
};

std::unique_ptr<data::Dataset> make_dataset(std::vector<std::vector<Document>> sequences,
                                            uint32_t block, bool has_positions) {
  data::DatasetFacts facts{.samples = sequences.size(),
                           .classes = 256,
                           .format = "text",
                           .fingerprint = "made documents"};
  facts.shape.tokens = block;
  facts.shape.token_bytes = 1;
  facts.shape.has_positions = has_positions;
  facts.shape.is_padded = !has_positions;
  auto made = std::make_shared<const MadeDocuments>(std::move(sequences), facts.shape);
  return std::make_unique<data::Dataset>(std::move(facts), std::move(made));
}

}  // namespace

std::vector<Document> make_documents(uint32_t count, uint32_t longest, uint64_t seed) {
  Prng chance(seed);
  std::vector<Document> documents(count);
  for (Document& document : documents) {
    document.resize(2 + chance.below(longest - 1));
    uint8_t token = static_cast<uint8_t>(chance.below(40));
    for (uint8_t& each : document) {
      each = token;
      token = static_cast<uint8_t>((token * 3 + 1 + chance.below(2)) % 40);
    }
  }
  return documents;
}

std::unique_ptr<data::Dataset> padded(const std::vector<Document>& documents, uint32_t block) {
  std::vector<std::vector<Document>> sequences;
  for (const Document& document : documents) sequences.push_back({document});
  return make_dataset(std::move(sequences), block, /*has_positions=*/false);
}

std::unique_ptr<data::Dataset> packed(const std::vector<Document>& documents, uint32_t block) {
  std::vector<std::vector<Document>> sequences(1);
  uint64_t used = 0;
  for (const Document& document : documents) {
    if (used + document.size() - 1 > block) {
      sequences.emplace_back();
      used = 0;
    }
    sequences.back().push_back(document);
    used += document.size() - 1;
  }
  return make_dataset(std::move(sequences), block, /*has_positions=*/true);
}

}  // namespace lockstep::testing
