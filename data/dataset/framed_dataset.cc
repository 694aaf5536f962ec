#include "data/dataset/framed_dataset.h"

#include <utility>

#include "data/image/image_decoder.h"
#include "data/image/raw_image.h"

namespace lockstep::data {
namespace {

class FramedDataset final : public Dataset {
 public:
  FramedDataset(std::unique_ptr<Dataset> stored, const ImageFrame& frame)
      : stored_(std::move(stored)),
        wanted_{frame, frame.size, frame.size, stored_->shape().channels} {
    const SampleShape shape = stored_->shape();
    raw_ = {shape.width, shape.height, shape.channels, shape.channels_last};
  }

  uint64_t samples() const override { return stored_->samples(); }
  SampleShape shape() const override { return {wanted_.channels, wanted_.height, wanted_.width}; }
  uint32_t classes() const override { return stored_->classes(); }
  const std::string& format() const override { return stored_->format(); }
  const std::string& fingerprint() const override { return stored_->fingerprint(); }
  const std::vector<ChannelStatistics>& statistics() const override {
    return stored_->statistics();
  }
  const std::vector<std::string>& files() const override { return stored_->files(); }
  const uint8_t* sample(uint64_t) const override { return nullptr; }
  uint32_t label(uint64_t i) const override { return stored_->label(i); }
  Status unchanged(std::span<const uint64_t> samples) const override {
    return stored_->unchanged(samples);
  }
  const WantedImage* encoded_form() const override { return &wanted_; }
  Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const override {
    make_raw_image(stored_->sample(i), raw_, out);
    return Status::ok();
  }
  std::string name_of(uint64_t i) const override { return stored_->name_of(i); }
  std::vector<std::string> class_names() const override { return stored_->class_names(); }

 private:
  const std::unique_ptr<Dataset> stored_;
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
                  "data.transforms changes the size of images, and these are the rows of a table; "
                  "leave out resize and the crops");
  if (channels != 1 && channels != 3)
    return Status(Code::kUsage,
                  "data.transforms changes the size of images, which is for those of "
                  "one or three channels; these have " +
                      std::to_string(channels) + ". Leave out resize and the crops but pad_crop");
  return std::unique_ptr<Dataset>(std::make_unique<FramedDataset>(std::move(stored), frame));
}

}  // namespace lockstep::data
