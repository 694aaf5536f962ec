#include "comm/collectives/host/segment_buffer.h"

#include <utility>

#include "comm/base/check.h"

namespace lockstep::host {
namespace {

class SegmentBuffer final : public GradientBuffer {
 public:
  SegmentBuffer(std::shared_ptr<link::Segment> segment, const GradientGeometry& geometry)
      : segment_(std::move(segment)), geometry_(geometry) {}

  const BufferLayout& layout() const override { return geometry_.layout; }
  uint32_t regions() const override { return geometry_.regions; }
  float* partial(uint32_t region) override {
    LOCKSTEP_CHECK(region < geometry_.regions, "no such region");
    return at(geometry_.partial_offset(region));
  }
  float* result() override { return at(geometry_.result_offset()); }

 private:
  float* at(size_t offset) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(segment_->data()) + offset);
  }

  std::shared_ptr<link::Segment> segment_;
  GradientGeometry geometry_;
};

}  // namespace

std::unique_ptr<GradientBuffer> make_segment_buffer(std::shared_ptr<link::Segment> segment,
                                                    const GradientGeometry& geometry) {
  return std::make_unique<SegmentBuffer>(std::move(segment), geometry);
}

}  // namespace lockstep::host
