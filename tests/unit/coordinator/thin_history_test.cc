#include "coordinator/journal/thin_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "coordinator/journal/history.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::coordinator {
namespace {

class Thin : public ::testing::Test {
 protected:
  static StepEntry at(Step step, double shift = 0) {
    StepEntry entry;
    entry.step = step;
    entry.loss = static_cast<double>(step % 10) + shift;
    entry.lr = 0.5;
    entry.samples = 8;
    entry.skipped = step % 50 == 0;
    return entry;
  }
  std::unique_ptr<History> open(Step keep) {
    auto history = History::open(path_, keep);
    EXPECT_TRUE(history.is_ok()) << history.status().message();
    return std::move(history).value();
  }
  static void train(History& history, Step to, double shift = 0) {
    while (history.lines() < to) {
      history.append(at(history.lines(), shift));
      if (history.lines() % 7 != 0) continue;
      EXPECT_TRUE(history.flush().is_ok());
    }
    EXPECT_TRUE(history.flush().is_ok());
  }
  std::string thin() const { return slurp(thin_path(path_)); }
  // As made from the whole history.
  std::string anew() const {
    const std::string kept = thin();
    std::filesystem::remove(thin_path(path_));
    EXPECT_TRUE(History::open(path_, ~Step{0} >> 1).is_ok());
    std::string made = thin();
    write_file(thin_path(path_), kept);
    return made;
  }

  TemporaryDirectory temporary_;
  std::string path_ = temporary_.path() + "/history.jsonl";
};

TEST_F(Thin, HasALineForEachWholeHundredOfSteps) {
  train(*open(0), 250);
  const auto lines = thin();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["step"], 100);
  EXPECT_EQ(first["steps"], 100);
  EXPECT_EQ(first["loss"], 4.5);
  EXPECT_EQ(first["loss_min"], 0);
  EXPECT_EQ(first["loss_max"], 9);
  EXPECT_EQ(first["lr"], 0.5);
  EXPECT_EQ(first["samples"], 800);
  EXPECT_EQ(first["skipped"], 2);
  const std::string whole = slurp(path_);
  EXPECT_TRUE(whole.substr(first["bytes"].get<size_t>()).starts_with("{\"step\":101,"));
}

TEST_F(Thin, WithoutANumberThereIsNoMeanAndMetricsHaveTheirs) {
  const auto history = open(0);
  for (Step step = 0; step < 100; ++step) {
    StepEntry entry = at(step);
    entry.loss = std::nan("");
    entry.metrics = {{"iou/mean", step < 50 ? 1.0 : 0.0}};
    history->append(entry);
  }
  ASSERT_TRUE(history->flush().is_ok());
  const auto line = nlohmann::json::parse(thin());
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["loss_min"].is_null());
  EXPECT_EQ(line["metrics"]["iou/mean"], 0.5);
}

TEST_F(Thin, FollowsACutOfTheHistory) {
  train(*open(0), 1'000);
  const auto history = open(420);
  EXPECT_EQ(thin(), anew());
  train(*history, 1'000, 0.25);
  EXPECT_EQ(thin(), anew());
  ASSERT_TRUE(history->cut(150).is_ok());
  EXPECT_EQ(thin(), anew());
  train(*history, 1'000, 0.5);
  EXPECT_EQ(thin(), anew());
}

// Every length that a kill may leave, of one file while the other is whole.
TEST_F(Thin, AKillBetweenTheTwoFilesLeavesWhatTheNextTermMends) {
  train(*open(0), 450);
  const std::string whole = slurp(path_);
  const std::string thinned = thin();
  for (size_t length = 0; length <= thinned.size(); length += 13) {
    write_file(thin_path(path_), thinned.substr(0, length));
    (void)open(450);
    EXPECT_EQ(thin(), thinned) << "thinned up to " << length;
  }
  for (size_t length = 0; length <= whole.size(); length += 997) {
    write_file(path_, whole.substr(0, length));
    write_file(thin_path(path_), thinned);
    const auto history = open(450);
    EXPECT_EQ(thin(), anew()) << "history up to " << length;
    train(*history, 450);
    EXPECT_EQ(thin(), thinned) << "history up to " << length;
  }
}

TEST_F(Thin, IsMadeAnewWhereItIsDamagedOrMissing) {
  train(*open(0), 450);
  const std::string thinned = thin();
  for (size_t at = 0; at < thinned.size(); at += 11) {
    std::string damaged = thinned;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file(thin_path(path_), damaged);
    (void)open(450);
    EXPECT_EQ(thin(), thinned) << "byte " << at;
  }
  const size_t second = thinned.find('\n') + 1;
  for (const std::string& other : {std::string(), thinned.substr(second), thinned + thinned,
                                   thinned.substr(0, second) + thinned}) {
    write_file(thin_path(path_), other);
    (void)open(450);
    EXPECT_EQ(thin(), thinned);
  }
}

TEST_F(Thin, OfAnotherHistoryItIsMadeAnew) {
  const std::string other = temporary_.path() + "/other";
  std::filesystem::create_directory(other);
  {
    const auto history = History::open(other + "/history.jsonl", 0).value();
    for (Step step = 0; step < 450; ++step) {
      StepEntry entry = at(step);
      entry.loss = 0.123456;
      history->append(entry);
    }
    ASSERT_TRUE(history->flush().is_ok());
  }
  train(*open(0), 450);
  const std::string thinned = thin();
  std::filesystem::copy_file(thin_path(other + "/history.jsonl"), thin_path(path_),
                             std::filesystem::copy_options::overwrite_existing);
  (void)open(450);
  EXPECT_EQ(thin(), thinned);
}

TEST_F(Thin, DeletedUnderTheRunItComesBackWithTheNextLine) {
  const auto history = open(0);
  train(*history, 250);
  std::filesystem::remove(thin_path(path_));
  train(*history, 299);
  EXPECT_FALSE(std::filesystem::exists(thin_path(path_)));
  train(*history, 350);
  EXPECT_EQ(thin(), anew());
}

}  // namespace
}  // namespace lockstep::coordinator
