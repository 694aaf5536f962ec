#include "deploy/cli/job/job_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/keys/job_list.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

std::string message(const std::string& key) {
  return unknown_job_key(key).message();
}

Status set(const char* key, const std::string& value) {
  wire::JobSpec job;
  return set_job_value(*find_job_key(key), {value}, job);
}

TEST(JobHints, AnUnknownKeyNamesTheNearestKnownOne) {
  EXPECT_EQ(message("train.globl_batch"),
            "unknown key train.globl_batch; did you mean train.global_batch?");
  EXPECT_THAT(message("sed"), Suggests("seed"));
}

TEST(JobHints, ARightWordInTheWrongPlaceIsFound) {
  EXPECT_THAT(message("global_batch"), Suggests("train.global_batch"));
  EXPECT_THAT(message("epochs"), Suggests("train.epochs"));
  EXPECT_THAT(message("optimizer.epochs"), Suggests("train.epochs"));
  EXPECT_THAT(message("lr"), Suggests("optimizer.lr"));
  EXPECT_THAT(message("train.lr"), Suggests("optimizer.lr"));
  EXPECT_THAT(message("model.lr"), Suggests("optimizer.lr"));
  EXPECT_THAT(message("train.workers"), Suggests("cluster.workers"));
  EXPECT_THAT(message("optimizer.momentun"), Suggests("optimizer.momentum"));
}

TEST(JobHints, AWordOfAnotherProgramNamesTheKeyHere) {
  for (const char* place : {"", "train.", "data.", "optimizer."}) {
    const std::string at = place;
    EXPECT_THAT(message(at + "batch_size"), Suggests("train.global_batch"));
    EXPECT_THAT(message(at + "gradient_accumulation_steps"), Suggests("train.accumulate"));
    EXPECT_THAT(message(at + "learning_rate"), Suggests("optimizer.lr"));
    EXPECT_THAT(message(at + "max_grad_norm"), Suggests("optimizer.clip_norm"));
    EXPECT_THAT(message(at + "num_workers"), Suggests("data.threads"));
  }
  EXPECT_THAT(message("batchSize"), Suggests("train.global_batch"));
  EXPECT_THAT(message("dataset"), Suggests("data.train.path"));
  EXPECT_THAT(message("optimizer.type"), Suggests("optimizer.name"));
}

TEST(JobHints, ALongerOrShorterWordForAGroupIsFound) {
  EXPECT_THAT(message("training"), Suggests("train"));
  EXPECT_THAT(message("optim"), Suggests("optimizer"));
  EXPECT_THAT(message("scheduler"), Suggests("schedule"));
}

TEST(JobHints, AKeyThatResemblesNothingPointsToTheList) {
  EXPECT_THAT(message("zzzzzzzzzzzzzzzzzzzzz"), Advises("--help-job"));
}

TEST(JobHints, AWordOfAnotherProgramNamesTheValueHere) {
  EXPECT_THAT(set("optimizer.name", "adamW").message(), Suggests("adamw"));
  EXPECT_THAT(set("cluster.device", "gpu").message(), Suggests("cuda"));
  EXPECT_THAT(set("model.name", "GPT-2").message(), Suggests("gpt2"));
  EXPECT_THAT(set("train.precision", "float16").message(), Suggests("fp16"));
  EXPECT_THAT(set("schedule.name", "CosineAnnealingLR").message(), Suggests("cosine"));
}

TEST(JobHints, ADeviceThatLockstepDoesNotHaveIsRefusedByName) {
  for (const char* device : {"tpu", "xla", "TPU"})
    EXPECT_THAT(set("cluster.device", device),
                FailsWith(Code::kUsage, Names("cluster.device"), Names(device), Says("XLA"),
                          Advises("cuda"), Advises("cpu")));
  EXPECT_THAT(set("cluster.device", "mps"),
              FailsWith(Code::kUsage, Names("mps"), Says("NVIDIA"), Advises("cpu")));
  EXPECT_THAT(set("optimizer.name", "lion"),
              FailsWith(Code::kUsage, Names("lion"), Advises("adamw")));
  EXPECT_THAT(set("model.name", "vit"),
              FailsWith(Code::kUsage, Names("vit"), Advises("torch.export.save", "exported")));
}

TEST(JobHints, WordsOfOtherProgramsAreUniqueAndNoneOfOurs) {
  std::set<std::string_view> seen;
  for (const JobKey& row : job_keys()) {
    for (const std::string_view word : row.elsewhere) {
      if (list_of(row).empty() && row.key.find("eval") == std::string_view::npos) {
        EXPECT_TRUE(seen.insert(word).second) << word << " stands for two keys";
      }
      EXPECT_EQ(find_job_key(word), nullptr) << word;
    }
    for (const ValueElsewhere& other : row.values_elsewhere) {
      EXPECT_NE(other.instead.empty(), other.advice.empty()) << row.key;
      if (!other.instead.empty()) {
        EXPECT_THAT(row.names, ::testing::Contains(other.instead));
      }
      for (const std::string_view word : other.words)
        EXPECT_THAT(row.names, ::testing::Not(::testing::Contains(word))) << row.key;
    }
  }
}

}  // namespace
}  // namespace lockstep
