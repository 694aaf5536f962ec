// Any bytes as an exported program: refused, or a program that keeps its invariants. An input is an
// archive, or the JSON of one ("{"). With JSON every file of the archive exists, of 256 bytes, and
// no checksum keeps the fuzzer from the parser of the graph.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/check.h"
#include "worker/model/exported_program/evaluation.h"
#include "worker/model/exported_program/read_program.h"

namespace {

using namespace lockstep;
using namespace lockstep::exported;

constexpr size_t kFileBytes = 256;

void check_graph(const ProgramGraph& graph) {
  for (const ProgramNode& node : graph.nodes) {
    for (const NamedArgument& argument : node.arguments) {
      if (const auto* value = std::get_if<ValueRef>(&argument.value))
        LOCKSTEP_CHECK(value->value < graph.values.size(), "a value is one of its graph's");
      if (const auto* inner = std::get_if<std::shared_ptr<const ProgramGraph>>(&argument.value))
        check_graph(**inner);
    }
  }
}

void check_program(const Program& program) {
  check_graph(program.graph);
  for (size_t i = 0; i < program.graph.nodes.size(); ++i) {
    evaluation_switches(program.graph.nodes[i]);
    is_step_counter(program, i);
  }
  for (const ProgramTensor& tensor : program.tensors) {
    const uint64_t bytes = tensor.elements() * bytes_of(tensor.dtype);
    if (bytes > (1 << 20)) continue;  // repeated, and honest
    std::vector<uint8_t> gathered(bytes);
    gather(tensor, gathered.data());
  }
  check_batch_size(program, "m.pt2", 4, "a slot").is_ok();
}

}  // namespace

// Three texts, with a zero byte between two of them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || data[0] != '{') {
    const auto program = parse_program(std::span(data, size), nullptr);
    if (program.is_ok()) check_program(*program);
    return 0;
  }
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t first = all.find('\0');
  const size_t second = first == all.npos ? all.npos : all.find('\0', first + 1);
  if (second == all.npos) return 0;
  const auto file = std::make_unique<std::array<uint8_t, kFileBytes>>();
  const auto program = parse_program(
      {all.substr(0, first), all.substr(first + 1, second - first - 1), all.substr(second + 1)},
      [&](const std::string&) { return Result(std::span<const uint8_t>(*file)); }, nullptr);
  if (program.is_ok()) check_program(*program);
  return 0;
}
