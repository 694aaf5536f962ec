#include "worker/optim/optimizer.h"

#include <cmath>
#include <cstring>
#include <new>
#include <string_view>

#include "comm/base/nearest.h"
#include "worker/optim/kernels.h"

namespace lockstep {
namespace {

constexpr std::string_view kNames[] = {"sgd", "adamw"};
constexpr std::align_val_t kAlignment{64};  // bytes: a cache line, a vector register

struct FreeAligned {
  void operator()(float* p) const { ::operator delete[](p, kAlignment); }
};
using FlatFloats = std::unique_ptr<float[], FreeAligned>;

FlatFloats make_zeros(uint64_t elements) {
  auto* p = static_cast<float*>(::operator new[](elements * sizeof(float), kAlignment));
  std::memset(p, 0, elements * sizeof(float));
  return FlatFloats(p);
}

class Sgd final : public Optimizer {
 public:
  Sgd(const wire::OptimizerSpec& spec, uint64_t elements) : spec_(spec) {
    if (spec.momentum() > 0) momentum_ = make_zeros(elements);
  }

  std::vector<OptimizerState> state() override {
    if (!momentum_) return {};
    return {{"momentum_buffer", momentum_.get()}};
  }

  void update(Step, double lr, std::span<const OptimizerSegment> segments,
              std::span<const OptimizerGroup> groups, float* params, const float* grads) override {
    for (const OptimizerSegment& s : segments) {
      const OptimizerGroup& group = groups[s.group];
      const SgdFactors factors{
          .lr = static_cast<float>(lr * group.lr_scale),
          .momentum = static_cast<float>(spec_.momentum()),
          .weight_decay = static_cast<float>(spec_.weight_decay() * group.weight_decay_scale)};
      sgd_update(params + s.start, momentum_ ? momentum_.get() + s.start : nullptr, grads + s.start,
                 s.length, factors);
    }
  }

 private:
  wire::OptimizerSpec spec_;
  FlatFloats momentum_;
};

class AdamW final : public Optimizer {
 public:
  AdamW(const wire::OptimizerSpec& spec, uint64_t elements)
      : spec_(spec), exp_avg_(make_zeros(elements)), exp_avg_sq_(make_zeros(elements)) {}

  std::vector<OptimizerState> state() override {
    return {{"exp_avg", exp_avg_.get()}, {"exp_avg_sq", exp_avg_sq_.get()}};
  }

  void update(Step step, double lr, std::span<const OptimizerSegment> segments,
              std::span<const OptimizerGroup> groups, float* params, const float* grads) override {
    for (const OptimizerSegment& s : segments) {
      adamw_update(params + s.start, exp_avg_.get() + s.start, exp_avg_sq_.get() + s.start,
                   grads + s.start, s.length, factors(step, lr, groups[s.group]));
    }
  }

 private:
  // In double, rounded once: beta^t in single precision is off by 1e-4 after a few thousand steps.
  AdamwFactors factors(Step step, double lr, const OptimizerGroup& group) const {
    const auto t = static_cast<double>(step + 1);
    const double rate = lr * group.lr_scale;
    const double decay = spec_.weight_decay() * group.weight_decay_scale;
    return {.decay = static_cast<float>(1 - rate * decay),
            .one_minus_beta1 = static_cast<float>(1 - spec_.beta1()),
            .beta2 = static_cast<float>(spec_.beta2()),
            .one_minus_beta2 = static_cast<float>(1 - spec_.beta2()),
            .step_size = static_cast<float>(rate / (1 - std::pow(spec_.beta1(), t))),
            .sqrt_bias_correction2 = static_cast<float>(std::sqrt(1 - std::pow(spec_.beta2(), t))),
            .eps = static_cast<float>(spec_.eps())};
  }

  wire::OptimizerSpec spec_;
  FlatFloats exp_avg_;
  FlatFloats exp_avg_sq_;
};

Status bad(const std::string& key, const std::string& rule, double value) {
  return Status(Code::kUsage,
                "optimizer." + key + " must be " + rule + ", not " + std::to_string(value));
}

Status check(const wire::OptimizerSpec& spec) {
  if (!(spec.lr() >= 0)) return bad("lr", "0 or more", spec.lr());
  if (!(spec.weight_decay() >= 0)) return bad("weight_decay", "0 or more", spec.weight_decay());
  if (spec.name() == "sgd" && !(spec.momentum() >= 0 && spec.momentum() < 1))
    return bad("momentum", "at least 0 and below 1", spec.momentum());
  if (spec.name() != "adamw") return Status::ok();
  if (!(spec.beta1() >= 0 && spec.beta1() < 1))
    return bad("beta1", "at least 0 and below 1", spec.beta1());
  if (!(spec.beta2() >= 0 && spec.beta2() < 1))
    return bad("beta2", "at least 0 and below 1", spec.beta2());
  if (!(spec.eps() > 0)) return bad("eps", "above 0", spec.eps());
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Optimizer>> Optimizer::create(const wire::OptimizerSpec& spec,
                                                     uint64_t elements) {
  LOCKSTEP_RETURN_IF_ERROR(check(spec));
  if (spec.name() == "sgd") return std::unique_ptr<Optimizer>(new Sgd(spec, elements));
  if (spec.name() == "adamw") return std::unique_ptr<Optimizer>(new AdamW(spec, elements));
  return Status(Code::kUsage, "optimizer.name is '" + spec.name() +
                                  "', which is not known; it can be " + join_names(kNames) +
                                  did_you_mean(spec.name(), kNames));
}

}  // namespace lockstep
