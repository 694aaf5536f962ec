// Which evaluation of a run is the best, and when a run ends for want of better ones
// (checkpoint.best, train.patience). Pure arithmetic over the evaluations of one lineage, in order,
// with the same result on every member and on the coordinator.
//
// A track belongs to a state: it has the evaluations that the state has passed, and travels with it
// from member to member.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/ids.h"

namespace lockstep {

enum class BestBy : uint8_t { kLoss, kAccuracy };

// `best`: checkpoint.best, or nothing in a job that is older than the key. Without a metric: by
// loss.
BestBy best_by(const std::string& best);
// Whether the run keeps the checkpoint of the best evaluation.
inline bool keeps_best(const std::string& best) {
  return best == "loss" || best == "accuracy";
}

struct EvalMark {
  Step step = 0;  // 0: there was no evaluation
  double loss = 0;
  uint64_t correct = 0;
  uint64_t samples = 0;
  bool operator==(const EvalMark&) const = default;
};

// Whether `mark` is better than `other`: if both are equal, the first counts. Any is better than
// none, except one whose loss is not a number.
bool is_better(const EvalMark& mark, const EvalMark& other, BestBy by);

struct EvalTrack {
  EvalMark best;
  EvalMark last;
  uint32_t since = 0;  // evaluations after the best one
  EvalMark kept;       // the best one with a checkpoint

  // The next evaluation. One that is known already changes nothing.
  void add(const EvalMark& mark, BestBy by);
  // Whether the run ends at `last`. `patience`: train.patience.
  bool is_over(uint32_t patience) const { return patience > 0 && since >= patience; }
  bool operator==(const EvalTrack&) const = default;
};

// The messages wire::EvalMark, EvalReport and EvalTrack, which this library does without.
template <typename Message>
EvalMark mark_of(const Message& message) {
  return {message.step(), message.loss(), message.correct(), message.samples()};
}
template <typename Message>
EvalTrack track_of(const Message& message) {
  return {mark_of(message.best()), mark_of(message.last()), message.since(),
          mark_of(message.kept())};
}
template <typename Message>
void put(const EvalMark& mark, Message* into) {
  into->set_step(mark.step);
  into->set_loss(mark.loss);
  into->set_correct(mark.correct);
  into->set_samples(mark.samples);
}
template <typename Message>
void put_track(const EvalTrack& track, Message* into) {
  put(track.best, into->mutable_best());
  put(track.last, into->mutable_last());
  into->set_since(track.since);
  put(track.kept, into->mutable_kept());
}

}  // namespace lockstep
