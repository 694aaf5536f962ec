// What decides the bits of this worker, as text (DESIGN, Fingerprint).
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "worker/engine/engine_impl.h"

namespace lockstep {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// First line of a text such as at::get_mkl_version()'s.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::vector<std::string> EngineImpl::fingerprint() const {
  std::vector<std::string> lines = {"device=cpu",
                                    "aten_isa=" + at::get_cpu_capability(),
                                    "mkl=" + one_line(at::get_mkl_version()),
                                    "onednn=" + one_line(at::get_mkldnn_version()),
                                    "mkl_cbwr=" + environment("MKL_CBWR"),
                                    "mkl_isa=" + environment("MKL_ENABLE_INSTRUCTIONS"),
                                    "onednn_isa=" + environment("ONEDNN_MAX_CPU_ISA"),
                                    "torch=" TORCH_VERSION,
                                    "threads=" + std::to_string(at::get_num_threads()),
                                    "memory_format=contiguous",
                                    "precision=fp32"};
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace lockstep
