#include "data/io/reader_trial.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/base/check.h"

namespace lockstep::data {

ReaderTrial::ReaderTrial(std::vector<std::unique_ptr<Reader>> readers)
    : readers_(std::move(readers)), rates_(readers_.size()) {
  LOCKSTEP_CHECK(!readers_.empty(), "nothing reads");
  for (const auto& reader : readers_) names_.emplace_back(reader->name());
}

void ReaderTrial::end_turn() {
  const double seconds = static_cast<double>(std::max<int64_t>(ns_, 1)) / 1e9;
  double& best = rates_[turn_ % rates_.size()];
  best = std::max(best, static_cast<double>(bytes_) / seconds);
  ++turn_;
  reads_ = bytes_ = 0;
  ns_ = 0;
}

std::unique_ptr<Reader> ReaderTrial::winner() {
  size_t best = 0;
  for (size_t i = 1; i < rates_.size(); ++i) {
    const double handicap = best == 0 ? kClearly : 1;
    if (rates_[i] > rates_[best] * handicap) best = i;
  }
  auto won = std::move(readers_[best]);
  readers_.clear();
  return won;
}

std::string ReaderTrial::figures() const {
  std::string text;
  if (rates_.size() == 1) return text;
  for (size_t i = 0; i < rates_.size(); ++i)
    text += (text.empty() ? "" : ", ") + names_[i] + " " +
            std::to_string(std::llround(rates_[i] / 1e6)) + " MB/s";
  return text;
}

}  // namespace lockstep::data
