// Tests what Muon takes of models from files.
#include "worker/torch/engine/hidden_matrices.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

std::set<std::string> hidden_of(const std::string& name, const std::string& path,
                                const data::SampleShape& shape, uint32_t classes) {
  wire::ModelSpec spec;
  spec.set_name(name);
  spec.set_path(path);
  const auto model = make_model(spec, shape, classes);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  std::set<std::string> names;
  const std::vector<bool> hidden = find_hidden_matrices(**model, spec, shape, classes);
  for (size_t i = 0; i < hidden.size(); ++i)
    if (hidden[i]) names.insert((*model)->layout().parameters[i].name);
  return names;
}

std::string in_golden(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/" + name;
}

using HiddenNames = std::set<std::string>;

TEST(HiddenMatrices, OfAProgramAreNeitherEmbeddingsNorItsOutputLayer) {
  const data::SampleShape text{.tokens = 8, .token_bytes = 1};
  EXPECT_EQ(hidden_of("exported", in_golden("exported/tied_lm.pt2"), text, 20),
            (HiddenNames{"qkv.weight", "out.weight"}));
  EXPECT_EQ(hidden_of("exported", in_golden("exported/mlp.pt2"), {1, 8, 8}, 10),
            HiddenNames{"fc1.weight"});
  EXPECT_EQ(hidden_of("exported", in_golden("exported/convnet.pt2"), {1, 8, 8}, 10), HiddenNames{});
}

TEST(HiddenMatrices, OfAScriptAreNeitherEmbeddingsNorItsOutputLayer) {
  const data::SampleShape text{.tokens = 16, .token_bytes = 1};
  EXPECT_EQ(hidden_of("torchscript", in_golden("torchscript_tokens.pt"), text, 256),
            HiddenNames{"hidden.weight"});
  EXPECT_EQ(hidden_of("torchscript", in_golden("torchscript_images.pt"), {1, 12, 12}, 10),
            HiddenNames{"hidden.weight"});
}

TEST(HiddenMatrices, OfAPluginAreThoseBeforeItsOutputLayer) {
  EXPECT_EQ(hidden_of("plugin", LOCKSTEP_SMALL_NET, {1, 8, 8}, 10), HiddenNames{"hidden.weight"});
}

// The products that lead to a model's own loss are the same that lead to logits.
TEST(HiddenMatrices, OfAModelWithALossOfItsOwnAreTheSame) {
  const data::SampleShape rows{.channels = 4, .height = 1, .width = 1, .is_row = true};
  for (const char* name : {"per_sample", "weighted"})
    EXPECT_EQ(hidden_of("exported", in_golden(std::string("own_loss/") + name + ".pt2"), rows, 3),
              HiddenNames{"hidden.weight"});
}

}  // namespace
}  // namespace lockstep
