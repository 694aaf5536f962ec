#include "worker/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "comm/base/text/nearest.h"

namespace lockstep {
namespace {

constexpr std::string_view kScheduleNames[] = {"constant",    "linear", "cosine",  "step",
                                               "exponential", "cyclic", "onecycle"};

// From `from` at share 0 to `to` at share 1, along half a cosine.
double anneal(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

Status bad_schedule(const std::string& key, const std::string& rule, double value) {
  return Status(Code::kUsage,
                "schedule." + key + " must be " + rule + ", not " + std::to_string(value));
}

Status check_cyclic(const wire::ScheduleSpec& spec, double optimizer_lr) {
  if (spec.cycle_up() == 0) return bad_schedule("cycle_up", "at least 1", 0);
  if (!(spec.gamma() > 0)) return bad_schedule("gamma", "above 0", spec.gamma());
  const double peak = spec.max_lr() > 0 ? spec.max_lr() : optimizer_lr;
  if (!(spec.min_lr() >= 0 && spec.min_lr() <= peak))
    return bad_schedule("min_lr", "between 0 and the peak, " + std::to_string(peak), spec.min_lr());
  return Status::ok();
}

Status check_one_cycle(const wire::ScheduleSpec& spec) {
  if (!(spec.pct_start() > 0 && spec.pct_start() < 1))
    return bad_schedule("pct_start", "between 0 and 1", spec.pct_start());
  if (!(spec.div_factor() > 0)) return bad_schedule("div_factor", "above 0", spec.div_factor());
  if (!(spec.final_div_factor() > 0))
    return bad_schedule("final_div_factor", "above 0", spec.final_div_factor());
  if (!(spec.max_lr() >= 0)) return bad_schedule("max_lr", "0 or more", spec.max_lr());
  return Status::ok();
}

}  // namespace

Result<Schedule> Schedule::create(const wire::ScheduleSpec& spec, double optimizer_lr) {
  const std::string& name = spec.name();
  const auto make = [&](Kind kind) { return Schedule(kind, spec, optimizer_lr); };
  if (name.empty() || name == "constant") return make(Kind::kConstant);
  if (name == "linear") return make(Kind::kLinear);
  if (name == "cosine") return make(Kind::kCosine);
  if (name == "step") {
    if (spec.step_every() == 0) return bad_schedule("step_every", "at least 1", 0);
    return make(Kind::kStep);
  }
  if (name == "exponential") return make(Kind::kExponential);
  if (name == "cyclic") {
    LOCKSTEP_RETURN_IF_ERROR(check_cyclic(spec, optimizer_lr));
    return make(Kind::kCyclic);
  }
  if (name == "onecycle") {
    LOCKSTEP_RETURN_IF_ERROR(check_one_cycle(spec));
    return make(Kind::kOneCycle);
  }
  return Status(Code::kUsage, "schedule.name is '" + name + "', which is not known; it can be " +
                                  join_names(kScheduleNames) + did_you_mean(name, kScheduleNames));
}

double Schedule::lr(Step step, uint64_t total_steps) const {
  const uint64_t length = spec_.total_steps() > 0 ? spec_.total_steps() : total_steps;
  if (kind_ == Kind::kOneCycle) {
    return one_cycle(static_cast<double>(step), static_cast<double>(length));
  }
  const uint64_t warmup = spec_.warmup_steps();
  const double falling = length > warmup ? static_cast<double>(length - warmup) : 1.0;
  if (step >= warmup) return after_warmup(step - warmup, falling);
  return after_warmup(0, falling) * static_cast<double>(step + 1) / static_cast<double>(warmup);
}

double Schedule::after_warmup(uint64_t t, double falling) const {
  const double share = std::min(static_cast<double>(t) / falling, 1.0);
  switch (kind_) {
    case Kind::kConstant:
    case Kind::kOneCycle:
      return base_lr_;
    case Kind::kLinear:
      return base_lr_ + (spec_.min_lr() - base_lr_) * share;
    case Kind::kCosine:
      return anneal(base_lr_, spec_.min_lr(), share);
    case Kind::kStep:
      // NOLINTNEXTLINE(bugprone-integer-division): a stair
      return base_lr_ * std::pow(spec_.gamma(), static_cast<double>(t / spec_.step_every()));
    case Kind::kExponential:
      return base_lr_ * std::pow(spec_.gamma(), static_cast<double>(t));
    case Kind::kCyclic:
      return cyclic(t);
  }
  return base_lr_;
}

double Schedule::cyclic(uint64_t t) const {
  const uint64_t up = spec_.cycle_up();
  const uint64_t down = spec_.cycle_down() > 0 ? spec_.cycle_down() : up;
  const uint64_t cycle = t / (up + down);
  const uint64_t at = t % (up + down);
  const double share = at <= up ? static_cast<double>(at) / static_cast<double>(up)
                                : static_cast<double>(up + down - at) / static_cast<double>(down);
  const double peak = spec_.max_lr() > 0 ? spec_.max_lr() : base_lr_;
  const double height =
      (peak - spec_.min_lr()) * std::pow(spec_.gamma(), static_cast<double>(cycle));
  return spec_.min_lr() + height * share;
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
