#include "deploy/slurm/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::Not;

BatchRequest request() {
  BatchRequest request;
  request.name = "shoes";
  request.program = "/opt/lockstep";
  request.job_file = "/home/me/shoes.yaml";
  request.run_dir = "/shared/shoes";
  request.working_directory = "/home/me";
  return request;
}

std::string script(const BatchRequest& request) {
  const auto script = batch_script(request);
  EXPECT_TRUE(script.is_ok()) << script.status().message();
  return script.is_ok() ? *script : "";
}

std::string refusal(const BatchRequest& request) {
  const auto script = batch_script(request);
  EXPECT_EQ(script.status().code(), Code::kUsage);
  return script.status().message();
}

TEST(BatchScript, AsksSlurmForAnotherTurnAndForATimelySignal) {
  BatchRequest four = request();
  four.nodes = 4;
  const std::string text = script(four);
  for (const char* line :
       {"#!/bin/bash\n", "#SBATCH --nodes=4\n", "#SBATCH --requeue\n",
        "#SBATCH --open-mode=append\n", "#SBATCH --no-kill\n", "#SBATCH --signal=B:USR1@180\n",
        ("srun --no-kill --kill-on-bad-exit=0 --wait=0 \\\n  /opt/lockstep agent "
         "/home/me/shoes.yaml --run-dir /shared/shoes &\n")})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("--time")));
}

TEST(BatchScript, WordsReachTheProgramWhateverTheyHold) {
  BatchRequest odd = request();
  odd.run_dir = "/it's/$HOME";
  odd.overrides = {"optimizer={name: sgd}", "job=`id`%a"};
  EXPECT_THAT(script(odd), HasSubstr("/home/me/shoes.yaml 'optimizer={name: sgd}' 'job=`id`%a' "
                                     "--run-dir '/it'\\''s/$HOME' &\n"));
  odd.overrides = {"seed=1\nrm -rf /"};
  EXPECT_THAT(refusal(odd), HasSubstr("line break"));
}

TEST(BatchScript, WhatIsForSlurmStandsBehindItsOwnLinesAndIsStronger) {
  BatchRequest more = request();
  more.slurm_words = {"--account=x", "--comment", "a \"b\" # c", "--no-requeue"};
  const std::string text = script(more);
  EXPECT_THAT(text, HasSubstr("#SBATCH --account=x\n#SBATCH --comment \"a \\\"b\\\" # c\"\n"
                              "#SBATCH --no-requeue\n"));
  EXPECT_LT(text.find("--requeue"), text.find("--no-requeue"));
  more.slurm_words = {"--comment=a\n#SBATCH --uid=0"};
  EXPECT_THAT(refusal(more), HasSubstr("line break"));
}

TEST(BatchScript, EachRunOfAnArrayHasADirectoryAndANumber) {
  BatchRequest array = request();
  array.array = "0-3";
  array.overrides = {"seed=%a"};
  EXPECT_THAT(script(array), HasSubstr("'seed='\"$SLURM_ARRAY_TASK_ID\"'' --run-dir "
                                       "'/shared/shoes/'\"$SLURM_ARRAY_TASK_ID\"'' &\n"));
  array.run_dir = "/shared/seed-%a/x";
  EXPECT_THAT(script(array),
              HasSubstr("--run-dir '/shared/seed-'\"$SLURM_ARRAY_TASK_ID\"'/x' &\n"));
  EXPECT_THAT(script(array), HasSubstr("job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\n"));
  EXPECT_THAT(script(array), Not(HasSubstr("requeue \"$SLURM_JOB_ID"))) << "all tasks, for one";
  array.array = "";
  EXPECT_THAT(refusal(array), HasSubstr("there is no --array"));
}

TEST(BatchScript, AJobThatWouldBeStoppedAsSoonAsItHasBegunIsRefused) {
  BatchRequest brief = request();
  brief.time = "3";
  EXPECT_THAT(refusal(brief), Says("requeue"));
  brief.stop_before_s = 60;
  EXPECT_THAT(script(brief), HasSubstr("--time=3\n"));
  EXPECT_THAT(script(brief), HasSubstr("USR1@60\n"));
  brief.time = "an hour";
  EXPECT_THAT(refusal(brief), Names("--time", "\"an hour\""));
}

TEST(BatchScript, TimesAreReadAsSlurmReadsThem) {
  EXPECT_EQ(slurm_seconds("90"), 5400u);
  EXPECT_EQ(slurm_seconds("90:30"), 5430u);
  EXPECT_EQ(slurm_seconds("2:00:01"), 7201u);
  EXPECT_EQ(slurm_seconds("1-1"), 90'000u);
  EXPECT_EQ(slurm_seconds("1-0:30"), 88'200u);
  EXPECT_EQ(slurm_seconds("1-0:30:05"), 88'205u);
  for (const char* text : {"", "x", "1:", ":1", "1-", "1:2:3:4", "1:2-3", "-1", "1 "})
    EXPECT_FALSE(slurm_seconds(text).has_value()) << text;
}

}  // namespace
}  // namespace lockstep
