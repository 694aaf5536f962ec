#include "worker/model/exported_program/write_program.h"

#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "comm/base/text/printable.h"
#include "comm/base/text/shell_word.h"
#include "data/files/mapped_file.h"
#include "worker/model/exported_program/archive.h"
#include "worker/model/exported_program/evaluation.h"
#include "worker/model/exported_program/json_fields.h"
#include "worker/model/exported_program/read_program.h"
#include "worker/model/exported_program/stored_zip.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;
using TensorsByEntry = std::map<std::string, const ProgramTensor*>;

// Switches the nodes of `json_graph`, and takes the step counters out. `graph` has the same nodes.
void switch_graph(const ProgramGraph& graph, const IsCounter& is_counter, json& json_graph) {
  json& nodes = json_graph["nodes"];
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const ProgramNode& node = graph.nodes[i];
    if (is_step_counter(graph, i, is_counter)) {
      for (const NodeOutput& output : node.outputs)
        for (const ValueRef value : output.values)
          json_graph["tensor_values"].erase(graph.values[value.value].name);
      nodes.erase(i);
      continue;
    }
    json& inputs = nodes[i]["inputs"];
    for (const ArgumentSwitch& change : evaluation_switches(node)) {
      json& argument = inputs[change.argument]["arg"];
      if (const auto* flag = std::get_if<bool>(&change.value))
        argument = {{"as_bool", *flag}};
      else
        argument = {{"as_float", std::get<double>(change.value)}};
    }
    for (size_t a = 0; a < node.arguments.size(); ++a) {
      const auto* inner =
          std::get_if<std::shared_ptr<const ProgramGraph>>(&node.arguments[a].value);
      if (inner != nullptr)
        switch_graph(**inner, counters_of(node, **inner, is_counter),
                     inputs[a]["arg"]["as_graph"]["graph"]);
    }
  }
}

// `text` describes `program`.
Result<std::string> evaluation_text(const Program& program, std::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(json root, parse_limited(text));
  switch_graph(program.graph, counters_of(program), root["graph_module"]["graph"]);
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The storage of a tensor with its new elements where the old ones lie.
std::vector<uint8_t> scattered(const ProgramTensor& tensor, std::span<const uint8_t> elements) {
  std::vector<uint8_t> storage(tensor.bytes.begin(), tensor.bytes.end());
  const size_t bytes = bytes_of(tensor.dtype);
  const uint8_t* from = elements.data();
  for_each_place(tensor, [&](uint64_t place) {
    std::memcpy(storage.data() + place * bytes, from, bytes);
    from += bytes;
  });
  return storage;
}

class ProgramWriter {
 public:
  ProgramWriter(const ProgramArchive& archive, const Program& program, const NewWeights& weights)
      : archive_(archive), weights_(weights) {
    for (const ProgramInput& input : program.inputs) {
      if (input.kind != InputKind::kParameter && input.kind != InputKind::kBuffer) continue;
      const ProgramTensor& tensor = program.tensors[input.tensor];
      by_entry_[tensor.entry] = &tensor;
    }
  }

  // `graph`: the new content of models/NAME.json; empty: the old one.
  Status write(const std::string& to, const std::string& graph) {
    StoredZip zip(to);
    for (const auto& [name, entry] : archive_.files()) {
      if (name == ".data/serialization_id") continue;  // a hash of the old content
      LOCKSTEP_RETURN_IF_ERROR(write_file(name, graph, zip));
    }
    return zip.finish();
  }

 private:
  Status write_file(const std::string& name, const std::string& graph, StoredZip& zip) {
    const std::string whole_name = archive_.root() + "/" + name;
    if (!graph.empty() && name == "models/" + archive_.program() + ".json")
      return zip.add(whole_name, {reinterpret_cast<const uint8_t*>(graph.data()), graph.size()});
    const auto known = by_entry_.find(name);
    if (known != by_entry_.end()) {
      LOCKSTEP_ASSIGN_OR_RETURN(const auto elements, new_elements(*known->second));
      if (!elements.empty()) return zip.add(whole_name, scattered(*known->second, elements));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const auto content, archive_.read(name));
    return zip.add(whole_name, content);
  }

  Result<std::span<const uint8_t>> new_elements(const ProgramTensor& tensor) const {
    for (const std::string& name : tensor.names) {
      LOCKSTEP_ASSIGN_OR_RETURN(const auto elements, weights_(name));
      if (elements.empty()) continue;
      const uint64_t wanted = tensor.elements() * bytes_of(tensor.dtype);
      if (elements.size() == wanted) return elements;
      return Status(Code::kConfig, "has " + std::to_string(wanted) + " bytes of " +
                                       printable(name) + ", and the new weights " +
                                       std::to_string(elements.size()) +
                                       "; take the program that the run trained");
    }
    return std::span<const uint8_t>();
  }

  const ProgramArchive& archive_;
  const NewWeights& weights_;
  TensorsByEntry by_entry_;
};

Status write_mapped(const std::shared_ptr<const data::MappedFile>& file, const std::string& to,
                    bool is_evaluation, const NewWeights& weights) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ProgramArchive archive,
                            ProgramArchive::open(file->bytes(), file));
  LOCKSTEP_ASSIGN_OR_RETURN(const Program program, parse_program(file->bytes(), file));
  std::string graph;
  if (is_evaluation) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto text,
                              archive.read_text("models/" + archive.program() + ".json"));
    LOCKSTEP_ASSIGN_OR_RETURN(graph, evaluation_text(program, text));
  }
  return ProgramWriter(archive, program, weights).write(to, graph);
}

}  // namespace

Status write_program(const std::string& from, const std::string& to, bool is_evaluation,
                     const NewWeights& weights) {
  auto mapped = data::MappedFile::open(from);
  if (!mapped.is_ok())
    return {mapped.status().code(),
            mapped.status().message() + "; put the program back that the run trained"};
  const auto file = std::make_shared<const data::MappedFile>(std::move(mapped).value());
  const Status written = write_mapped(file, to, is_evaluation, weights);
  if (written.code() == Code::kBadData || written.code() == Code::kConfig)
    return {written.code(), "the exported program " + shell_word(from) + " " + written.message()};
  LOCKSTEP_RETURN_IF_ERROR(written);
  return file->unchanged();
}

}  // namespace lockstep::exported
