#include "comm/base/text/nearest.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr std::string_view kWords[] = {"mlp", "cnn", "constant", "onecycle"};

TEST(Nearest, DistanceCountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("global_batch", "globl_batch"), 1u);
  EXPECT_EQ(edit_distance("sedd", "seed"), 1u);
  EXPECT_EQ(edit_distance("sede", "seed"), 1u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

TEST(Nearest, AMistypedWordFindsTheRightOne) {
  EXPECT_EQ(nearest_word("cnnn", kWords), "cnn");
  EXPECT_EQ(nearest_word("one_cycle", kWords), "onecycle");
}

TEST(Nearest, OtherSpellingsOfAWordAreNearerThanOtherWords) {
  constexpr std::string_view kNames[] = {"adam", "adamw", "resnet50", "resnet18", "npy_nhwc"};
  EXPECT_EQ(nearest_word("adamW", kNames), "adamw");
  EXPECT_EQ(nearest_word("AdamW", kNames), "adamw");
  EXPECT_EQ(nearest_word("ADAM", kNames), "adam");
  EXPECT_EQ(nearest_word("ResNet-18", kNames), "resnet18");
  EXPECT_EQ(nearest_word("npy-nhwc", kNames), "npy_nhwc");
  EXPECT_EQ(nearest_word("--", kNames), "");
}

TEST(Nearest, AWordThatResemblesNothingGetsNoSuggestion) {
  EXPECT_EQ(nearest_word("transformer", kWords), "");
  EXPECT_EQ(nearest_word("xy", kWords), "");
  EXPECT_EQ(did_you_mean("transformer", kWords), "");
}

TEST(Nearest, NamesAreJoinedAsASentence) {
  EXPECT_EQ(join_names(kWords), "mlp, cnn, constant or onecycle");
}

}  // namespace
}  // namespace lockstep
