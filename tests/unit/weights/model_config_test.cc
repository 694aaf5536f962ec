// Reads the config.json next to weights of Hugging Face.
#include "worker/model/weights/model_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/run/job/models/gpt2_spec.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

class ModelConfig : public ::testing::Test {
 protected:
  ModelConfig() {
    model_.set_name("gpt2");
    resolve_gpt2(&model_);
  }

  Status checked(const std::string& text) {
    write_file(dir_.path("config.json"), text);
    return check_model_config(dir_.path("model.safetensors"), model_);
  }
  // GPT-2's own, with one key changed.
  Status with(const char* key, const Json& value) {
    Json config = {{"model_type", "gpt2"},
                   {"n_head", 12},
                   {"n_layer", 12},
                   {"n_embd", 768},
                   {"n_inner", Json()},
                   {"activation_function", "gelu_new"},
                   {"resid_pdrop", 0.1},
                   {"layer_norm_epsilon", 1e-05},
                   {"n_positions", 1024},
                   {"vocab_size", 50257},
                   {"scale_attn_weights", true}};
    config[key] = value;
    return checked(config.dump());
  }

  TemporaryDirectory dir_;
  wire::ModelSpec model_;
};

TEST_F(ModelConfig, Gpt2sOwnFitsAndSoDoesNone) {
  EXPECT_TRUE(check_model_config(dir_.path("model.safetensors"), model_).is_ok());
  EXPECT_TRUE(with("resid_pdrop", 0.2).is_ok());  // no part of the model
  EXPECT_TRUE(with("n_inner", 3072).is_ok());
  EXPECT_TRUE(with("activation_function", "gelu_pytorch_tanh").is_ok());
  EXPECT_TRUE(
      check_model_config(std::filesystem::path(dir_.path("x")).parent_path(), model_).is_ok());
  EXPECT_TRUE(checked("{}").is_ok());  // transformers' defaults
}

TEST_F(ModelConfig, AnotherModelOfTheSameTensorsIsRefusedByKey) {
  EXPECT_THAT(with("n_head", 16),
              FailsWith(Code::kConfig, Names("config.json", "n_head", "model.n_head=16")));
  const std::pair<const char*, Json> others[] = {{"model_type", "gpt_bigcode"},
                                                 {"activation_function", "relu"},
                                                 {"activation_function", "gelu"},
                                                 {"layer_norm_epsilon", 1e-6},
                                                 {"scale_attn_weights", false},
                                                 {"scale_attn_by_inverse_layer_idx", true},
                                                 {"tie_word_embeddings", false},
                                                 {"add_cross_attention", true},
                                                 {"n_inner", 1024}};
  for (const auto& [key, value] : others)
    EXPECT_THAT(with(key, value), FailsWith(Code::kConfig, Names("config.json", key, value.dump()),
                                            Advises("model.name: exported")))
        << key;
  model_.set_n_head(6);
  EXPECT_THAT(checked("{}"), FailsWith(Code::kConfig, Names("n_head", "model.n_head=12")));
}

TEST_F(ModelConfig, ABrokenFileIsNamed) {
  EXPECT_THAT(checked("[1"), FailsWith(Code::kBadData, Names("config.json")));
  EXPECT_THAT(checked(std::string(100'000, '[')), FailsWith(Code::kBadData, Names("config.json")));
  model_.set_name("exported");
  EXPECT_TRUE(checked("[1").is_ok());  // no program is told apart by it
}

TEST_F(ModelConfig, TimmsArchitectureIsThatOfTheResnet) {
  model_.set_name("resnet50");
  EXPECT_TRUE(checked(R"({"architecture": "resnet50"})").is_ok());
  EXPECT_THAT(checked(R"({"architecture": "resnetaa50"})"),
              FailsWith(Code::kConfig, Names("architecture", "resnetaa50")));
}

}  // namespace
}  // namespace lockstep
