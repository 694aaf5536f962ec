#include "comm/base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Status(Code::kUsage, "odd");
  return n / 2;
}

Result<int> quarter(int n) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int h, half(n));
  return half(h);
}

Status all_even(int a, int b) {
  LOCKSTEP_RETURN_IF_ERROR(half(a).status());
  return half(b).status().with_context("second");
}

TEST(Status, AnErrorTravelsUpUnchanged) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).status(), Status(Code::kUsage, "odd"));
  EXPECT_EQ(all_even(1, 2), Status(Code::kUsage, "odd"));
}

TEST(Status, ContextComesBeforeTheMessageAndKeepsTheCode) {
  EXPECT_EQ(all_even(2, 3), Status(Code::kUsage, "second: odd"));
  EXPECT_TRUE(all_even(2, 2).is_ok());
}

TEST(Status, EveryCodeHasTheExitCodeOfTheDesign) {
  EXPECT_EQ(exit_code(Status::ok()), 0);
  EXPECT_EQ(exit_code({Code::kUsage, ""}), 64);
  EXPECT_EQ(exit_code({Code::kBadData, ""}), 65);
  EXPECT_EQ(exit_code({Code::kNoInput, ""}), 66);
  EXPECT_EQ(exit_code({Code::kInternal, ""}), 70);
  EXPECT_EQ(exit_code({Code::kAborted, ""}), 70);
  EXPECT_EQ(exit_code({Code::kCheckpointed, ""}), 75);
  EXPECT_EQ(exit_code({Code::kConfig, ""}), 78);
}

TEST(Result, HoldsAValueThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> made = std::make_unique<int>(7);
  std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 7);
}

}  // namespace
}  // namespace lockstep
