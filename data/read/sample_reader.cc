#include "data/read/sample_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "comm/base/check.h"
#include "data/transform/image_ops.h"

namespace lockstep::data {
namespace {

// The largest token. `T`: as stored; the target is little-endian, as the files are; they need not
// be aligned.
template <typename T>
int64_t read_tokens(const uint8_t* stored, uint64_t tokens, int64_t* input, int64_t* labels) {
  const auto token = [stored](uint64_t i) {
    T value;
    std::memcpy(&value, stored + i * sizeof(T), sizeof(T));
    // Of a negative one of 8 bytes what is beyond every vocabulary, too.
    return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
  };
  int64_t largest = token(0);
  for (uint64_t i = 0; i < tokens; ++i) input[i] = token(i);
  for (uint64_t i = 0; i < tokens; ++i) {
    labels[i] = token(i + 1);
    largest = std::max(largest, labels[i]);
  }
  return largest;
}

// To (C, H, W).
void copy_image(const uint8_t* stored, const SampleShape& shape, uint8_t* out) {
  if (!shape.channels_last) {
    std::memcpy(out, stored, shape.stored_bytes());
    return;
  }
  copy_channels_first(stored, {out, shape.channels, shape.height, shape.width});
}

}  // namespace

Result<SampleReader> SampleReader::create(const Dataset& dataset,
                                          const std::vector<std::string>& transforms,
                                          const std::vector<ChannelStatistics>& statistics,
                                          ImageForm form) {
  if (dataset.shape().is_sequence() && !transforms.empty())
    return Status(Code::kUsage, "data.transforms names \"" + transforms.front() +
                                    "\", which is for images; leave the list empty for tokens");
  LOCKSTEP_ASSIGN_OR_RETURN(const TransformList list, parse_transforms(transforms));
  const auto of_images = std::find_if(transforms.begin(), transforms.end(),
                                      [](const std::string& word) { return word != "normalize"; });
  if (dataset.shape().is_row && of_images != transforms.end())
    return Status(Code::kUsage, "data.transforms names \"" + *of_images +
                                    "\", which is for images; rows of a table can only be given "
                                    "\"normalize\"");
  const bool is_encoded = dataset.encoded_form() != nullptr;
  const ImageFrame frame = is_encoded ? dataset.encoded_form()->frame : ImageFrame();
  LOCKSTEP_CHECK(frame == list.frame, "images opened for another frame");
  LOCKSTEP_ASSIGN_OR_RETURN(Transform transform, Transform::create(transforms, statistics));
  return SampleReader(dataset, std::move(transform), form);
}

Result<const uint8_t*> SampleReader::decode(uint64_t i, SampleHand& hand,
                                            std::optional<uint64_t> stream,
                                            std::span<const uint8_t> encoded) const {
  if (encoded.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(dataset_->read_encoded(i, hand.encoded));
    encoded = hand.encoded;
  }
  hand.decoded.resize(shape_.elements());
  const Status decoded =
      hand.decoder.decode(encoded, *dataset_->encoded_form(), stream, hand.decoded.data());
  if (!decoded.is_ok())
    return Status(decoded.code(), dataset_->name_of(i) + " " + decoded.message());
  return static_cast<const uint8_t*>(hand.decoded.data());
}

Status SampleReader::read(uint64_t i, std::byte* input, int64_t* labels, SampleHand* hand,
                          std::optional<uint64_t> stream, std::span<const uint8_t> given) const {
  const bool is_encoded = dataset_->encoded_form() != nullptr;
  LOCKSTEP_CHECK(hand != nullptr || (!is_encoded && !stream), "a sample made without a hand");
  if (dataset_->makes_sequences()) {
    const int64_t largest = dataset_->make_sequence(i, reinterpret_cast<int64_t*>(input), labels);
    return largest < int64_t{dataset_->classes()} ? Status::ok() : not_a_class(i, largest);
  }
  const uint8_t* stored = nullptr;
  if (is_encoded) {
    LOCKSTEP_ASSIGN_OR_RETURN(stored, decode(i, *hand, stream, given));
  } else {
    stored = given.empty() ? dataset_->sample(i) : given.data();
  }
  SampleShape shape = shape_;
  if (stream && !hand->augmenter.is_empty()) {
    stored = hand->augmenter.make(stored, *stream);
    shape.channels_last = false;
  }
  int64_t largest = 0;
  if (!shape_.is_sequence()) {
    if (shape_.is_row)
      transform_.apply_row(stored, reinterpret_cast<float*>(input));
    else if (form_ == ImageForm::kStored)
      copy_image(stored, shape, reinterpret_cast<uint8_t*>(input));
    else
      transform_.apply(stored, shape, reinterpret_cast<float*>(input));
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
    if (shape_.token_bytes == 8)
      largest = read_tokens<uint64_t>(stored, shape_.tokens, tokens, labels);
  }
  return largest < int64_t{dataset_->classes()} ? Status::ok() : not_a_class(i, largest);
}

Status SampleReader::not_a_class(uint64_t i, int64_t found) const {
  LOCKSTEP_RETURN_IF_ERROR(unchanged(std::span(&i, 1)));  // which would explain it
  return {Code::kBadData, dataset_->name_of(i) + " has " +
                              (shape_.is_sequence() ? "token " : "label ") + std::to_string(found) +
                              ", but there are " + std::to_string(dataset_->classes()) +
                              " (they are counted from 0): the file has changed under the run. Put "
                              "back what was there, and resume the run"};
}

Status SampleReader::read_range(uint64_t begin, uint64_t end, std::byte* inputs,
                                int64_t* labels) const {
  LOCKSTEP_CHECK(begin <= end && end <= dataset_->samples(), "range beyond the dataset");
  std::vector<uint64_t> samples(end - begin);
  std::iota(samples.begin(), samples.end(), begin);
  SampleHand hand;
  for (const uint64_t i : samples) {
    LOCKSTEP_RETURN_IF_ERROR(read(i, inputs, labels, &hand));
    inputs += input_bytes();
    labels += shape_.labels();
  }
  return unchanged(samples);
}

}  // namespace lockstep::data
