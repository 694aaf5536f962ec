// Programs written with other weights: Lockstep reads them, and PyTorch where there is one.
#include "worker/model/exported_program/write_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/exported_program/golden_program.h"
#include "worker/model/exported_program/evaluation.h"

namespace lockstep::exported {
namespace {

using testing::golden_path;

constexpr int kNoTorch = 77;  // how reopen.py ends where there is none

// Each float tensor of a program with half its values, and the others as they are.
class Halved {
 public:
  explicit Halved(const std::string& name) {
    const auto program = read_program(golden_path(name));
    EXPECT_TRUE(program.is_ok()) << program.status().message();
    if (!program.is_ok()) return;
    for (const ProgramTensor& tensor : (*program)->tensors) {
      if (tensor.dtype != ProgramDtype::kFloat) continue;
      std::vector<float> values(tensor.elements());
      gather(tensor, reinterpret_cast<uint8_t*>(values.data()));
      for (float& value : values) value *= 0.5F;
      tensors_.emplace(tensor.name(), std::move(values));
    }
  }

  NewWeights weights() const {
    return [this](const std::string& name) -> Result<std::span<const uint8_t>> {
      const auto found = tensors_.find(name);
      if (found == tensors_.end()) return std::span<const uint8_t>();
      return std::span(reinterpret_cast<const uint8_t*>(found->second.data()),
                       found->second.size() * sizeof(float));
    };
  }
  const std::map<std::string, std::vector<float>>& tensors() const { return tensors_; }

 private:
  std::map<std::string, std::vector<float>> tensors_;
};

std::string torch_python() {
  if (const char* given = std::getenv("LOCKSTEP_TORCH_PYTHON")) return given;
#ifdef LOCKSTEP_TORCH_PYTHON
  return LOCKSTEP_TORCH_PYTHON;
#else
  return "python3";
#endif
}

TEST(WriteProgram, HoldsTheNewWeightsWhereTheOldOnesLay) {
  const TemporaryDirectory directory;
  for (const char* name : {"mlp", "strided", "tied_lm", "convnet"}) {
    const Halved halved(name);
    const std::string to = directory.path(std::string(name) + ".pt2");
    const Status written = write_program(golden_path(name), to, false, halved.weights());
    ASSERT_TRUE(written.is_ok()) << written.message();
    const auto old_program = read_program(golden_path(name));
    const auto program = read_program(to);
    ASSERT_TRUE(program.is_ok()) << program.status().message();
    ASSERT_EQ((*program)->tensors.size(), (*old_program)->tensors.size());
    for (size_t i = 0; i < (*program)->tensors.size(); ++i) {
      const ProgramTensor& tensor = (*program)->tensors[i];
      EXPECT_EQ(tensor.strides, (*old_program)->tensors[i].strides);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) % 64, 0u) << tensor.name();
      if (tensor.dtype != ProgramDtype::kFloat) continue;
      std::vector<float> values(tensor.elements());
      gather(tensor, reinterpret_cast<uint8_t*>(values.data()));
      EXPECT_EQ(values, halved.tensors().at(tensor.name())) << tensor.name();
    }
    EXPECT_EQ((*program)->graph.nodes.size(), (*old_program)->graph.nodes.size());
  }
  EXPECT_EQ(names_in(directory.path()).size(), 4u) << "no temporary file is left";
}

TEST(WriteProgram, ForEvaluationNothingIsLeftToSwitchOrToCount) {
  const TemporaryDirectory directory;
  const Halved halved("convnet");
  const std::string to = directory.path("model.pt2");
  ASSERT_TRUE(write_program(golden_path("convnet"), to, true, halved.weights()).is_ok());
  const auto before = read_program(golden_path("convnet"));
  const auto program = read_program(to);
  ASSERT_TRUE(program.is_ok()) << program.status().message();
  const ProgramGraph& graph = (*program)->graph;
  EXPECT_EQ(graph.nodes.size() + 3, (*before)->graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    EXPECT_TRUE(evaluation_switches(graph.nodes[i]).empty()) << graph.nodes[i].target;
    EXPECT_FALSE(is_step_counter(**program, i));
  }
}

TEST(WriteProgram, ForEvaluationRegionsAreSwitchedToo) {
  const TemporaryDirectory directory;
  const Halved halved("in_autocast");
  const std::string to = directory.path("model.pt2");
  ASSERT_TRUE(write_program(golden_path("in_autocast"), to, true, halved.weights()).is_ok());
  const auto program = read_program(to);
  ASSERT_TRUE(program.is_ok()) << program.status().message();
  const ProgramNode& region = (*program)->graph.nodes.front();
  ASSERT_EQ(region.kind, NodeKind::kAutocast);
  for (const ProgramNode& node :
       std::get<std::shared_ptr<const ProgramGraph>>(region.arguments[4].value)->nodes) {
    EXPECT_TRUE(evaluation_switches(node).empty()) << node.target;
    EXPECT_FALSE(node.target.starts_with("torch.ops.aten.add_")) << "it counts steps";
  }
}

TEST(WriteProgram, TheSameWeightsMakeTheSameFile) {
  const TemporaryDirectory directory;
  const Halved halved("mlp");
  for (const char* name : {"a", "b"})
    ASSERT_TRUE(
        write_program(golden_path("mlp"), directory.path(name), true, halved.weights()).is_ok());
  EXPECT_EQ(slurp(directory.path("a")), slurp(directory.path("b")));
}

TEST(WriteProgram, AFailureLeavesTheOldFile) {
  const TemporaryDirectory directory;
  const std::string to = directory.path("model.pt2");
  write_file(to, "old");
  const std::vector<uint8_t> few(3);
  EXPECT_THAT(write_program(golden_path("mlp"), to, false,
                            [&](auto&) { return Result(std::span<const uint8_t>(few)); }),
              FailsWith(Code::kConfig, Names("mlp.pt2", "8192", "3"), Advises("trained")));
  EXPECT_THAT(write_program(golden_path("mlp"), to, false,
                            [](auto&) -> Result<std::span<const uint8_t>> {
                              return Status(Code::kNoMemory, "a checkpoint is gone");
                            }),
              FailsWith(Code::kNoMemory, Names("a checkpoint")));
  EXPECT_THAT(write_program(directory.path("none.pt2"), to, false, {}),
              FailsWith(Code::kNoInput, Names("none.pt2")));
  EXPECT_EQ(slurp(to), "old");
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"model.pt2"});
  const Halved halved("mlp");
  EXPECT_THAT(write_program(golden_path("mlp"), directory.path("no/such"), false, halved.weights()),
              FailsWith(Code::kInternal, Names("no/such"), Advises("another directory")));
}

TEST(WriteProgram, PyTorchOpensWhatLockstepWritesAndLockstepWhatThePageSaves) {
  const TemporaryDirectory directory;
  for (const std::string name :
       {"mlp", "tied_lm", "convnet", "unet", "vit", "strided", "regions", "in_autocast"}) {
    const Halved halved(name);
    for (const bool is_evaluation : {false, true}) {
      const std::string to = directory.path(name + (is_evaluation ? ".eval.pt2" : ".train.pt2"));
      ASSERT_TRUE(write_program(golden_path(name), to, is_evaluation, halved.weights()).is_ok());
    }
  }
  const std::string command =
      torch_python() + " " + LOCKSTEP_GOLDEN_DIR + "/exported/reopen.py " + directory.path();
  const int ended = std::system(command.c_str());
  if (WIFEXITED(ended) && (WEXITSTATUS(ended) == kNoTorch || WEXITSTATUS(ended) == 127))
    GTEST_SKIP() << "no Python with torch 2.11; LOCKSTEP_TORCH_PYTHON names one";
  ASSERT_EQ(ended, 0);
  // The page's code saves both programs.
  for (const bool is_evaluation : {false, true}) {
    const auto program = read_program(directory.path(is_evaluation ? "m.eval.pt2" : "m.pt2"));
    ASSERT_TRUE(program.is_ok()) << program.status().message();
    EXPECT_EQ((*program)->samples, (SizeRange{1, 4096}));
    const bool switches = std::ranges::any_of((*program)->graph.nodes, [](const ProgramNode& node) {
      return !evaluation_switches(node).empty();
    });
    EXPECT_NE(switches, is_evaluation);
  }
}

}  // namespace
}  // namespace lockstep::exported
