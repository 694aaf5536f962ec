#include "worker/model/exported_program/int8/int8_program.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "comm/base/text/printable.h"
#include "data/files/mapped_file.h"
#include "worker/model/exported_program/archive.h"
#include "worker/model/exported_program/int8/int8_graph.h"
#include "worker/model/exported_program/json_fields.h"
#include "worker/model/exported_program/read_program.h"
#include "worker/model/exported_program/stored_zip.h"
#include "worker/model/int8/int8_values.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;

constexpr char kWeightFolder[] = "data/weights/";

template <typename T>
std::span<const uint8_t> bytes_in(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

// One archive on its way to 8 bits.
class Int8Archive {
 public:
  Int8Archive(const ProgramArchive& archive, const Program& program)
      : archive_(archive), program_(program), prefix_("models/" + archive.program()) {}

  Result<Int8Counts> write(const std::string& to, Int8Form form) {
    const std::vector<Int8Weight> weights = find_int8_weights(program_);
    if (weights.empty())
      return Status(
          Code::kConfig,
          "the program has no matrix and no kernel that 8 bits would make smaller; export "
          "it without --int8");
    LOCKSTEP_ASSIGN_OR_RETURN(root_, parse_of(prefix_ + ".json"));
    LOCKSTEP_ASSIGN_OR_RETURN(config_, parse_of(config_name()));
    Int8Graph graph(program_, root_["graph_module"]["graph"], form);
    std::vector<Int8Inputs> inputs;
    for (const Int8Weight& weight : weights) inputs.push_back(graph.add(weight));
    for (size_t i = 0; i < weights.size(); ++i)
      LOCKSTEP_RETURN_IF_ERROR(replace_weight(weights[i], inputs[i]));
    const Int8Counts counts = graph.write();
    add_inputs();
    LOCKSTEP_RETURN_IF_ERROR(write_files(to));
    return counts;
  }

 private:
  Result<json> parse_of(const std::string& name) const {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto text, archive_.read_text(name));
    return parse_limited(text);
  }
  std::string config_name() const {
    return kWeightFolder + archive_.program() + "_weights_config.json";
  }

  // Takes the floats out of the signature, the list of files and the files.
  Status replace_weight(const Int8Weight& weight, const Int8Inputs& inputs) {
    const ProgramTensor& tensor = program_.tensors[weight.tensor];
    const auto floats = row_major_floats(tensor);
    const ChannelExtents extents = extents_along(tensor.shape, weight.channel_dim);
    LOCKSTEP_ASSIGN_OR_RETURN(
        Int8Values values,
        to_int8(printable(tensor.name()), {floats.get(), tensor.elements()}, extents));
    json& entries = config_["config"];
    const json device = entries[tensor.name()]["tensor_meta"].value("device", json());
    for (const std::string& name : tensor.names) entries.erase(name);
    gone_.insert(tensor.entry);
    drop_inputs(weight.tensor);
    const std::vector<int64_t> channels = {tensor.shape[weight.channel_dim]};
    add_tensor(new_tensor_name(tensor.name() + "_int8"), inputs.numbers,
               meta_of_tensor(ProgramDtype::kChar, sizes_of_shape(tensor.shape), device),
               bytes_in(values.numbers));
    add_tensor(new_tensor_name(tensor.name() + "_scale"), inputs.scales,
               meta_of_tensor(ProgramDtype::kFloat, sizes_of_shape(channels), device),
               bytes_in(values.scales));
    return Status::ok();
  }

  // Names of tensors become attributes of modules, so no two may be equal.
  std::string new_tensor_name(const std::string& like) const {
    std::string name = like;
    while (config_["config"].contains(name) || is_input(name)) name += "_";
    return name;
  }
  bool is_input(const std::string& name) const {
    return std::ranges::any_of(program_.inputs,
                               [&](const ProgramInput& input) { return input.name == name; });
  }

  void drop_inputs(uint32_t tensor) {
    json& graph = root_["graph_module"]["graph"];
    for (size_t i = program_.inputs.size(); i-- > 0;) {
      const ProgramInput& input = program_.inputs[i];
      if (input.kind != InputKind::kParameter || input.tensor != tensor) continue;
      gone_inputs_.insert(i);
      if (input.value) graph["tensor_values"].erase(program_.graph.values[input.value->value].name);
    }
  }

  void add_tensor(const std::string& name, const std::string& value, const json& meta,
                  std::span<const uint8_t> content) {
    while (archive_.files().contains(kWeightFolder + ("weight_" + std::to_string(next_file_))))
      ++next_file_;
    const std::string file = "weight_" + std::to_string(next_file_++);
    new_files_[kWeightFolder + file].assign(content.begin(), content.end());
    config_["config"][name] = {
        {"path_name", file}, {"is_param", false}, {"use_pickle", false}, {"tensor_meta", meta}};
    root_["graph_module"]["graph"]["tensor_values"][value] = meta;
    new_inputs_.push_back(json_tensor(value));
    new_specs_.push_back(
        {{"buffer", {{"arg", {{"name", value}}}, {"buffer_name", name}, {"persistent", true}}}});
  }

  // After the last parameter or buffer: PyTorch lists the kinds one after another.
  void add_inputs() {
    json& inputs = root_["graph_module"]["graph"]["inputs"];
    json& specs = root_["graph_module"]["signature"]["input_specs"];
    json all_inputs = json::array();
    json all_specs = json::array();
    size_t place = 0;
    for (size_t i = 0; i < program_.inputs.size(); ++i)
      if (program_.inputs[i].kind == InputKind::kParameter ||
          program_.inputs[i].kind == InputKind::kBuffer)
        place = i + 1;
    for (size_t i = 0; i <= program_.inputs.size(); ++i) {
      if (i == place) {
        for (const json& input : new_inputs_) all_inputs.push_back(input);
        for (const json& spec : new_specs_) all_specs.push_back(spec);
      }
      if (i == program_.inputs.size() || gone_inputs_.contains(i)) continue;
      all_inputs.push_back(inputs[i]);
      all_specs.push_back(specs[i]);
    }
    inputs = std::move(all_inputs);
    specs = std::move(all_specs);
  }

  Status write_files(const std::string& to) const {
    const auto text = [](const json& value) {
      return value.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    const std::map<std::string, std::string> texts = {{prefix_ + ".json", text(root_)},
                                                      {config_name(), text(config_)}};
    StoredZip zip(to);
    const auto add = [&](const std::string& name, std::span<const uint8_t> content) {
      return zip.add(archive_.root() + "/" + name, content);
    };
    for (const auto& [name, content] : new_files_) LOCKSTEP_RETURN_IF_ERROR(add(name, content));
    for (const auto& [name, entry] : archive_.files()) {
      if (name == ".data/serialization_id" || gone_.contains(name)) continue;
      const auto changed = texts.find(name);
      if (changed != texts.end()) {
        const std::string& now = changed->second;
        LOCKSTEP_RETURN_IF_ERROR(
            add(name, {reinterpret_cast<const uint8_t*>(now.data()), now.size()}));
        continue;
      }
      LOCKSTEP_ASSIGN_OR_RETURN(const auto content, archive_.read(name));
      LOCKSTEP_RETURN_IF_ERROR(add(name, content));
    }
    return zip.finish();
  }

  const ProgramArchive& archive_;
  const Program& program_;
  const std::string prefix_;
  json root_;
  json config_;
  std::set<std::string> gone_;    // files
  std::set<size_t> gone_inputs_;  // of the program
  std::map<std::string, std::vector<uint8_t>> new_files_;
  std::vector<json> new_inputs_;
  std::vector<json> new_specs_;
  uint64_t next_file_ = 0;
};

Result<Int8Counts> write_mapped_int8(const std::shared_ptr<const data::MappedFile>& file,
                                     const std::string& to, Int8Form form) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ProgramArchive archive,
                            ProgramArchive::open(file->bytes(), file));
  LOCKSTEP_ASSIGN_OR_RETURN(const Program program, parse_program(file->bytes(), file));
  return Int8Archive(archive, program).write(to, form);
}

}  // namespace

Result<Int8Counts> write_int8_program(const std::string& from, const std::string& to,
                                      Int8Form form) {
  auto mapped = data::MappedFile::open(from);
  if (!mapped.is_ok()) return mapped.status();
  const auto file = std::make_shared<const data::MappedFile>(std::move(mapped).value());
  LOCKSTEP_ASSIGN_OR_RETURN(const Int8Counts counts, write_mapped_int8(file, to, form));
  LOCKSTEP_RETURN_IF_ERROR(file->unchanged());
  return counts;
}

}  // namespace lockstep::exported
