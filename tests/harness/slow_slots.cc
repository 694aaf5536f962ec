// Preloaded into the processes of a run: every slot of a training step takes LOCKSTEP_TEST_SLOT_MS
// longer, asleep. A test that disturbs a run needs the run to last while processes start and leases
// pass. A run that sleeps lasts as long on any machine, and leaves the processors to other tests.
//
// A worker calls torch::autograd::backward() once a slot. This library has a function of that name,
// which LibTorch's own follows. Evaluation is not slowed.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace at {
class Tensor;
}

namespace torch::autograd {

using TensorList = std::vector<at::Tensor>;

__attribute__((visibility("default"))) void backward(const TensorList& tensors,
                                                     const TensorList& gradients,
                                                     std::optional<bool> retain_graph,
                                                     bool create_graph, const TensorList& inputs);

}  // namespace torch::autograd

namespace {

using Backward = decltype(&torch::autograd::backward);

constexpr const char* kBackward =
    "_ZN5torch8autograd8backwardERKSt6vectorIN2at6TensorESaIS3_EES7_St8optionalIbEbS7_";

std::chrono::milliseconds slot_time() {
  const char* milliseconds = std::getenv("LOCKSTEP_TEST_SLOT_MS");
  return std::chrono::milliseconds(milliseconds == nullptr ? 0 : std::atoi(milliseconds));
}

// Aborts if LibTorch has no such function: runs would be too short for their tests, which would
// fail without a visible reason.
__attribute__((constructor)) void check() {
  char program[4096] = "";
  const ssize_t length = ::readlink("/proc/self/exe", program, sizeof(program) - 1);
  if (length < 0 || !std::string_view(program, static_cast<size_t>(length)).ends_with("-worker"))
    return;
  if (::dlsym(RTLD_NEXT, kBackward) != nullptr) return;
  std::fputs("slow_slots.cc: this LibTorch has no torch::autograd::backward() as declared there\n",
             stderr);
  std::abort();
}

}  // namespace

void torch::autograd::backward(const TensorList& tensors, const TensorList& gradients,
                               std::optional<bool> retain_graph, bool create_graph,
                               const TensorList& inputs) {
  static const auto real = reinterpret_cast<Backward>(::dlsym(RTLD_NEXT, kBackward));
  static const std::chrono::milliseconds slowed_by = slot_time();
  std::this_thread::sleep_for(slowed_by);
  real(tensors, gradients, retain_graph, create_graph, inputs);
}
