#include "data/doctor/model_advice.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include "comm/run/job/gpu_notes.h"
#include "comm/run/job/models/resnet_spec.h"
#include "comm/run/job/predictions.h"

namespace lockstep::doctor {
namespace {

// Tensor cores read 16 bytes at a time, which are eight numbers of two bytes; from Ampere on lines
// of 128 bytes are the fastest (NVIDIA, Matrix Multiplication Background User's Guide). A size in
// between is computed by slower kernels, or as the next multiple. One row for all: a worker takes
// no GPU before Ampere (comm/base/gpu/cuda_status.cc), and numbers of other sizes than two bytes do
// not go to tensor cores here. Channels of the resnets are multiples of 64 in every layer but the
// first.
constexpr uint64_t kNeeded = 8;
constexpr uint64_t kBest = 64;
constexpr uint64_t kTile = 128;  // columns that a kernel computes at a time

uint64_t rounded(uint64_t size, uint64_t by) {
  return (size + by - 1) / by * by;
}

std::string share_more(uint64_t size, uint64_t larger) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                100 * (static_cast<double>(larger) / static_cast<double>(size) - 1));
  return text;
}

// "the last layer (model.vocab) has 50257 columns ...".
void check_size(const std::string& what, const std::string& key, uint64_t size, uint64_t best,
                std::vector<std::string>& advice) {
  if (size == 0 || size % kNeeded == 0) return;
  const uint64_t next = rounded(size, best);
  advice.push_back(what + " is " + std::to_string(size) + ", no multiple of " +
                   std::to_string(kNeeded) + ", and keeps the tensor cores from whole loads: " +
                   key + "=" + std::to_string(next) + " is " + share_more(size, next) +
                   " more arithmetic in that layer, on whole "
                   "lines of an A100 or H100 (in a new run)");
}

// Fewer heads, so that each is a multiple of 8 wide; 0 if no number of them does.
uint64_t heads_that_fit(uint64_t width, uint64_t heads) {
  for (uint64_t fewer = heads; fewer > 0; --fewer)
    if (width % fewer == 0 && width / fewer % kNeeded == 0) return fewer;
  return 0;
}

void check_heads(uint64_t width, uint64_t heads, std::vector<std::string>& advice) {
  const uint64_t head = width / heads;
  const uint64_t fit = heads_that_fit(width, heads);
  if (head % kNeeded == 0 || fit == 0) return;
  const uint64_t padded = rounded(head, kNeeded);
  advice.push_back("a head of attention (model.n_embd / model.n_head) is " + std::to_string(head) +
                   " wide, no multiple of " + std::to_string(kNeeded) +
                   ": fused attention computes " + std::to_string(padded) + ", " +
                   share_more(head, padded) + " more; model.n_head=" + std::to_string(fit) +
                   " fits (in a new run)");
}

void check_gpt(const wire::ModelSpec& model, uint64_t classes, std::vector<std::string>& advice) {
  const uint64_t heads = std::max(1u, model.n_head());
  check_size("the width of every layer (model.n_embd)", "model.n_embd", model.n_embd(),
             kNeeded * heads, advice);
  if (model.n_embd() % kNeeded == 0 && model.n_embd() % heads == 0)
    check_heads(model.n_embd(), heads, advice);
  check_size("the last layer (model.vocab)", "model.vocab",
             model.vocab() > 0 ? model.vocab() : classes, kTile, advice);
  check_size("a sequence (model.block)", "model.block", model.block(), kBest, advice);
}

// Casts to fp8 cost the same for each value, and products gain with the width (an estimate of an
// H100 from the traffic of both: 1.03 times as fast a step 768 wide, 1.10 at 1024, 1.24 at 1600).
constexpr uint32_t kFp8Width = 1536;
constexpr uint64_t kFp8Rows = 8192;  // tokens of a slot
constexpr uint32_t kFp8Capability = 89;

void check_fp8(const wire::ModelSpec& model, const Setting& setting,
               std::vector<std::string>& advice) {
  if (model.name() != "gpt2") return;
  const uint64_t rows = setting.slot_samples * model.block();
  const bool gains = model.n_embd() >= kFp8Width && rows >= kFp8Rows;
  const std::string sizes = "model.n_embd is " + std::to_string(model.n_embd()) +
                            ", and a slot has " + std::to_string(rows) + " tokens";
  if (setting.precision == "fp8" && !gains)
    advice.push_back("fp8 saves less here than its casts cost: use bf16 (" + sizes +
                     "; from about " + std::to_string(kFp8Width) + " and " +
                     std::to_string(kFp8Rows) +
                     " on it should gain): train.precision=bf16 (in a "
                     "new run)");
  if (setting.precision == "bf16" && gains && setting.gpu_capability >= kFp8Capability)
    advice.push_back(sizes +
                     ": train.precision=fp8 should be faster on this GPU, but no GPU has "
                     "measured it yet: compare both (in a new run; it rounds more)");
}

void check_stem(const wire::ModelSpec& model, const data::SampleShape& shape,
                std::vector<std::string>& advice) {
  constexpr uint32_t kLargeForCifar = 33;  // CIFAR's own images have 32
  const uint32_t side = std::max(shape.height, shape.width);
  if (!is_resnet(model) || resnet_stem(model, shape.height, shape.width) != "cifar") return;
  if (side < kLargeForCifar) return;
  advice.push_back(
      "images of " + std::to_string(shape.height) + "x" + std::to_string(shape.width) +
      " keep their size behind the stem cifar" +
      (model.stem() == "cifar" ? "" : ", which model.stem auto takes up to 64 pixels") +
      ": model.stem=imagenet quarters it, and every later layer computes a sixteenth "
      "(in a new run; it is another model, which may learn less from small images)");
}

// Numbers that the optimizer keeps for each parameter.
uint64_t moments_of(const wire::OptimizerSpec& spec) {
  const uint64_t momentum = spec.momentum() > 0 ? 1 : 0;
  if (spec.name() == "sgd") return momentum;
  if (spec.name() == "rmsprop") return 1 + momentum + (spec.centered() ? 1 : 0);
  if (spec.name() == "adagrad" || spec.name() == "muon") return 1;  // muon: of its matrices
  return 2;
}

void check_slots(const wire::JobSpec& job, const Setting& setting,
                 std::vector<std::string>& advice) {
  constexpr uint64_t kNumberBytes = 4;
  const uint32_t workers = std::max(setting.workers, 1U);
  const uint32_t slots = (setting.slots + workers - 1) / workers;
  if (slots < 2) return;
  // Merged like a binary counter (reduction_tree.h).
  const auto sums = static_cast<uint64_t>(std::bit_width(slots));
  const uint64_t moments = moments_of(job.optimizer());
  if (sums <= std::max<uint64_t>(moments, 1)) return;  // weights are one more number
  const auto bytes = [](uint64_t numbers) { return std::to_string(numbers * kNumberBytes); };
  advice.push_back("the partial sums of gradients of the " + std::to_string(slots) +
                   " slots that a worker computes are the largest part of its memory besides "
                   "activations: " +
                   bytes(sums) + " bytes a parameter, beside " + bytes(1) + " for weights and " +
                   bytes(moments) + " for the optimizer; train.slots=" + std::to_string(workers) +
                   ", a slot a worker, leaves " + bytes(1) + " (in a new run), and so do " +
                   std::to_string(setting.slots) + " workers");
}

}  // namespace

std::vector<std::string> model_advice(const wire::JobSpec& job, const data::SampleShape& shape,
                                      uint64_t classes, const Setting& setting) {
  std::vector<std::string> advice;
  check_slots(job, setting, advice);
  check_stem(job.model(), shape, advice);
  if (setting.is_on_gpu) {
    for (std::string& note : gpu_notes(job)) advice.push_back(std::move(note));
    check_fp8(job.model(), setting, advice);
  }
  if (setting.is_on_gpu && setting.precision != "fp32") {
    if (learns_from_tokens(job.model())) check_gpt(job.model(), classes, advice);
    if (!shape.is_sequence())
      check_size("a micro-batch (train.global_batch / train.slots)", "samples a slot",
                 setting.slot_samples, kNeeded, advice);
  }
  if (setting.is_encoded && setting.data_threads > setting.cores)
    advice.push_back("data.threads is " + std::to_string(setting.data_threads) +
                     ", but a worker has " + std::to_string(setting.cores) +
                     (setting.cores == 1 ? " core" : " cores") +
                     " here: threads beyond that only take turns; data.threads=" +
                     std::to_string(setting.cores) + " leaves the same rate with less memory");
  return advice;
}

std::vector<std::string> model_advice(const wire::JobSpec& job, const data::Dataset& dataset,
                                      const Setting& setting) {
  return model_advice(job, dataset.shape(), dataset.classes(), setting);
}

}  // namespace lockstep::doctor
