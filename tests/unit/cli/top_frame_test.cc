#include "deploy/cli/watch/top_frame.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "deploy/cli/base/text.h"

namespace lockstep {
namespace {

using nlohmann::json;

TopData training_data() {
  TopData data;
  data.status = json::parse(R"({"run": "shoes", "state": "training", "generation": 2, "step": 50,
    "total_steps": 100, "epoch": 0, "epochs": 1, "workers": 2, "loss": 0.5, "goodput": 0.9,
    "wall_seconds": 60, "message": "",
    "phases": {"data_wait": 1, "forward": 1, "backward": 2, "communication": 4},
    "members": [
      {"rank": 0, "id": 1, "pid": 11, "state": "training", "step": 50, "node": "n1",
       "own_samples_per_second": 1234.5, "phases": {"forward": 1, "communication": 3}},
      {"rank": 1, "id": 4, "pid": 14, "state": "training", "step": 50, "node": "n2"}]})");
  data.history = json::parse(R"({"loss": [3, 2, null, 1], "samples_per_second": [5, 5, 5, 5]})");
  data.events = json::parse(R"({"events": [{"time": "2026-11-21T06:00:01.000Z",
    "event": "member_died", "message": "worker of rank 1 was killed"}]})");
  return data;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(TopFrame, ShowsRanksPhasesCurvesAndEvents) {
  const std::string text = text_of(top_frame(training_data(), {100, 30, false}));
  for (const char* part : {"shoes: training, generation 2", "step 50/100", "loss       =- _",
                           "dddddd", "communication 50 %", "   0  training    n1",
                           "06:00:01  worker of rank 1 was killed", "fffffccccccccccccccc"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST(TopFrame, ManyEventsOfAKindTakeOneLine) {
  TopData data = training_data();
  for (int i = 0; i < 30; ++i)
    data.events["events"].insert(data.events["events"].begin(),
                                 json({{"event", "checkpoint_written"}, {"message", i}}));
  const std::string text = text_of(top_frame(data, {100, 30, false}));
  EXPECT_NE(text.find("29 (and 29 before)"), std::string::npos) << text;
  EXPECT_NE(text.find("was killed"), std::string::npos) << text;
}

TEST(TopFrame, FitsAnyTerminal) {
  TopData data = training_data();
  for (int i = 0; i < 500; ++i) data.status["members"].push_back(data.status["members"][0]);
  for (const size_t width : {1, 2, 20, 80, 300}) {
    for (const size_t height : {1, 2, 10, 24, 100}) {
      const auto lines = top_frame(data, {width, height, true});
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LT(columns(line), width) << line;
    }
  }
}

TEST(TopFrame, OfAnAnswerThatIsQuiteOtherIsDrawnToo) {
  for (const char* odd : {"{}", R"({"members": 3, "state": [], "run": 7, "phases": []})",
                          R"({"members": [{}, {"node": 4, "phases": {"forward": "x"}}]})"}) {
    const auto lines =
        top_frame({json::parse(odd), json::parse(odd), json::parse(odd), {}}, {80, 24});
    EXPECT_FALSE(lines.empty()) << odd;
  }
}

TEST(TopFrame, NamesDoNotCommandTheTerminal) {
  TopData data = training_data();
  data.status["run"] = "a\x1b[2Jb\u009b31mc\x7f";
  data.status["members"][0]["node"] = "n\n\r\x1b";
  const std::string text = text_of(top_frame(data, {100, 30, true}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find("\u009b"), std::string::npos);
  EXPECT_NE(text.find("a?[2Jb?31mc?"), std::string::npos) << text;
}

TEST(Sparkline, ShowsTheNewestValuesAndGaps) {
  EXPECT_EQ(sparkline(json({1, 2, 3}), 2, true), "▁█");
  EXPECT_EQ(sparkline(json({1, nullptr, 3}), 9, true), "▁ █");
  EXPECT_EQ(sparkline(json({2, 2}), 9, true), "▁▁");
  EXPECT_EQ(sparkline(json("x"), 9, true), "");
  EXPECT_EQ(sparkline(json({1, 2}), 0, true), "");
}

}  // namespace
}  // namespace lockstep
