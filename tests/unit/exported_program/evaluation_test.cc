// Tests which arguments and nodes evaluation changes.
#include "worker/model/exported_program/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/exported_program/golden_program.h"

namespace lockstep::exported {
namespace {

using testing::golden_path;

struct Changes {
  size_t switches = 0;
  size_t counters = 0;
};

Changes changes_of(const std::string& name) {
  Changes changes;
  const auto program = read_program(golden_path(name));
  EXPECT_TRUE(program.is_ok());
  if (!program.is_ok()) return changes;
  const ProgramGraph& graph = (*program)->graph;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    changes.switches += evaluation_switches(graph.nodes[i]).size();
    changes.counters += is_step_counter(**program, i) ? 1 : 0;
  }
  return changes;
}

TEST(EvaluationSwitches, AreThoseOfDropoutAttentionAndNorms) {
  EXPECT_EQ(changes_of("mlp").switches, 0u);
  EXPECT_EQ(changes_of("convnet").switches, 4u);  // three batch norms and a dropout
  EXPECT_EQ(changes_of("convnet").counters, 3u);
  EXPECT_EQ(changes_of("tied_lm").switches, 1u);
  EXPECT_EQ(changes_of("stochastic_depth").switches, 0u);
  EXPECT_EQ(changes_of("stochastic_depth.eval").switches, 0u);
}

TEST(EvaluationSwitches, LeaveANormWithoutStatisticsAsItIs) {
  ProgramNode node;
  node.target = "torch.ops.aten.instance_norm.default";
  node.arguments = {{"input", ValueRef{0}, false},
                    {"running_mean", std::monostate(), false},
                    {"use_input_stats", true, false}};
  EXPECT_TRUE(evaluation_switches(node).empty());
  node.arguments[1].value = ValueRef{1};
  const auto switches = evaluation_switches(node);
  ASSERT_EQ(switches.size(), 1u);
  EXPECT_EQ(switches[0].argument, 2u);
  EXPECT_FALSE(std::get<bool>(switches[0].value));
}

TEST(EvaluationSwitches, CountOnlyWhatIsNotUsed) {
  // counted.pt2 adds 0.5 to an int64 buffer and uses the sum.
  EXPECT_EQ(changes_of("counted").counters, 0u);
}

}  // namespace
}  // namespace lockstep::exported
