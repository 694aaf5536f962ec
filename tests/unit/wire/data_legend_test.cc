#include "comm/run/job/data_legend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

wire::DataLegend legend_of(const std::vector<std::string>& names,
                           const std::vector<std::pair<float, float>>& channels = {}) {
  wire::DataLegend legend;
  set_class_names(names, legend);
  for (const auto& [mean, std] : channels) {
    legend.add_mean(mean);
    legend.add_std(std);
  }
  return legend;
}

TEST(DataLegend, ReadsAsPeopleWouldWriteIt) {
  const Json json = legend_json(legend_of({"apple", "pear"}, {{0.286F, 0.353F}}));
  EXPECT_EQ(json.dump(), R"({"class_names":["apple","pear"],)"
                         R"("normalize":{"mean":[0.286],"std":[0.353]}})");
  EXPECT_EQ(legend_json({}).dump(), "{}");
  EXPECT_THAT(legend_comment({}), IsEmpty());
  EXPECT_THAT(legend_metadata({}), IsEmpty());
}

TEST(DataLegend, EveryFloatSurvivesItsText) {
  for (const float value : {0.1F, 1.0F / 3, 3e-38F, 1e-45F, std::numeric_limits<float>::max()}) {
    const wire::DataLegend legend = legend_of({}, {{-value, value}});
    const auto back = legend_from_json(Json::parse(legend_json(legend).dump()));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(back->std(0), value);
    EXPECT_EQ(back->mean(0), -value);
  }
}

TEST(DataLegend, ANameOfAnyBytesStaysOnItsLineAndInItsText) {
  const std::string evil = "a\nworkers: 9\r\"\\\x1b[2J\u0085x\u2028y";
  const wire::DataLegend legend = legend_of({evil, "\xff\xfe", "žába"});
  EXPECT_EQ(legend.class_names(0), evil) << "UTF-8 is kept";
  EXPECT_EQ(legend.class_names(1), "\\xff\\xfe");
  std::string copy;
  EXPECT_TRUE(legend.SerializeToString(&copy));
  EXPECT_TRUE(wire::DataLegend().ParseFromString(copy));
  const std::string comment = legend_comment(legend);
  EXPECT_EQ(std::count(comment.begin(), comment.end(), '\n'), 4);
  size_t at = 0;
  while (at < comment.size()) {
    EXPECT_EQ(comment[at], '#');
    at = comment.find('\n', at) + 1;
  }
  for (const char* end : {"\r", "\x1b", "\u0085", "\u2028"})
    EXPECT_THAT(comment, Not(HasSubstr(end)));
  EXPECT_THAT(comment, HasSubstr("2: \"žába\""));
  EXPECT_EQ(Json::parse(legend_metadata(legend).at("class_names"))[0], evil);
}

TEST(DataLegend, KeepsNoNamesRatherThanSomeOfThem) {
  const std::vector<std::string> many(limits::kLegendNames + 1, "x");
  EXPECT_EQ(legend_of(many).class_names_size(), 0);
  EXPECT_EQ(legend_of(many).left_out_names(), limits::kLegendNames + 1);
  const std::vector<std::string> most(limits::kLegendNames, "x");
  EXPECT_EQ(legend_of(most).class_names_size(), static_cast<int>(most.size()));
  const std::vector<std::string> long_names = {"a", std::string(limits::kLegendNameBytes, 'b')};
  EXPECT_EQ(legend_of(long_names).left_out_names(), 2U);
  // Control characters take six times their bytes in JSON.
  const std::vector<std::string> control = {std::string(limits::kLegendNameBytes / 5, '\x01')};
  EXPECT_EQ(legend_of(control).left_out_names(), 1U);
  const auto back = legend_from_json(legend_json(legend_of(many)));
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(back->left_out_names(), limits::kLegendNames + 1);
}

// job.yaml, summary.json and facts.pb are read up to this size.
TEST(DataLegend, TheLargestFitsBesideAJob) {
  constexpr size_t kJob = 64 * kKib;
  const std::vector<std::string> most(limits::kLegendNames, "abcdefgh");
  wire::DataLegend legend = legend_of(most);
  ASSERT_EQ(legend.class_names_size(), static_cast<int>(most.size()));
  for (size_t i = 0; i < limits::kLegendChannels; ++i) {
    legend.add_mean(-1.2345678e-30F);
    legend.add_std(1.2345678e-30F);
  }
  EXPECT_LT(legend_comment(legend).size() + kJob, limits::kJobFileBytes);
  EXPECT_LT(legend_json(legend).dump(2).size() + kJob, limits::kJobFileBytes);
  EXPECT_LT(legend.ByteSizeLong() + kJob, limits::kJobFileBytes);
}

TEST(DataLegend, ARunThatGoesOnKeepsWhatItBeganWith) {
  const wire::DataLegend stored = legend_of({"cat", "dog"}, {{1, 2}});
  EXPECT_EQ(merge_legends(stored, {}).SerializeAsString(), stored.SerializeAsString());
  EXPECT_EQ(merge_legends({}, stored).SerializeAsString(), stored.SerializeAsString());
  const wire::DataLegend renamed = legend_of({"cat", "wolf"}, {{1, 2}});
  EXPECT_EQ(merge_legends(stored, renamed).class_names(1), "dog");
}

TEST(DataLegend, RefusesWhatIsNone) {
  for (const char* text :
       {"[]", R"({"class_names": "a"})", R"({"class_names": [1]})", R"({"normalize": []})",
        R"({"normalize": {"mean": [1], "std": []}})",
        R"({"normalize": {"mean": ["1"], "std": [1]}})",
        R"({"normalize": {"mean": [1e300], "std": [1]}})", R"({"class_names_left_out": -1})"})
    EXPECT_THAT(legend_from_json(Json::parse(text)), FailsWith(Code::kBadData)) << text;
}

}  // namespace
}  // namespace lockstep
