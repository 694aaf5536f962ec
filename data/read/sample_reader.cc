#include "data/read/sample_reader.h"

#include <cstring>
#include <utility>

#include "comm/base/check.h"

namespace lockstep::data {
namespace {

// `T`: as stored. The target is little-endian, as the files are; they need not be aligned.
template <typename T>
void read_tokens(const uint8_t* stored, uint64_t tokens, int64_t* input, int64_t* labels) {
  const auto token = [stored](uint64_t i) {
    T value;
    std::memcpy(&value, stored + i * sizeof(T), sizeof(T));
    return static_cast<int64_t>(value);
  };
  for (uint64_t i = 0; i < tokens; ++i) input[i] = token(i);
  for (uint64_t i = 0; i < tokens; ++i) labels[i] = token(i + 1);
}

}  // namespace

Result<SampleReader> SampleReader::create(const Dataset& dataset,
                                          const std::vector<std::string>& transforms,
                                          const std::vector<ChannelStatistics>& statistics,
                                          ImageForm form) {
  if (dataset.shape().is_sequence() && !transforms.empty())
    return Status(Code::kUsage, "data.transforms names \"" + transforms.front() +
                                    "\", which is for images; leave the list empty for tokens");
  LOCKSTEP_ASSIGN_OR_RETURN(Transform transform, Transform::create(transforms, statistics));
  return SampleReader(dataset, std::move(transform), form);
}

void SampleReader::read(uint64_t i, std::byte* input, int64_t* labels) const {
  const uint8_t* stored = dataset_->sample(i);
  if (!shape_.is_sequence()) {
    if (form_ == ImageForm::kStored)
      std::memcpy(input, stored, shape_.stored_bytes());
    else
      transform_.apply(stored, shape_, reinterpret_cast<float*>(input));
    *labels = dataset_->label(i);
    return;
  }
  auto* tokens = reinterpret_cast<int64_t*>(input);
  if (shape_.token_bytes == 1) read_tokens<uint8_t>(stored, shape_.tokens, tokens, labels);
  if (shape_.token_bytes == 2) read_tokens<uint16_t>(stored, shape_.tokens, tokens, labels);
  if (shape_.token_bytes == 4) read_tokens<uint32_t>(stored, shape_.tokens, tokens, labels);
}

void SampleReader::read_range(uint64_t begin, uint64_t end, std::byte* inputs,
                              int64_t* labels) const {
  LOCKSTEP_CHECK(begin <= end && end <= dataset_->samples(), "range beyond the dataset");
  for (uint64_t i = begin; i < end; ++i) {
    read(i, inputs, labels);
    inputs += input_bytes();
    labels += shape_.labels();
  }
}

}  // namespace lockstep::data
