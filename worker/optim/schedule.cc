#include "worker/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "comm/base/nearest.h"

namespace lockstep {
namespace {

constexpr std::string_view kNames[] = {"constant", "cosine", "step", "onecycle"};

// From `from` at share 0 to `to` at share 1, along half a cosine.
double anneal(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

Status bad(const std::string& key, const std::string& rule, double value) {
  return Status(Code::kUsage,
                "schedule." + key + " must be " + rule + ", not " + std::to_string(value));
}

Status check_one_cycle(const wire::ScheduleSpec& spec) {
  if (!(spec.pct_start() > 0 && spec.pct_start() < 1))
    return bad("pct_start", "between 0 and 1", spec.pct_start());
  if (!(spec.div_factor() > 0)) return bad("div_factor", "above 0", spec.div_factor());
  if (!(spec.final_div_factor() > 0))
    return bad("final_div_factor", "above 0", spec.final_div_factor());
  if (!(spec.max_lr() >= 0)) return bad("max_lr", "0 or more", spec.max_lr());
  return Status::ok();
}

}  // namespace

Result<Schedule> Schedule::create(const wire::ScheduleSpec& spec, double optimizer_lr) {
  const std::string& name = spec.name();
  if (name.empty() || name == "constant") return Schedule(Kind::kConstant, spec, optimizer_lr);
  if (name == "cosine") return Schedule(Kind::kCosine, spec, optimizer_lr);
  if (name == "step") {
    if (spec.step_every() == 0) return bad("step_every", "at least 1", 0);
    return Schedule(Kind::kStep, spec, optimizer_lr);
  }
  if (name == "onecycle") {
    LOCKSTEP_RETURN_IF_ERROR(check_one_cycle(spec));
    return Schedule(Kind::kOneCycle, spec, optimizer_lr);
  }
  return Status(Code::kUsage, "schedule.name is '" + name + "', which is not known; it can be " +
                                  join_names(kNames) + did_you_mean(name, kNames));
}

double Schedule::lr(Step step, uint64_t total_steps) const {
  const auto t = static_cast<double>(step);
  const uint64_t length = spec_.total_steps() > 0 ? spec_.total_steps() : total_steps;
  switch (kind_) {
    case Kind::kConstant:
      return base_lr_;
    case Kind::kCosine:
      return cosine(t, static_cast<double>(length));
    case Kind::kStep:
      return base_lr_ * std::pow(spec_.gamma(), static_cast<double>(step / spec_.step_every()));
    case Kind::kOneCycle:
      return one_cycle(t, static_cast<double>(length));
  }
  return base_lr_;
}

double Schedule::cosine(double t, double total) const {
  const auto warmup = static_cast<double>(spec_.warmup_steps());
  if (t < warmup) return base_lr_ * (t + 1) / warmup;
  const double falling = std::max(total - warmup, 1.0);
  return anneal(base_lr_, spec_.min_lr(), std::min((t - warmup) / falling, 1.0));
}

double Schedule::one_cycle(double t, double total) const {
  const double peak = spec_.max_lr() > 0 ? spec_.max_lr() : base_lr_;
  const double first = peak / spec_.div_factor();
  const double last = first / spec_.final_div_factor();
  const double end = std::max(total - 1, 1.0);
  const double top = spec_.pct_start() * total - 1;  // may be negative in a very short run
  if (t <= top) return anneal(first, peak, t / top);
  return anneal(peak, last, std::min((t - top) / (end - top), 1.0));
}

}  // namespace lockstep
