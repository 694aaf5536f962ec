#include "data/read/sample_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/base/check.h"

namespace lockstep::data {
namespace {

// The largest token. `T`: as stored; the target is little-endian, as the files are; they need not
// be aligned.
template <typename T>
int64_t read_tokens(const uint8_t* stored, uint64_t tokens, int64_t* input, int64_t* labels) {
  const auto token = [stored](uint64_t i) {
    T value;
    std::memcpy(&value, stored + i * sizeof(T), sizeof(T));
    return static_cast<int64_t>(value);
  };
  int64_t largest = token(0);
  for (uint64_t i = 0; i < tokens; ++i) input[i] = token(i);
  for (uint64_t i = 0; i < tokens; ++i) {
    labels[i] = token(i + 1);
    largest = std::max(largest, labels[i]);
  }
  return largest;
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

Status SampleReader::read(uint64_t i, std::byte* input, int64_t* labels) const {
  const uint8_t* stored = dataset_->sample(i);
  int64_t largest = 0;
  if (!shape_.is_sequence()) {
    if (form_ == ImageForm::kStored)
      std::memcpy(input, stored, shape_.stored_bytes());
    else
      transform_.apply(stored, shape_, reinterpret_cast<float*>(input));
    *labels = dataset_->label(i);
    largest = *labels;
  } else {
    auto* tokens = reinterpret_cast<int64_t*>(input);
    if (shape_.token_bytes == 1)
      largest = read_tokens<uint8_t>(stored, shape_.tokens, tokens, labels);
    if (shape_.token_bytes == 2)
      largest = read_tokens<uint16_t>(stored, shape_.tokens, tokens, labels);
    if (shape_.token_bytes == 4)
      largest = read_tokens<uint32_t>(stored, shape_.tokens, tokens, labels);
  }
  return largest < int64_t{dataset_->classes()} ? Status::ok() : not_a_class(i, largest);
}

Status SampleReader::not_a_class(uint64_t i, int64_t found) const {
  const std::vector<std::string>& files = dataset_->files();
  const std::string where =
      files.empty() ? "the data"
                    : files.front() + (files.size() > 1 ? " and the files with it" : "");
  return {Code::kBadData, "sample " + std::to_string(i) + " of " + where + " has " +
                              (shape_.is_sequence() ? "token " : "label ") + std::to_string(found) +
                              ", but there are " + std::to_string(dataset_->classes()) +
                              " (they are counted from 0). Either the file has changed since the "
                              "run began, or model.vocab is too small for it"};
}

Status SampleReader::read_range(uint64_t begin, uint64_t end, std::byte* inputs,
                                int64_t* labels) const {
  LOCKSTEP_CHECK(begin <= end && end <= dataset_->samples(), "range beyond the dataset");
  for (uint64_t i = begin; i < end; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(read(i, inputs, labels));
    inputs += input_bytes();
    labels += shape_.labels();
  }
  return Status::ok();
}

}  // namespace lockstep::data
