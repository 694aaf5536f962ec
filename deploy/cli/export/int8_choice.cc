#include "deploy/cli/export/int8_choice.h"

#include <sstream>

namespace lockstep {
namespace {

// aten._int_mm of PyTorch 2.11 is fast with VNNI only: on a CPU with AVX2 alone it took 30 times as
// long as float32 (tests/bench/results/2026-11-26-int8.md).
bool multiplies_int8_fast() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

}  // namespace

std::optional<exported::Int8Form> int8_form(const std::string& word) {
  using exported::Int8Form;
  if (word == "dynamic") return Int8Form::kDynamic;
  if (word == "weights") return Int8Form::kWeights;
  if (word == kInt8Auto) return multiplies_int8_fast() ? Int8Form::kDynamic : Int8Form::kWeights;
  return std::nullopt;
}

const char* int8_form_word(exported::Int8Form form) {
  return form == exported::Int8Form::kDynamic ? "dynamic" : "weights";
}

Status check_int8_model(const wire::ModelSpec& model) {
  if (model.name() == "torchscript")
    return {Code::kUsage,
            "--int8: the run trained a TorchScript file, whose code Lockstep does not rewrite; "
            "export the module with torch.export and train it as model.name: exported, or leave "
            "out --int8"};
  if (model.name() == "plugin")
    return {Code::kUsage,
            "--int8: the run trained a plug-in, whose code Lockstep does not know; leave out "
            "--int8, and make 8 bits of model.safetensors where you load it"};
  return Status::ok();
}

std::string int8_load_script(const std::string& loading) {
  std::string script =
      "\"\"\"The weights beside this file, from 8 bits back to floats.\"\"\"\n"
      "import pathlib\n\n"
      "import torch\n"
      "from safetensors.torch import load_file\n\n"
      "HERE = pathlib.Path(__file__).resolve().parent\n\n\n"
      "def weights():\n"
      "    \"\"\"Tensors by name: whole numbers times the scales of their channels.\"\"\"\n"
      "    found = load_file(HERE / \"model.int8.safetensors\")\n"
      "    for name in [name for name in found if found[name].dtype == torch.int8]:\n"
      "        found[name] = found[name].float() * found.pop(name + \"_scale\")\n"
      "    return found\n";
  if (loading.empty()) return script;
  script +=
      "\n\ndef load():\n    \"\"\"The model, in evaluation mode.\"\"\"\n    found = weights()\n";
  std::istringstream lines(loading);
  for (std::string line; std::getline(lines, line);) script += "    " + line + "\n";
  return script + "    return net.eval()\n";
}

}  // namespace lockstep
