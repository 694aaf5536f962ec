// A plug-in, one linear layer, that hangs once: in the forward of number LOCKSTEP_TEST_HANG_AFTER
// of the first process that can make the file LOCKSTEP_TEST_HANG_ONCE, where it leaves its pid. On
// a GPU a kernel without an end hangs there, and the process waits for it as for any other one.
#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <fcntl.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "worker/model/plugin.h"

// Starts a kernel that spins on the current stream; part of LibTorch's CUDA library. Weak, because
// a plug-in links nothing, and the worker loads that library only on a machine with a GPU.
namespace at::cuda {
__attribute__((weak)) void sleep(int64_t cycles);
}

namespace {

const at::Tensor& tensor(const void* pointer) {
  return *static_cast<const at::Tensor*>(pointer);
}

bool is_first(const char* path) {
  const int file = ::open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return false;
  ::dprintf(file, "%d\n", ::getpid());
  ::close(file);
  return true;
}

void hang(const at::Tensor& input) {
  if (!input.is_cuda()) {
    while (true) ::pause();
  }
  at::cuda::sleep(std::numeric_limits<int64_t>::max());
}

void hang_in_turn(const at::Tensor& input) {
  static int forwards = 0;  // of the training thread alone
  const char* once = std::getenv("LOCKSTEP_TEST_HANG_ONCE");
  const char* after = std::getenv("LOCKSTEP_TEST_HANG_AFTER");
  if (once == nullptr || after == nullptr || ++forwards != std::atoi(after)) return;
  if (is_first(once)) hang(input);
}

}  // namespace

void lockstep_model_describe(LockstepModelDescription* model) {
  if (!lockstep_handshake(model, TORCH_VERSION)) return;
  const int64_t pixels = int64_t{model->channels} * model->height * model->width;
  const int64_t shape[] = {model->classes, pixels};
  const double bound = 1 / std::sqrt(static_cast<double>(pixels));
  (void)model->add_parameter(model, "weight", shape, 2, LOCKSTEP_INIT_UNIFORM, bound);
  (void)model->add_parameter(model, "bias", shape, 1, LOCKSTEP_INIT_UNIFORM, bound);
}

void lockstep_model_forward(LockstepModelForward* call) {
  const at::Tensor& input = tensor(call->input);
  if (call->training != 0) hang_in_turn(input);
  *static_cast<at::Tensor*>(call->output) =
      at::linear(input.flatten(1), tensor(call->parameters[0]), tensor(call->parameters[1]));
}
