// The table of models, and what the programs ask it of a job.
#include "comm/run/job/models/model_table.h"

#include <gtest/gtest.h>

#include <string>

#include "comm/run/job/predictions.h"

namespace lockstep {
namespace {

wire::ModelSpec model(std::string_view name) {
  wire::ModelSpec spec;
  spec.set_name(std::string(name));
  return spec;
}

TEST(ModelTable, HasOneRowForEachName) {
  for (const ModelRow& row : model_table()) EXPECT_EQ(find_model(row.name), &row) << row.name;
  EXPECT_EQ(find_model("gpt3"), nullptr);
  EXPECT_EQ(model_names().size(), model_table().size());
}

TEST(ModelTable, TellsModelsOfTokensFromOthers) {
  EXPECT_TRUE(learns_from_tokens(model("gpt2")));
  EXPECT_FALSE(learns_from_tokens(model("plugin")));
  EXPECT_TRUE(may_take_tokens(model("plugin")));
  EXPECT_FALSE(may_take_tokens(model("resnet18")));
  EXPECT_FALSE(may_take_tokens(model("unknown")));
  EXPECT_EQ(models_of_tokens(), "gpt2");
  EXPECT_EQ(models_of_packed_documents(), "gpt2");
}

TEST(ModelTable, KnowsModelsFromFiles) {
  EXPECT_TRUE(is_from_file(model("torchscript")));
  EXPECT_TRUE(is_from_file(model("plugin")));
  EXPECT_FALSE(is_from_file(model("gpt2")));
  EXPECT_FALSE(is_from_file(model("unknown")));
}

TEST(ModelTable, KnowsScripts) {
  EXPECT_TRUE(is_script(model("script")));
  EXPECT_FALSE(is_script(model("plugin")));
  EXPECT_FALSE(is_script(model("unknown")));
}

TEST(ModelTable, CountsAPredictionForEachTokenOfASequence) {
  for (const char* name : {"gpt2", "torchscript", "mlp"}) {
    wire::ModelSpec spec = model(name);
    EXPECT_EQ(predictions_per_sample(spec), 1u) << name;
    spec.set_block(64);
    EXPECT_EQ(predictions_per_sample(spec), name == std::string("mlp") ? 1u : 64u) << name;
  }
}

TEST(ModelTable, ResolvesAGpt2WithoutASizeToItsDefault) {
  wire::ModelSpec spec = model("gpt2");
  find_model("gpt2")->resolve(&spec);
  EXPECT_EQ(spec.size(), "d12");
  EXPECT_EQ(spec.n_layer(), 12u);
  EXPECT_TRUE(find_model("gpt2")->check(spec).is_ok());
}

}  // namespace
}  // namespace lockstep
