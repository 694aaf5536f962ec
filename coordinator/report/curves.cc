#include "coordinator/report/curves.h"

#include <algorithm>
#include <cmath>

namespace lockstep::coordinator {
namespace {

void merge(const CurveBin& from, CurveBin* into) {
  if (from.finite > 0) {
    const bool is_first = into->finite == 0;
    into->loss_min = is_first ? from.loss_min : std::min(into->loss_min, from.loss_min);
    into->loss_max = is_first ? from.loss_max : std::max(into->loss_max, from.loss_max);
  }
  into->steps += from.steps;
  into->finite += from.finite;
  into->loss_sum += from.loss_sum;
  into->lr = from.lr;
  into->samples += from.samples;
  into->wall_us += from.wall_us;
}

// `bin` joins the last one if it lies in the same stretch of `width` steps.
void put(const CurveBin& bin, uint64_t width, std::vector<CurveBin>* bins) {
  const Step first = bin.first / width * width;
  if (!bins->empty() && bins->back().first == first) return merge(bin, &bins->back());
  bins->push_back(bin);
  bins->back().first = first;
}

std::vector<CurveBin> merged(const std::vector<CurveBin>& bins, uint64_t width) {
  std::vector<CurveBin> out;
  for (const CurveBin& bin : bins) put(bin, width, &out);
  return out;
}

}  // namespace

void Curves::add(const StepEntry& step) {
  CurveBin bin{step.step, 1, 0, 0, 0, 0, step.lr, step.samples, step.wall_us};
  if (std::isfinite(step.loss)) {
    bin.finite = 1;
    bin.loss_sum = bin.loss_min = bin.loss_max = step.loss;
  }
  put(bin, width_, &bins_);
  while (bins_.size() > kBins) {
    width_ *= 2;
    bins_ = merged(bins_, width_);
  }
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
