// Every model of the table has something that builds it.
#include <gtest/gtest.h>

#include "comm/run/job/models/model_table.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

data::SampleShape shape_for(const ModelRow& row) {
  data::SampleShape shape{.channels = 3, .height = 16, .width = 16};
  if (row.takes == ModelTakes::kTokens) shape = {.tokens = 8, .token_bytes = 2};
  return shape;
}

TEST(Registry, BuildsEveryModelOfTheTable) {
  for (const ModelRow& row : model_table()) {
    wire::ModelSpec spec;
    spec.set_name(std::string(row.name));
    if (row.resolve) {
      spec.set_n_layer(1);
      spec.set_n_head(2);
      spec.set_n_embd(8);
      spec.set_block(8);
      row.resolve(&spec);
    }
    if (row.is_from_file) spec.set_path("/no/such/file");
    const auto model = make_model(spec, shape_for(row), 10);
    if (row.is_script) {
      EXPECT_EQ(model.status().code(), Code::kUsage) << row.name;
      continue;
    }
    if (row.is_from_file) {
      EXPECT_EQ(model.status().code(), Code::kNoInput) << row.name;
      continue;
    }
    ASSERT_TRUE(model.is_ok()) << row.name << ": " << model.status().message();
    EXPECT_FALSE((*model)->layout().parameters.empty()) << row.name;
  }
}

}  // namespace
}  // namespace lockstep
