#include "data/dataset/framed_dataset.h"

#include <optional>
#include <utility>

#include "data/image/image_decoder.h"
#include "data/image/raw_image.h"

namespace lockstep::data {
namespace {

class FramedImages final : public EncodedImages, public SampleFields {
 public:
  FramedImages(std::unique_ptr<Dataset> stored, WantedImage wanted)
      : stored_(std::move(stored)),
        pixels_(stored_->as<StoredSamples>().value()),
        labels_(stored_->as<Labels>().value()),
        fields_(stored_->as<SampleFields>()),
        wanted_(wanted) {
    const SampleShape& shape = stored_->shape();
    raw_ = {shape.width, shape.height, shape.channels, shape.channels_last};
  }

  const WantedImage& wanted() const override { return wanted_; }
  Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const override {
    const auto [from, number] = pixels_.at(i);
    make_raw_image(from.sample(number), raw_, out);
    return Status::ok();
  }
  uint32_t label(uint64_t i) const override {
    const auto [from, number] = labels_.at(i);
    return from.label(number);
  }
  Status read_record(uint64_t i, std::byte* record) const override {
    const auto [from, number] = fields_->at(i);
    return from.read_record(number, record);
  }
  std::string name_of(uint64_t i) const override { return stored_->name_of(i); }
  std::string label_name_of(uint64_t i) const override { return stored_->label_name_of(i); }
  Status unchanged(std::span<const uint64_t> samples) const override {
    return stored_->unchanged(samples);
  }

 private:
  const std::unique_ptr<Dataset> stored_;
  const As<StoredSamples> pixels_;
  const As<Labels> labels_;
  const std::optional<As<SampleFields>> fields_;  // set if the shape has fields
  const WantedImage wanted_;
  RawShape raw_;
};

}  // namespace

Result<std::unique_ptr<Dataset>> make_framed_dataset(std::unique_ptr<Dataset> stored,
                                                     const ImageFrame& frame) {
  if (frame.is_empty()) return stored;
  const uint32_t channels = stored->shape().channels;
  if (stored->shape().is_row)
    return Status(Code::kUsage,
                  "data.transforms changes the size of images, but the data are rows of a table; "
                  "leave out resize and the crops");
  if (stored->shape().float_bytes > 0)
    return Status(Code::kUsage,
                  "data.transforms changes the size of images of bytes, but the data are floats; "
                  "leave out resize and the crops, and write the arrays at their final size");
  if (stored->shape().has_ids())
    return Status(Code::kUsage,
                  "data.transforms changes the size of images, but the data are rows of ids; leave "
                  "out resize and the crops");
  if (channels != 1 && channels != 3)
    return Status(Code::kUsage,
                  "data.transforms changes the size of images, which needs one or three channels, "
                  "but the images have " +
                      std::to_string(channels) +
                      "; leave out resize and all crops except pad_crop");
  DatasetFacts facts = stored->facts();
  const WantedImage wanted{frame, frame.size, frame.size, channels};
  auto fields = std::move(facts.shape.fields);
  facts.shape = {wanted.channels, wanted.height, wanted.width};
  facts.shape.fields = std::move(fields);
  return std::make_unique<Dataset>(std::move(facts),
                                   std::make_shared<const FramedImages>(std::move(stored), wanted));
}

}  // namespace lockstep::data
