#include "coordinator/journal/step_piece.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

}  // namespace

CurveBin bin_of(const StepEntry& step) {
  CurveBin bin{step.step, 1, 0, 0, 0, 0, step.lr, step.samples, step.wall_us};
  if (std::isfinite(step.loss)) {
    bin.finite = 1;
    bin.loss_sum = bin.loss_min = bin.loss_max = step.loss;
  }
  return bin;
}

uint64_t curve_width(Step steps) {
  uint64_t width = 1;
  while ((steps + width - 1) / width > kCurveBins) width *= 2;
  return width;
}

void put_bin(const CurveBin& bin, uint64_t width, std::vector<CurveBin>* bins) {
  const Step first = bin.first / width * width;
  if (!bins->empty() && bins->back().first == first) return merge(bin, &bins->back());
  bins->push_back(bin);
  bins->back().first = first;
}

void StepTally::add(const StepEntry& step) {
  samples += step.samples;
  correct += step.correct;
  wall_us += step.wall_us;
}

uint64_t StepTotals::useful(uint64_t wall_us) const {
  const bool stood_still =
      cold_left == 0 && wall_us > kStandstillTimes * usual_us && wall_us > usual_us + kStandstillUs;
  return stood_still ? usual_us : wall_us;
}

void StepTotals::add(const StepEntry& step) {
  if (step.generation != generation) cold_left = kWarmUpSteps;
  generation = step.generation;
  all.add(step);
  constexpr uint64_t kLately = 16;  // steps
  const uint64_t counted_us = useful(step.wall_us);
  useful_us += counted_us;
  usual_us = usual_us == 0 ? counted_us : ((kLately - 1) * usual_us + counted_us) / kLately;
  if (cold_left > 0) {
    --cold_left;
  } else {
    steady.add(step);
  }
}

std::vector<StepPiece> pieces_before(std::vector<StepPiece> pieces, Step end) {
  while (!pieces.empty() && pieces.back().last > end) pieces.pop_back();
  return pieces;
}

std::vector<StepPiece> pieces_well_before(std::vector<StepPiece> pieces, Step end) {
  pieces = pieces_before(std::move(pieces), end);
  if (!pieces.empty()) pieces.pop_back();
  return pieces;
}

}  // namespace lockstep::coordinator
