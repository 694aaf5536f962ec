// Fp8 on a GPU that has it: the casts have the CPU's bits, products are near the CPU's, and
// training has the same bits for any number of workers and as a graph.
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>
#include <vector>

#include "tests/gpu/gpu_world.h"
#include "worker/cuda/kernels/fp8_host.h"
#include "worker/torch/model/fp8_linear.h"

namespace lockstep {
namespace {

using testing::Devices;
using testing::even_runs;
using testing::LoopbackWorld;
using testing::TrainResult;

class Fp8 : public testing::OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    module_ = std::move(Devices(1).own[0]);
    if (const Status status = module_->check_fp8(); !status.is_ok())
      GTEST_SKIP() << "not applicable: " << status.message();
    where_ = at::Device(module_->torch_device());
    at::manual_seed(5);
  }

  std::unique_ptr<DeviceModule> module_;
  at::Device where_{at::kCPU};
};

struct Cast {
  Cast(const at::Tensor& x, bool is_gradient)
      : largest(at::empty({1}, x.options().dtype(at::kInt))),
        inverse_scale(at::empty({1}, x.options().dtype(at::kFloat))),
        plain(at::empty({(x.size(0) + 15) / 16 * 16, x.size(1)}, x.options().dtype(at::kByte))),
        transposed(at::empty_like(plain)),
        work{.x = static_cast<const cuda::Bf16*>(x.const_data_ptr()),
             .rows = static_cast<uint32_t>(x.size(0)),
             .columns = static_cast<uint32_t>(x.size(1)),
             .padded_rows = static_cast<uint32_t>(plain.size(0)),
             .is_gradient = is_gradient,
             .largest = static_cast<uint32_t*>(largest.mutable_data_ptr()),
             .inverse_scale = inverse_scale.mutable_data_ptr<float>(),
             .plain = plain.mutable_data_ptr<uint8_t>(),
             .transposed = transposed.mutable_data_ptr<uint8_t>()} {}
  at::Tensor largest, inverse_scale, plain, transposed;
  cuda::Fp8Cast work;
};

TEST_F(Fp8, CastsToTheCpusBits) {
  for (const auto& [rows, columns] :
       {std::pair(1, 16), std::pair(1000, 768), std::pair(4099, 80)}) {
    for (const bool is_gradient : {false, true}) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << columns);
      const at::Tensor x = at::randn({rows, columns}).mul(1e-3).to(at::kBFloat16);
      Cast expected(x, is_gradient);
      cuda::fp8_cast_on_host(expected.work);
      const at::Tensor on_device = x.to(where_);
      Cast got(on_device, is_gradient);
      const Status status = module_->layers().fp8->cast(got.work);
      ASSERT_TRUE(status.is_ok()) << status.message();
      EXPECT_TRUE(at::equal(got.inverse_scale.to(at::kCPU), expected.inverse_scale));
      EXPECT_TRUE(at::equal(got.plain.to(at::kCPU), expected.plain));
      EXPECT_TRUE(at::equal(got.transposed.to(at::kCPU), expected.transposed));
    }
  }
}

TEST_F(Fp8, MultipliesNearTheCpu) {
  const at::Tensor x = at::randn({1000, 768}), weight = at::randn({3072, 768}).mul(0.02);
  const at::Tensor dy = at::randn({1000, 3072}).mul(1e-4).to(at::kBFloat16);
  const auto run = [&](at::Device where, Fp8Kernels* kernels) {
    const at::Tensor from = x.to(where).clone().set_requires_grad(true);
    const at::Tensor w = weight.to(where).clone().set_requires_grad(true);
    const at::Tensor y = fp8_linear(from, w, kernels);
    torch::autograd::backward({y}, {dy.to(where)});
    return std::vector<at::Tensor>{y.detach(), from.grad(), w.grad()};
  };
  const auto expected = run(at::kCPU, nullptr);
  const auto got = run(where_, module_->layers().fp8);
  for (size_t i = 0; i < got.size(); ++i) {
    const at::Tensor a = got[i].to(at::kCPU).to(at::kFloat), b = expected[i].to(at::kFloat);
    const double most = static_cast<double>(b.abs().max().item<float>());
    EXPECT_TRUE(at::allclose(a, b, 0.02, 0.005 * most)) << i;
  }
  const auto again = run(where_, module_->layers().fp8);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(again[i], got[i])) << i;
}

TEST_F(Fp8, TrainsToTheSameBitsWithAnyNumberOfWorkersAndAsAGraph) {
  const auto dataset = testing::data_of("gpt2");
  wire::JobSpec job = testing::job_of("gpt2");
  job.mutable_train()->set_precision("fp8");
  const auto train = [&](const char* graph, uint32_t ranks) {
    job.mutable_train()->set_graph(graph);
    const Devices devices(ranks);
    LoopbackWorld world(job, *dataset, even_runs(4, ranks), testing::kBucketBytes, nullptr,
                        devices.modules);
    world.begin_generation(16);
    return world.train_to(16);
  };
  const TrainResult one = train("off", 1);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const auto& [graph, ranks] :
       {std::pair("off", 2u), std::pair("off", 4u), std::pair("on", 1u), std::pair("on", 2u)}) {
    SCOPED_TRACE(::testing::Message() << ranks << " workers, graph " << graph);
    const TrainResult other = train(graph, ranks);
    EXPECT_EQ(other.losses, one.losses);
    EXPECT_TRUE(other.state == one.state);
  }
}

}  // namespace
}  // namespace lockstep
