#include "deploy/cli/watch/live_line.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "deploy/cli/base/text.h"

namespace lockstep {
namespace {

// A part of the line; parts with the highest `dispensable` go first when it gets tight.
struct Part {
  std::string text;
  int dispensable = 0;
};

std::string epoch_text(const RunStatus& status) {
  if (status.epochs == 0) return "epoch " + std::to_string(status.epoch + 1);
  return "epoch " + std::to_string(std::min(status.epoch + 1, status.epochs)) + "/" +
         std::to_string(status.epochs);
}

std::string step_text(const RunStatus& status) {
  if (status.total_steps == 0) return "step " + grouped(status.step);
  return "step " + grouped(status.step) + "/" + grouped(status.total_steps);
}

std::string bar(const RunStatus& status, const LineStyle& style) {
  constexpr size_t kCells = 12;
  if (status.total_steps == 0) return "";
  const double share =
      std::min(1.0, static_cast<double>(status.step) / static_cast<double>(status.total_steps));
  const auto full = static_cast<size_t>(std::floor(share * kCells));
  std::string out;
  for (size_t i = 0; i < kCells; ++i)
    out += i < full ? (style.unicode ? "━" : "=") : (style.unicode ? "┄" : ".");
  return out;
}

std::string left_text(const RunStatus& status) {
  const double left = seconds_left(status);
  return left < 0 ? "" : duration_text(left) + " left";
}

// The word for a run that is not (yet) training, "" when it is.
std::string waiting_text(const RunStatus& status) {
  if (status.state == "gathering")
    return "waiting for workers: " + std::to_string(status.members) + " of " +
           std::to_string(status.workers);
  if (status.state == "prepared") return status.step == 0 ? "preparing" : "recovering";
  if (status.state == "restarting") return "going on from a checkpoint";
  return "";
}

std::vector<Part> parts_of(const RunStatus& status, const LineStyle& style) {
  std::vector<Part> parts;
  const auto add = [&](const std::string& text, int dispensable) {
    if (!text.empty()) parts.push_back({text, dispensable});
  };
  if (const std::string waiting = waiting_text(status); !waiting.empty()) {
    add(waiting, 0);
    return parts;
  }
  if (status.state == "stopping") add("stopping", 0);
  add(epoch_text(status), 1);
  add(bar(status, style), 8);
  add(step_text(status), 0);
  // The newest, and what the last ten seconds were like.
  if (status.last_loss || status.loss)
    add("loss " + fixed(status.last_loss.value_or(status.loss.value_or(0)), 4), 2);
  if (status.last_loss && status.loss) add("mean " + fixed(*status.loss, 4), 6);
  if (status.of_tokens && status.loss)
    add("ppl " + perplexity_text(*status.loss), 4);
  else if (status.accuracy)
    add("acc " + percent(*status.accuracy, 1), 4);
  if (status.samples_per_second) add(rate_text(*status.samples_per_second) + " samples/s", 5);
  add(plural(status.members, "worker"), 6);
  add("gen " + std::to_string(status.generation), 7);
  add(left_text(status), 3);
  return parts;
}

std::string joined(const std::vector<Part>& parts, const std::string& separator) {
  std::string out;
  for (const Part& part : parts) out += (out.empty() ? "" : separator) + part.text;
  return out;
}

std::string result_text(const EvalResult& eval) {
  const std::string loss = fixed(eval.loss, 4);
  if (eval.of_tokens) return "test loss " + loss + ", perplexity " + perplexity_text(eval.loss);
  if (!eval.accuracy) return "test loss " + loss;
  return "test accuracy " + percent(*eval.accuracy, 2) +
         (eval.top5 ? ", top 5 " + percent(*eval.top5, 2) : "") + ", loss " + loss;
}

}  // namespace

double seconds_left(const RunStatus& status) {
  const double speed = status.samples_per_second.value_or(0);
  if (speed <= 0 || status.global_batch == 0 || status.total_steps <= status.step) return -1;
  const auto steps = static_cast<double>(status.total_steps - status.step);
  return steps * static_cast<double>(status.global_batch) / speed;
}

std::string live_line(const RunStatus& status, const LineStyle& style) {
  std::vector<Part> parts = parts_of(status, style);
  const auto by_need = [](const Part& a, const Part& b) { return a.dispensable < b.dispensable; };
  std::string line = joined(parts, "  ");
  while (columns(line) >= style.width && parts.size() > 1) {
    parts.erase(std::max_element(parts.begin(), parts.end(), by_need));
    line = joined(parts, "  ");
  }
  // The rest is ASCII: the bar, which is not, went first.
  if (columns(line) >= style.width) line.resize(style.width > 0 ? style.width - 1 : 0);
  return line;
}

std::string plain_line(const RunStatus& status) {
  std::vector<Part> parts = parts_of(status, {1000, false});
  std::erase_if(parts, [](const Part& part) { return part.dispensable == 8; });  // the bar
  return joined(parts, ", ");
}

std::string eval_line(const EvalResult& eval, uint64_t epochs, uint64_t steps_per_epoch) {
  const std::string of = epochs == 0 ? "" : "/" + std::to_string(epochs);
  const bool is_within = steps_per_epoch > 0 && eval.step % steps_per_epoch != 0;
  return "epoch " + std::to_string(eval.epoch + 1) + of +
         (is_within ? ", step " + grouped(eval.step) : "") + ": " + result_text(eval);
}

std::string batch_line(const RunStatus& status) {
  constexpr uint64_t kFewSteps = 20;  // an epoch; more are kept where slots allow it
  const uint64_t slots = std::max<uint64_t>(status.slots, 1);
  std::string line = "global batch " + grouped(status.global_batch) +
                     " (auto): " + plural(slots, "slot") + " of " +
                     grouped(status.global_batch / slots) + ", " +
                     plural(status.steps_per_epoch, "step") + " an epoch";
  if (status.steps_per_epoch < kFewSteps)
    line += ". The data are few and a slot cannot be smaller; more steps need fewer train.slots";
  return line;
}

std::string figures_line(const RunStatus& status) {
  std::vector<Part> parts;
  if (status.samples_per_second_60s)
    parts.push_back({"samples/s in 60 s " + rate_text(*status.samples_per_second_60s)});
  if (status.lr) parts.push_back({"lr " + learning_rate_text(*status.lr)});
  if (status.eval)
    parts.push_back({result_text(*status.eval) + " (step " + grouped(status.eval->step) + ")"});
  return joined(parts, ", ");
}

}  // namespace lockstep
