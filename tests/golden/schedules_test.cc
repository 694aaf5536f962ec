// Learning rates against PyTorch's schedulers (schedules.py).
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "worker/optim/schedule.h"

namespace lockstep {
namespace {

TEST(GoldenSchedules, EveryScheduleFollowsPyTorchs) {
  std::ifstream in(std::string(LOCKSTEP_GOLDEN_DIR) + "/schedules.json");
  const auto golden = nlohmann::json::parse(in);
  ASSERT_GE(golden["runs"].size(), 5u);
  for (const auto& run : golden["runs"]) {
    const std::string text = run["schedule"].dump();
    SCOPED_TRACE(text);
    wire::ScheduleSpec spec;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text, &spec).ok());
    const auto schedule = Schedule::create(spec, golden["base_lr"]);
    ASSERT_TRUE(schedule.is_ok()) << schedule.status().message();
    const std::vector<double> expected = run["lr"];
    for (Step step = 0; step < expected.size(); ++step)
      EXPECT_NEAR(schedule->lr(step, expected.size()), expected[step], 1e-9 * expected[step])
          << "step " << step;
  }
}

}  // namespace
}  // namespace lockstep
