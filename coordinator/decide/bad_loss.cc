// A step whose loss is no number, or a spike. When this is known, the step is in all members'
// weights already, so the run can leave its samples out only by going back to before it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/text/shell_word.h"
#include "comm/run/checkpoint/store.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/evaluations.h"
#include "coordinator/state/loss_watch.h"
#include "coordinator/state/skips.h"

namespace lockstep::coordinator {
namespace {

std::string loss_text(double value) {
  if (std::isnan(value)) return "nan";  // whose sign means nothing
  char text[40];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

// The losses of the newest steps that were the same turn of their batches: the phases of a loop
// have losses of their own.
std::vector<double> losses_like(const LossWatch& watch, Step step, uint32_t turns) {
  std::vector<double> losses;
  for (const auto& [before, loss] : watch.recent)
    if (before % turns == step % turns) losses.push_back(loss);
  return losses;
}

double median_of(std::vector<double> losses) {
  const auto middle = losses.begin() + static_cast<long>(losses.size() / 2);
  std::nth_element(losses.begin(), middle, losses.end());
  return *middle;
}

// "step 13, of the samples at positions [48, 52) of epoch 1: its loss is not a finite number (nan)"
std::string describe(const Turn& turn, const BadLoss& bad) {
  const Step step = bad.step.step;
  return "step " + std::to_string(step + 1) + ", of the samples at " +
         positions_of(turn, step, {0, turn.options.shape.slots}) + ": " + bad.what;
}

// The first of the whole steps left out right before `step`; `step` itself if there is none.
Step first_left_out_before(const Turn& turn, Step step) {
  const State& state = turn.state;
  const auto is_left_out = [&](Step s) {
    return samples_in(state.skips, state.last_generation + 1, s, turn.options.shape) == 0;
  };
  while (step > 0 && is_left_out(step - 1)) --step;
  return step;
}

void cut_before(Turn& turn, Step limit, const std::string& why) {
  State& state = turn.state;
  const CheckpointEntry* newest = newest_until(state, limit);
  const Step step = newest == nullptr ? 0 : newest->step;
  const std::string name = newest == nullptr ? "" : newest->name;
  const bool after_edge = is_after_edge(name);
  if (state.script_end && state.script_end->step > step) forget_script_end(turn, why);
  cut_lineage(turn,
              {step, phase_after(step, state.evals, turn.options, state.script_end, after_edge)},
              name, why);
}

Reason stop(Turn& turn, const BadLoss& bad, Step limit, const std::string& why) {
  const std::string what = describe(turn, bad);
  turn.note(LogLine::Level::kError, "bad_loss", what);
  cut_before(turn, limit, what);
  const std::string dir = shell_word(turn.options.run_dir);
  end_run(turn, 65,
          what + "; " + why + ". To see what these samples do: lockstep replay " + dir +
              " --step " + std::to_string(bad.step.step + 1) +
              ". Lockstep gives up every checkpoint after that step; " + what_remains(turn));
  return Reason::kEndedBadLoss;
}

// Leaves out the whole batch: this turn began with what the earlier turns made of its samples.
Reason skip(Turn& turn, const BadLoss& bad) {
  State& state = turn.state;
  const Step step = first_turn(turn.options.shape, bad.step.step);
  const std::string what = describe(turn, bad);
  // No generation so far leaves it out, not even a planned one that its members may have begun.
  skip_slots(turn, {state.last_generation, step, {0, turn.options.shape.slots}, bad.what});
  forget_checkpoints_after(state, step);
  if (state.script_end && state.script_end->step > step) forget_script_end(turn, what);
  turn.note(LogLine::Level::kWarn, "samples_skipped",
            what + "; the run leaves it out (train.on_bad_samples: skip), time " +
                std::to_string(state.skips.size()) + " of at most " +
                std::to_string(most_skips(turn)) + " in this run");
  return end_term(turn, "the run goes back to the newest checkpoint at or before step " +
                            std::to_string(step) + ", to go on without the samples of step " +
                            std::to_string(step + 1));
}

}  // namespace

std::optional<std::string> wrong_with_loss(const LossWatch& watch, const wire::TrainSpec& train,
                                           const StepEntry& step, uint32_t turns) {
  // If the loss scaler has left a step out, nothing of it was applied.
  if (step.samples == 0 || step.skipped) return std::nullopt;
  if (!std::isfinite(step.loss))
    return "its loss is not a finite number (" + loss_text(step.loss) + ")";
  if (train.loss_spike() <= 0) return std::nullopt;
  std::vector<double> before = losses_like(watch, step.step, turns);
  if (before.size() < kLossWindow) return std::nullopt;
  const double median = median_of(std::move(before));
  if (step.loss <= train.loss_spike() * median) return std::nullopt;
  return "its loss of " + loss_text(step.loss) + " is more than " + loss_text(train.loss_spike()) +
         " times " + loss_text(median) + ", the median of the " + std::to_string(kLossWindow) +
         " steps before (train.loss_spike)";
}

void remember_loss(LossWatch& watch, const StepEntry& step, uint32_t turns) {
  // Steps that are done again after a rollback.
  while (!watch.recent.empty() && watch.recent.back().first >= step.step) watch.recent.pop_back();
  if (step.samples == 0 || !std::isfinite(step.loss)) return;
  watch.recent.emplace_back(step.step, step.loss);
  if (watch.recent.size() > kLossWindow * turns) watch.recent.pop_front();
}

std::optional<Reason> judge_bad_loss(Turn& turn) {
  State& state = turn.state;
  // If the run or the term ended in this turn, the term that takes the step up judges it again.
  if (!state.losses.bad || !is_open(state.run)) return std::nullopt;
  const BadLoss bad = *std::exchange(state.losses.bad, std::nullopt);
  const Step step = first_turn(turn.options.shape, bad.step.step);
  const Step first = first_left_out_before(turn, step);
  if (!std::isfinite(bad.step.loss) && first < step) {
    return stop(turn, bad, first == 0 ? 0 : first - 1,
                "leaving out the step before did not help, so the samples are not the cause: the "
                "weights were damaged earlier, perhaps by too large a learning rate");
  }
  if (may_skip(turn)) return skip(turn, bad);
  return stop(turn, bad, step, what_to_do_about_samples(turn));
}

}  // namespace lockstep::coordinator
