#include "comm/run/evaluation/eval_track.h"

#include <cmath>

namespace lockstep {
namespace {

double accuracy_of(const EvalMark& mark) {
  return mark.samples == 0 ? 0
                           : static_cast<double>(mark.correct) / static_cast<double>(mark.samples);
}

}  // namespace

BestBy best_by(const std::string& best) {
  return best == "accuracy" ? BestBy::kAccuracy : BestBy::kLoss;
}

bool is_better(const EvalMark& mark, const EvalMark& other, BestBy by) {
  if (mark.step == 0 || !std::isfinite(mark.loss)) return false;
  if (other.step == 0) return true;
  return by == BestBy::kLoss ? mark.loss < other.loss : accuracy_of(mark) > accuracy_of(other);
}

void EvalTrack::add(const EvalMark& mark, BestBy by) {
  if (mark.step <= last.step) return;
  last = mark;
  if (is_better(mark, best, by)) {
    best = mark;
    since = 0;
  } else {
    ++since;
  }
}

}  // namespace lockstep
