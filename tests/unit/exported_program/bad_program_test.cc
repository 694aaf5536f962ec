// Programs that somebody damaged, or wrote to harm. Each is refused by a sentence or read as what
// it still says; none makes the reader read beyond its bytes (the sanitizers see to that).
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/support/sanitized.h"
#include "tests/unit/exported_program/golden_program.h"
#include "worker/model/exported_program/archive.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;
using testing::golden_bytes;
using testing::parse;

// A sanitizer sees one of so many damages that a test plays.
constexpr size_t kOneOf = kIsSanitized ? 5 : 1;

// The parts of a program, to change one.
class BadProgram : public ::testing::Test {
 protected:
  BadProgram() : bytes_(golden_bytes("counted")) {
    const auto* data = reinterpret_cast<const uint8_t*>(bytes_.data());
    auto archive = ProgramArchive::open({data, bytes_.size()}, nullptr);
    EXPECT_TRUE(archive.is_ok());
    const auto text = [&](const char* name) { return std::string(*archive->read_text(name)); };
    program_ = json::parse(text("models/model.json"));
    weights_ = json::parse(text("data/weights/model_weights_config.json"));
    constants_ = json::parse(text("data/constants/model_constants_config.json"));
    for (const auto& [name, entry] : archive->files()) {
      const auto content = *archive->read(name);
      files_.emplace(name, std::vector<uint8_t>(content.begin(), content.end()));
    }
  }

  Result<Program> parse_texts(const std::string& program) const {
    const std::string weights = weights_.dump();
    const std::string constants = constants_.dump();
    return parse_program(
        {program, weights, constants},
        [this](const std::string& name) -> Result<std::span<const uint8_t>> {
          const auto found = files_.find(name);
          if (found == files_.end()) return Status(Code::kBadData, "lacks " + name);
          return std::span<const uint8_t>(found->second);
        },
        nullptr);
  }
  Result<Program> parse_parts() const { return parse_texts(program_.dump()); }

  json& graph() { return program_["graph_module"]["graph"]; }
  json& meta(const char* name) { return weights_["config"][name]["tensor_meta"]; }

  const std::string bytes_;
  json program_, weights_, constants_;
  std::map<std::string, std::vector<uint8_t>> files_;
};

TEST_F(BadProgram, EveryCutIsRefused) {
  for (size_t bytes = 0; bytes < bytes_.size(); bytes += bytes < 256 ? 1 : 61) {
    const auto program = parse(bytes_.substr(0, bytes));
    ASSERT_EQ(program.status().code(), Code::kBadData) << bytes;
  }
}

TEST_F(BadProgram, AFlippedByteOfWeightsOrJsonIsNoticed) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes_.data());
  const auto archive = ProgramArchive::open({data, bytes_.size()}, nullptr);
  ASSERT_TRUE(archive.is_ok());
  size_t noticed = 0;
  for (const auto& [name, entry] : archive->files()) {
    // Sample inputs are a pickle, which Lockstep never opens; nothing depends on the last two.
    if (name.ends_with(".pt") || name == "version" || name.starts_with(".data/")) continue;
    for (uint64_t i = 0; i < entry.bytes; i += 7 * kOneOf) {
      std::string changed = bytes_;
      changed[entry.offset + i] = static_cast<char>(changed[entry.offset + i] ^ 0x10);
      ASSERT_FALSE(parse(changed).is_ok()) << name << " at " << i;
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 1000 / kOneOf);
}

TEST_F(BadProgram, AFlippedByteOfTheDirectoryIsRefusedOrHarmless) {
  size_t refused = 0;
  for (size_t at = bytes_.size() - 1200; at < bytes_.size(); at += kOneOf) {
    for (const int bit : {0x01, 0x80}) {
      std::string changed = bytes_;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      refused += parse(changed).is_ok() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 500 / kOneOf);
}

TEST_F(BadProgram, AChangedCharacterOfTheGraphIsRefusedOrRead) {
  const std::string text = program_.dump();
  size_t refused = 0;
  size_t tried = 0;
  for (size_t i = 0; i < text.size(); i += 3 * kOneOf, ++tried) {
    std::string changed = text;
    changed[i] = "\"0]{"[tried % 4];
    refused += parse_texts(changed).is_ok() ? 0 : 1;
  }
  EXPECT_GT(refused, tried / 4);
}

TEST_F(BadProgram, AbsurdExtentsAreRefused) {
  const auto refused_with = [&](const char* key, json value) {
    const json kept = meta("fc.weight");
    meta("fc.weight")[key] = std::move(value);
    const auto program = parse_parts();
    meta("fc.weight") = kept;
    return program;
  };
  const auto ints = [](std::initializer_list<int64_t> values) {
    json list = json::array();
    for (const int64_t value : values) list.push_back({{"as_int", value}});
    return list;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto refused = FailsWith(Code::kBadData, Names("fc.weight"), Advises("torch 2.11"));
  EXPECT_THAT(refused_with("sizes", ints({11, 64})), refused);
  EXPECT_THAT(refused_with("sizes", ints({kMost, kMost})), refused);
  EXPECT_THAT(refused_with("sizes", ints({kMost, 4})), refused);
  EXPECT_THAT(refused_with("strides", ints({kMost, kMost})), refused);
  EXPECT_THAT(refused_with("strides", ints({65, 1})), refused);
  EXPECT_THAT(refused_with("strides", ints({-64, 1})), refused);
  EXPECT_THAT(refused_with("strides", ints({64})), refused);
  EXPECT_THAT(refused_with("storage_offset", json{{"as_int", 1}}), refused);
  EXPECT_THAT(refused_with("storage_offset", json{{"as_int", kMost}}), refused);
  EXPECT_THAT(refused_with("strides", ints({1, 1})),
              FailsWith(Code::kConfig, Names("fc.weight"), Advises("contiguous()")));
  EXPECT_TRUE(refused_with("sizes", ints({5, 64})).is_ok()) << "a part of its bytes is enough";
}

TEST_F(BadProgram, ARepeatedBufferMayNotBeHuge) {
  meta("steps")["sizes"] = json::array({{{"as_int", int64_t{1} << 40}}});
  meta("steps")["strides"] = json::array({{{"as_int", 0}}});
  EXPECT_THAT(parse_parts(), FailsWith(Code::kBadData, Names("steps")));
}

TEST_F(BadProgram, ValuesMustBeDefinedOnceAndBefore) {
  json& nodes = graph()["nodes"];
  const json kept = nodes;
  nodes[0]["inputs"][0]["arg"]["as_tensor"]["name"] = "mul";
  EXPECT_THAT(parse_parts(), FailsWith(Code::kBadData, Names("mul"), Says("before")));
  nodes = kept;
  nodes[1]["outputs"][0]["as_tensor"]["name"] = "x";
  EXPECT_THAT(parse_parts(), FailsWith(Code::kBadData, Names("x"), Says("twice")));
  nodes = kept;
  nodes[0]["inputs"][0]["arg"] = {{"as_sym_int", {{"as_name", "x"}}}};
  EXPECT_THAT(parse_parts(), FailsWith(Code::kBadData, Names("x")));
}

TEST_F(BadProgram, UnknownKindsOfArgumentsAreNamed) {
  graph()["nodes"][0]["inputs"][0]["arg"] = {{"as_complex", {{"real", 1}, {"imag", 2}}}};
  EXPECT_THAT(parse_parts(),
              FailsWith(Code::kConfig, Names("as_complex", "aten.flatten", "models.py, line")));
}

TEST_F(BadProgram, CustomObjectsTokensAndChangedProgramsAreRefused) {
  json& signature = program_["graph_module"]["signature"];
  const json kept = signature;
  signature["input_specs"][0] = {{"custom_obj", {{"arg", {}}, {"custom_obj_name", "o"}}}};
  EXPECT_THAT(parse_parts(), FailsWith(Code::kConfig, Names("custom_obj")));
  signature = kept;
  signature["output_specs"][0] = {{"buffer_mutation", {{"arg", {}}, {"buffer_name", "b"}}}};
  EXPECT_THAT(parse_parts(), FailsWith(Code::kConfig, Advises("run_decompositions()")));
}

TEST_F(BadProgram, JsonHasLimits) {
  const std::string deep(limits::kProgramJsonLevels + 1, '[');
  EXPECT_THAT(parse_texts(deep), FailsWith(Code::kBadData, Says("levels")));
  EXPECT_THAT(parse_texts(std::string(limits::kProgramJsonBytes + 1, ' ')),
              FailsWith(Code::kBadData, Says("bytes")));
  EXPECT_THAT(parse_texts("[" + std::string(limits::kProgramJsonValues, ',')),
              FailsWith(Code::kBadData, Says("values")));
  EXPECT_THAT(parse_texts("{\"a\":"), FailsWith(Code::kBadData, Says("parsed")));
}

// The names of what a program gives are JSON in a text in JSON in a text.
TEST_F(BadProgram, JsonInATextHasTheSameLimits) {
  json& signature = program_["graph_module"]["module_call_graph"][0]["signature"];
  const json leaf = {{"type", nullptr}, {"context", nullptr}, {"children_spec", json::array()}};
  const auto parse_with = [&](const std::string& context) {
    const json tree = {{"type", "builtins.dict"}, {"context", context}, {"children_spec", {leaf}}};
    signature["out_spec"] = json::array({1, tree}).dump();
    return parse_parts();
  };
  EXPECT_TRUE(parse_with(R"(["logits"])").is_ok());
  const std::string deep(limits::kProgramJsonLevels + 1, '[');
  EXPECT_THAT(parse_with(deep + std::string(deep.size(), ']')),
              FailsWith(Code::kBadData, Says("levels")));
  EXPECT_THAT(parse_with("[\"logits\""), FailsWith(Code::kBadData, Says("parsed")));
}

TEST_F(BadProgram, OperatorsAreCounted) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer reads so many operators in a quarter of a minute";
  const std::string node =
      R"({"target":"torch.ops.aten.relu.default","inputs":[],"outputs":[],"metadata":{}})";
  std::string nodes = node;
  nodes.reserve((limits::kProgramNodes + 1) * (node.size() + 1));
  for (size_t i = 0; i < limits::kProgramNodes; ++i) nodes.append(1, ',').append(node);
  graph()["nodes"] = "here";
  std::string text = program_.dump();
  text.replace(text.find("\"here\""), 6, "[" + nodes + "]");
  EXPECT_THAT(parse_texts(text),
              FailsWith(Code::kConfig, Names(std::to_string(limits::kProgramNodes))));
}

TEST_F(BadProgram, ARegionMustFitItsGraph) {
  json& node = graph()["nodes"][0];
  node["target"] = "torch.ops.higher_order.wrap_with_set_grad_enabled";
  EXPECT_THAT(parse_parts(), FailsWith(Code::kBadData, Names("set_grad_enabled")));
  const json inner = {{"inputs", json::array({{{"as_tensor", {{"name", "a"}}}}})},
                      {"outputs", json::array({{{"as_tensor", {{"name", "a"}}}}})},
                      {"nodes", json::array()}};
  node["inputs"] =
      json::array({{{"name", ""}, {"arg", {{"as_bool", false}}}},
                   {{"name", ""}, {"arg", {{"as_graph", {{"name", "g"}, {"graph", inner}}}}}},
                   {{"name", ""}, {"arg", {{"as_tensor", {{"name", "x"}}}}}}});
  EXPECT_TRUE(parse_parts().is_ok()) << parse_parts().status().message();
  node["inputs"].erase(2);
  EXPECT_THAT(parse_parts(), FailsWith(Code::kBadData, Says("number of arguments")));
}

}  // namespace
}  // namespace lockstep::exported
