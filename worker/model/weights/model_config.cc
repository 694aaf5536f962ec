#include "worker/model/weights/model_config.h"

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/text/printable.h"
#include "comm/base/text/shallow_json.h"
#include "comm/base/text/shell_word.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kConfigFile[] = "config.json";
constexpr int kDepth = 16;

Result<Json> read_config(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(path, limits::kJobFileBytes));
  Json root = parse_shallow_json(text, kDepth);
  if (root.is_object()) return root;
  return Status(Code::kBadData, shell_word(path) +
                                    ", beside the weights of model.init, is no JSON object; put it "
                                    "back as it was, or remove it if it is not of these weights");
}

// Collects the keys that differ.
class Comparison {
 public:
  explicit Comparison(const Json& config) : config_(config) {}

  // `usual`: the value of a file without the key. `remedy`: advice to make it fit; empty: none.
  void compare(const char* key, const Json& usual, std::initializer_list<Json> fits,
               const std::string& remedy) {
    const auto found = config_.find(key);
    const Json& value = found == config_.end() || found->is_null() ? usual : *found;
    for (const Json& each : fits)
      if (value == each) return;
    differences_ += (differences_.empty() ? "" : "; ") + std::string(key) + " is " +
                    printable(value.dump(-1, ' ', false, Json::error_handler_t::replace)) + ", " +
                    (remedy.empty() ? "and this model has " + fits.begin()->dump() : remedy);
    is_hopeless_ |= remedy.empty();
  }
  // Compares a number that a key of the job sets.
  void compare_size(const char* key, uint32_t usual, uint32_t mine) {
    const std::string name = "model." + std::string(key);
    const auto found = config_.find(key);
    const std::string theirs = found == config_.end() ? std::to_string(usual) : found->dump();
    compare(key, usual, {mine},
            name + " is " + std::to_string(mine) + ": set " + name + "=" + theirs);
  }

  const std::string& differences() const { return differences_; }
  bool is_hopeless() const { return is_hopeless_; }

 private:
  const Json& config_;
  std::string differences_;
  bool is_hopeless_ = false;
};

// The defaults are from transformers' GPT2Config.
void compare_gpt2(const wire::ModelSpec& model, Comparison& keys) {
  keys.compare("model_type", "gpt2", {"gpt2"}, "");
  keys.compare_size("n_head", 12, model.n_head());
  keys.compare_size("n_layer", 12, model.n_layer());
  keys.compare_size("n_embd", 768, model.n_embd());
  keys.compare("n_inner", 4 * model.n_embd(), {4 * model.n_embd()}, "");
  // Names of one function: the approximation by a tanh.
  keys.compare("activation_function", "gelu_new", {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"},
               "");
  keys.compare("layer_norm_epsilon", 1e-5, {1e-5}, "");
  keys.compare("scale_attn_weights", true, {true}, "");
  keys.compare("scale_attn_by_inverse_layer_idx", false, {false}, "");
  keys.compare("add_cross_attention", false, {false}, "");
  keys.compare("tie_word_embeddings", true, {true}, "");
}

}  // namespace

Status check_model_config(const std::string& path, const wire::ModelSpec& model) {
  const bool is_resnet = model.name().starts_with("resnet");
  if (model.name() != "gpt2" && !is_resnet) return Status::ok();
  std::error_code error;
  const fs::path directory =
      fs::is_directory(path, error) ? fs::path(path) : fs::path(path).parent_path();
  const std::string file = (directory / kConfigFile).string();
  if (!fs::exists(file, error)) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const Json config, read_config(file));
  Comparison keys(config);
  if (is_resnet)
    keys.compare("architecture", model.name(), {model.name()}, "");  // as timm writes it
  else
    compare_gpt2(model, keys);
  if (keys.differences().empty()) return Status::ok();
  return {Code::kConfig,
          "model.init names weights of another model than " + model.name() + " of this job: in " +
              shell_word(file) + " " + keys.differences() +
              (keys.is_hopeless() ? ". Export that model, and train it with model.name: exported"
                                  : "")};
}

}  // namespace lockstep
