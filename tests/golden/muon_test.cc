// Compares steps of Muon, and of AdamW for a vector, with PyTorch's own (muon.py).
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "worker/engine/boundary_state.h"
#include "worker/torch/device/muon_update.h"

namespace lockstep {
namespace {

// A sum that another processor adds in another order may round to the next bfloat16. In a step this
// moves a weight by at most 1e-6.
constexpr double kTolerance = 1e-5;

// As numbers() in optimizers.py.
void fill_made_up(uint64_t key, uint64_t n, float scale, float* out) {
  uint64_t state = key * 2654435761ull % (1ull << 32);
  for (uint64_t i = 0; i < n; ++i) {
    state = (1664525 * state + 1013904223) % (1ull << 32);
    out[i] = (static_cast<float>(static_cast<double>(state >> 8) / (1 << 23) - 1)) * scale;
  }
}

ModelLayout layout_with(const nlohmann::json& shapes) {
  ModelLayout model;
  for (const auto& shape : shapes)
    model.parameters.push_back({.name = "p" + std::to_string(model.parameters.size()),
                                .shape = shape.get<std::vector<int64_t>>()});
  return model;
}

MuonParts every_matrix(const ModelLayout& model, const wire::OptimizerSpec& spec) {
  MuonParts parts;
  for (const ParameterSpec& parameter : model.parameters)
    parts.is_matrix.push_back(parameter.shape.size() == 2);
  parts.update = [spec](std::span<const MatrixSegment> matrices, const OptimizerStep& step,
                        std::span<const OptimizerGroup> groups, const MatrixBuffers& buffers) {
    update_matrices(spec, at::kCPU, matrices, step, groups, buffers);
  };
  return parts;
}

void expect_trajectory(const nlohmann::json& golden, const nlohmann::json& run) {
  wire::JobSpec job;
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(run["optimizer"].dump(), job.mutable_optimizer())
          .ok());
  const ModelLayout model = layout_with(golden["shapes"]);
  const FlatLayout layout = make_flat_layout(model, /*slots=*/1);
  auto made = BoundaryState::create(model, layout, job, every_matrix(model, job.optimizer()));
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  BoundaryState& state = **made;
  float* const params = state.memory().parameters;
  const size_t count = model.parameters.size();
  for (size_t i = 0; i < count; ++i)
    fill_made_up(1 + i, layout.parameters[i].elements, 1, params + layout.parameters[i].begin);
  size_t kept = 0;
  for (uint64_t step = 0; kept < golden["steps"].size(); ++step) {
    std::vector<float> sums(layout.buffer.elements);
    for (size_t i = 0; i < count; ++i)
      fill_made_up(10 + count * step + i, layout.parameters[i].elements, step % 3 == 2 ? 3 : 1,
                   sums.data() + layout.parameters[i].begin);
    EXPECT_TRUE(state.apply(sums.data(), 1, job.optimizer().lr()));
    if (step + 1 != golden["steps"][kept]) continue;
    const std::vector<float> want = run["parameters"][kept++];
    auto at = want.begin();
    for (size_t p = 0; p < count; ++p) {
      for (uint64_t i = 0; i < layout.parameters[p].elements; ++i, ++at)
        EXPECT_NEAR(params[layout.parameters[p].begin + i], *at, kTolerance)
            << "after step " << step + 1 << ", element " << i << " of parameter " << p;
    }
    EXPECT_EQ(at, want.end());
  }
}

TEST(GoldenMuon, FollowsPyTorchs) {
  std::ifstream in(std::string(LOCKSTEP_GOLDEN_DIR) + "/muon.json");
  const auto golden = nlohmann::json::parse(in);
  ASSERT_EQ(golden["runs"].size(), 4u);
  for (const auto& run : golden["runs"]) {
    SCOPED_TRACE(run["optimizer"].dump());
    expect_trajectory(golden, run);
  }
}

}  // namespace
}  // namespace lockstep
