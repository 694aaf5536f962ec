#include "coordinator/report/curves.h"

#include <algorithm>

namespace lockstep::coordinator {
namespace {

std::vector<CurveBin> merged(const std::vector<CurveBin>& bins, uint64_t width) {
  std::vector<CurveBin> out;
  for (const CurveBin& bin : bins) put_bin(bin, width, &out);
  return out;
}

}  // namespace

void Curves::add(const StepEntry& step) {
  put_bin(bin_of(step), width_, &bins_);
  while (bins_.size() > kBins) widen(width_ * 2);
}

void Curves::add(const StepPiece& piece) {
  widen(std::max(width_, curve_width(piece.last)));
  for (const CurveBin& bin : piece.bins) put_bin(bin, width_, &bins_);
}

void Curves::widen(uint64_t width) {
  if (width == width_) return;
  width_ = width;
  bins_ = merged(bins_, width_);
}

std::vector<CurveBin> Curves::thinned(size_t points) const {
  uint64_t width = width_;
  std::vector<CurveBin> out = bins_;
  while (out.size() > std::max<size_t>(points, 1)) {
    width *= 2;
    out = merged(out, width);
  }
  return out;
}

}  // namespace lockstep::coordinator
