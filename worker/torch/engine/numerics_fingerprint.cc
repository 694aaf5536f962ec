// Describes, as text, everything that decides the bits of this worker. `results` shows that bits
// differ, whatever the cause (numerics_effect.h); the other lines tell people what differs. Lines
// are sorted, so that known causes mostly come before `results`.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/cpu/Utils.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "comm/run/checkpoint/numerics.h"
#include "worker/cuda/kernels/fp8.h"
#include "worker/torch/engine/engine_impl.h"
#include "worker/torch/engine/precision.h"

namespace lockstep {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Two names of one setting; oneDNN takes the first that is set.
std::string onednn_isa() {
  const std::string name = environment("ONEDNN_MAX_CPU_ISA");
  return name.empty() ? environment("DNNL_MAX_CPU_ISA") : name;
}

// First line of a text such as at::get_mkl_version()'s.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// oneDNN chooses by these how it multiplies bf16 and fp16.
std::string short_type_instructions() {
  const auto found = at::cpu::get_cpu_capabilities();
  std::string names;
  for (const char* name :
       {"avx_ne_convert", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_fp16"}) {
    const auto it = found.find(name);
    if (it == found.end() || !it->second.isBool() || !it->second.toBool()) continue;
    names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names.empty() ? "none" : names;
}

}  // namespace

std::vector<std::string> EngineImpl::fingerprint() const {
  const std::string& precision = job_.train().precision();
  std::vector<std::string> lines = {"aten_isa=" + at::get_cpu_capability(),
                                    "mkl=" + one_line(at::get_mkl_version()),
                                    "onednn=" + one_line(at::get_mkldnn_version()),
                                    "mkl_cbwr=" + environment("MKL_CBWR"),
                                    "mkl_isa=" + environment("MKL_ENABLE_INSTRUCTIONS"),
                                    "onednn_isa=" + onednn_isa(),
                                    std::string("torch=") + TORCH_VERSION,
                                    "threads=" + std::to_string(at::get_num_threads()),
                                    "memory_format=contiguous",
                                    "precision=" + (precision.empty() ? "fp32" : precision)};
  if (compute_type_ != at::kFloat) lines.push_back("short_types=" + short_type_instructions());
  if (uses_fp8(job_.train())) lines.push_back(std::string("fp8=") + cuda::kFp8Recipe);
  if (!results_.empty()) lines.push_back("results=" + results_);
  for (std::string& line : device_->fingerprint()) lines.push_back(std::move(line));
  if (state_->plan().spares_decay) lines.push_back(kDecayWithGradient);
  if (const std::string& file = job_.model().sha256(); !file.empty())
    lines.push_back("model_file=" + file);
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace lockstep
