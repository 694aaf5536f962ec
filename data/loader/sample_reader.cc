#include "data/loader/sample_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "comm/base/check.h"
#include "data/dataset/float_image.h"
#include "data/dataset/id_row.h"
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
    // A negative token of 8 bytes, too, becomes a number beyond every vocabulary.
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

int64_t read_tokens(const uint8_t* stored, const SampleShape& shape, int64_t* input,
                    int64_t* labels) {
  switch (shape.token_bytes) {
    case 1:
      return read_tokens<uint8_t>(stored, shape.tokens, input, labels);
    case 2:
      return read_tokens<uint16_t>(stored, shape.tokens, input, labels);
    case 4:
      return read_tokens<uint32_t>(stored, shape.tokens, input, labels);
    default:
      return read_tokens<uint64_t>(stored, shape.tokens, input, labels);
  }
}

// Refuses words that move or mix pixels: they would change the image alone, not its fields.
Status check_fields(const SampleShape& shape, const TransformList& list) {
  if (shape.fields == nullptr) return Status::ok();
  if (!list.mix.is_empty() && shape.record_bytes() > 0)
    return {Code::kUsage, "data.transforms mixes images of a batch, but " + text_of(*shape.fields) +
                              " cannot be mixed; take mixup and cutmix out of data.transforms"};
  const bool moves =
      !list.frame.is_empty() ||
      std::any_of(list.augment.begin(), list.augment.end(), [](const auto& step) {
        return step.kind == AugmentKind::kFlip || step.kind == AugmentKind::kFlipVertical ||
               step.kind == AugmentKind::kPadCrop || step.kind == AugmentKind::kRotate;
      });
  for (const FieldSpec& field : shape.fields->specs()) {
    if (!moves || field.follows_image || field.dims.size() < 2) continue;
    return {Code::kUsage, "data.transforms moves the pixels of images, but not those of " +
                              field.name +
                              ", so they would no longer fit; leave out resize, crops, flips, "
                              "pad_crop and rotate"};
  }
  return Status::ok();
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
    return Status(Code::kUsage,
                  "data.transforms names \"" + *of_images +
                      "\", which is for images; for rows of a table use only \"normalize\"");
  if (dataset.shape().float_bytes > 0 && !transforms.empty())
    return Status(Code::kUsage, "data.transforms names \"" + transforms.front() +
                                    "\", which is for images of bytes, but the data are floats; "
                                    "set data.transforms to [], and scale the arrays where you "
                                    "write them");
  if (dataset.shape().has_ids() && !transforms.empty())
    return Status(Code::kUsage, "data.transforms names \"" + transforms.front() +
                                    "\", which is for images, but the data are rows of ids; set "
                                    "data.transforms to []");
  LOCKSTEP_RETURN_IF_ERROR(check_fields(dataset.shape(), list));
  const auto encoded = dataset.as<EncodedImages>();
  LOCKSTEP_CHECK((encoded ? encoded->at(0).from.wanted().frame : ImageFrame()) == list.frame,
                 "images opened for another frame");
  LOCKSTEP_ASSIGN_OR_RETURN(Transform transform, Transform::create(transforms, statistics));
  return SampleReader(dataset, std::move(transform), form);
}

Result<const uint8_t*> SampleReader::decode(const SamplePlace& place, SampleHand& hand,
                                            std::optional<uint64_t> stream,
                                            std::span<const uint8_t> encoded) const {
  const auto [images, number] = encoded_->at(place);
  if (encoded.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(images.read_encoded(number, hand.encoded));
    encoded = hand.encoded;
  }
  hand.decoded.resize(shape_.elements());
  const Status decoded = hand.decoder.decode(encoded, images.wanted(), stream, hand.decoded.data());
  if (!decoded.is_ok())
    return Status(decoded.code(), images.name_of(number) + " " + decoded.message());
  return static_cast<const uint8_t*>(hand.decoded.data());
}

Status SampleReader::read(uint64_t i, std::byte* input, int64_t* labels, SampleHand* hand,
                          std::optional<uint64_t> stream, std::span<const uint8_t> given,
                          std::byte* record) const {
  LOCKSTEP_CHECK(hand != nullptr || (!encoded_ && !stream), "a sample made without a hand");
  const SamplePlace place = dataset_->place_of(i);
  if (sequences_) {
    const auto [from, number] = sequences_->at(place);
    return check(i, from.make_sequence(number, reinterpret_cast<int64_t*>(input), labels));
  }
  const uint8_t* stored = given.data();
  if (encoded_) {
    LOCKSTEP_ASSIGN_OR_RETURN(stored, decode(place, *hand, stream, given));
  } else if (given.empty()) {
    const auto [from, number] = stored_->at(place);
    stored = from.sample(number);
  }
  if (!labels_)
    return check(i, read_tokens(stored, shape_, reinterpret_cast<int64_t*>(input), labels));
  SampleShape shape = shape_;
  if (stream && !hand->augmenter.is_empty()) {
    stored = hand->augmenter.make(stored, *stream);
    shape.channels_last = false;
  }
  if (shape_.float_bytes > 0)
    LOCKSTEP_RETURN_IF_ERROR(read_floats(i, stored, reinterpret_cast<float*>(input)));
  else if (shape_.has_ids())
    LOCKSTEP_RETURN_IF_ERROR(read_ids(i, stored, reinterpret_cast<int64_t*>(input)));
  else if (shape_.is_row)
    transform_.apply_row(stored, reinterpret_cast<float*>(input));
  else if (form_ == ImageForm::kStored)
    copy_image(stored, shape, reinterpret_cast<uint8_t*>(input));
  else
    transform_.apply(stored, shape, reinterpret_cast<float*>(input));
  const auto [from, number] = labels_->at(place);
  *labels = from.label(number);
  LOCKSTEP_RETURN_IF_ERROR(check(i, *labels));
  if (shape_.record_bytes() == 0) return Status::ok();
  LOCKSTEP_CHECK(record != nullptr && fields_, "no place for fields, or none who has them");
  const auto [fields, place_of_fields] = fields_->at(place);
  const Status has_read = fields.read_record(place_of_fields, record);
  if (!has_read.is_ok())
    LOCKSTEP_RETURN_IF_ERROR(unchanged(std::span(&i, 1)));  // a change would explain it
  if (!has_read.is_ok() || !masks_) return has_read;
  return read_masks(place, *hand, stream, record);
}

Status SampleReader::read_floats(uint64_t i, const uint8_t* stored, float* input) const {
  if (read_float_image(stored, shape_, input)) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(unchanged(std::span(&i, 1)));  // a change would explain it
  return refused_floats(dataset_->name_of(i));
}

Status SampleReader::read_ids(uint64_t i, const uint8_t* stored, int64_t* input) const {
  if (read_id_row(stored, shape_, input)) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(unchanged(std::span(&i, 1)));  // a change would explain it
  return refused_ids(dataset_->name_of(i));
}

Status SampleReader::read_masks(const SamplePlace& place, SampleHand& hand,
                                std::optional<uint64_t> stream, std::byte* record) const {
  const auto [masks, number] = masks_->at(place);
  const WantedImage& wanted = encoded_->at(place).from.wanted();
  const FieldList& fields = *shape_.fields;
  size_t mask = 0;
  for (size_t f = 0; f < fields.specs().size(); ++f) {
    if (!fields.specs()[f].follows_image) continue;
    auto* const out = reinterpret_cast<uint8_t*>(record + fields.offset(f));
    LOCKSTEP_RETURN_IF_ERROR(masks.read_mask(number, mask, hand.encoded_mask));
    const Status decoded = hand.mask_decoder.decode_mask(hand.encoded_mask, wanted, stream, out);
    if (!decoded.is_ok())
      return Status(decoded.code(), masks.mask_name(number, mask) + " " + decoded.message());
    if (stream && !hand.augmenter.is_empty()) hand.augmenter.make_mask(out, *stream);
    ++mask;
  }
  return Status::ok();
}

Status SampleReader::check(uint64_t i, int64_t largest) const {
  return largest < int64_t{dataset_->classes()} ? Status::ok() : not_a_class(i, largest);
}

Status SampleReader::not_a_class(uint64_t i, int64_t found) const {
  LOCKSTEP_RETURN_IF_ERROR(unchanged(std::span(&i, 1)));  // a change would explain it
  const std::string where =
      shape_.is_sequence() ? dataset_->name_of(i) : dataset_->label_name_of(i);
  return {Code::kBadData, where + " has " + (shape_.is_sequence() ? "token " : "label ") +
                              std::to_string(found) + ", but the data have only " +
                              std::to_string(dataset_->classes()) +
                              " (counted from 0): the file changed during the run. Put the old "
                              "file back, and resume the run"};
}

Status SampleReader::read_range(uint64_t begin, uint64_t end, std::byte* inputs,
                                int64_t* labels) const {
  LOCKSTEP_CHECK(begin <= end && end <= dataset_->samples(), "range beyond the dataset");
  std::vector<uint64_t> samples(end - begin);
  std::iota(samples.begin(), samples.end(), begin);
  SampleHand hand;
  std::byte* record = records_of(shape_, labels, samples.size());
  for (const uint64_t i : samples) {
    LOCKSTEP_RETURN_IF_ERROR(read(i, inputs, labels, &hand, {}, {}, record));
    inputs += input_bytes();
    labels += shape_.labels();
    if (record != nullptr) record += shape_.record_bytes();
  }
  return unchanged(samples);
}

}  // namespace lockstep::data
