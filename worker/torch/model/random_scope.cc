#include "worker/torch/model/random_scope.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>

#include "comm/base/prng.h"

namespace lockstep {
namespace {

// As long-lived as the generator that it guards, which is LibTorch's own and cannot be handed in.
// The generator's mutex will not do: operators take it themselves.
std::mutex& generator_lock() {
  static std::mutex lock;
  return lock;
}

void seed(at::Generator generator, uint64_t key) {
  const std::lock_guard<std::mutex> guard(generator.mutex());
  generator.set_current_seed(fold32(key));
}

}  // namespace

RandomScope::RandomScope(uint64_t key, at::Device where) : lock_(generator_lock()) {
  seed(at::detail::getDefaultCPUGenerator(), key);
  if (at::accelerator::isAccelerator(where.type()))
    seed(at::globalContext().defaultGenerator(where), key);
}

}  // namespace lockstep
