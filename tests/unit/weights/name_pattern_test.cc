#include "worker/model/weights/name_pattern.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

TEST(NamePattern, MatchesWholeNamesAcrossDots) {
  EXPECT_TRUE(matches_pattern("fc.*", "fc.weight"));
  EXPECT_FALSE(matches_pattern("fc.*", "layer1.fc.weight"));
  EXPECT_TRUE(matches_pattern("layer[12].*", "layer2.0.conv1.weight"));
  EXPECT_FALSE(matches_pattern("layer[12].*", "layer3.0.conv1.weight"));
  EXPECT_TRUE(matches_pattern("*.bias", "h.0.attn.c_attn.bias"));
  EXPECT_FALSE(matches_pattern("*.bias", "h.0.attn.c_attn.bias2"));
}

TEST(NamePattern, OneThatMatchesNothingNamesTheNearest) {
  const std::vector<std::string> names = {"conv1.weight", "fc.weight", "fc.bias"};
  EXPECT_TRUE(check_pattern("key", "fc.*", names).is_ok());
  const Status wrong = check_pattern("optimizer.groups.0.match", "fc.wieght", names);
  EXPECT_THAT(wrong, FailsWith(Code::kUsage, Names("optimizer.groups.0.match", "fc.wieght")));
  EXPECT_THAT(wrong.message(), Suggests("fc.weight"));
  EXPECT_THAT(check_pattern("key", "head.classifier.*", names),
              FailsWith(Code::kUsage, Names("head.classifier.*", "conv1.weight", "fc.bias")));
}

}  // namespace
}  // namespace lockstep
