// Which of LibTorch's generators a forward finds seeded. A device of the test stands in for a GPU:
// its generator is found as CUDA's is, by the hooks of its type.
#include "worker/torch/model/random_scope.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <gtest/gtest.h>

#include "comm/base/prng.h"

namespace lockstep {
namespace {

const at::Device kDevice(at::kPrivateUse1, 0);

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return generator_; }

 private:
  const at::Generator generator_ = at::detail::createCPUGenerator(/*seed_val=*/77);
};

at::Generator generator_of(at::Device device) {
  return at::globalContext().defaultGenerator(device);
}

TEST(RandomScope, SeedsTheGeneratorOfTheDeviceBesideTheCpus) {
  static Hooks hooks;  // LibTorch keeps it to its end
  at::RegisterPrivateUse1HooksInterface(&hooks);
  at::Generator of_cpu = generator_of(at::kCPU);
  of_cpu.set_current_seed(77);
  constexpr uint64_t kKey = 0x1234567890abcdef;
  { const RandomScope scope(kKey, at::kCPU); }
  EXPECT_EQ(of_cpu.current_seed(), fold32(kKey));
  EXPECT_EQ(generator_of(kDevice).current_seed(), 77u);
  { const RandomScope scope(kKey + 1, kDevice); }
  EXPECT_EQ(of_cpu.current_seed(), fold32(kKey + 1));
  EXPECT_EQ(generator_of(kDevice).current_seed(), fold32(kKey + 1));
}

TEST(RandomScope, TakesADeviceWithoutAGenerator) {
  const RandomScope scope(5, at::kMeta);
  EXPECT_EQ(generator_of(at::kCPU).current_seed(), fold32(5));
}

}  // namespace
}  // namespace lockstep
