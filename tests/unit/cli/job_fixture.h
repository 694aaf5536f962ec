// A small job and what becomes of it, for the tests of job files.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/cli/job/job_resolve.h"

namespace lockstep::testing {

inline constexpr char kMinimal[] =
    "job: tiny\nmodel: {name: cnn}\ndata: {train: {path: d}}\n"
    "train: {global_batch: 128, epochs: 2}\noptimizer: adamw\n";

inline JobContext context() {
  JobContext context;
  context.file_directory = "/jobs";
  context.working_directory = "/home/me";
  context.cores = 2;
  context.has_eval_files = [](auto&, const std::string& directory) {
    return directory == "/jobs/d";
  };
  return context;
}

inline JobValues values_of(const std::string& yaml, const std::vector<std::string>& overrides = {},
                           const std::vector<std::string>& environment = {}) {
  auto values = parse_job_yaml(yaml, "job.yaml");
  EXPECT_TRUE(values.is_ok()) << values.status().message();
  overlay(*values, *parse_job_environment(environment));
  overlay(*values, *parse_job_overrides(overrides));
  return *values;
}

inline wire::JobSpec resolved(const std::vector<std::string>& overrides = {},
                              const std::vector<std::string>& environment = {}) {
  const auto job = resolve_job(values_of(kMinimal, overrides, environment), context());
  EXPECT_TRUE(job.is_ok()) << job.status().message();
  return *job;
}

inline std::string error_of(const std::vector<std::string>& overrides, Code code = Code::kUsage) {
  const auto job = resolve_job(values_of(kMinimal, overrides), context());
  EXPECT_EQ(job.status().code(), code);
  return job.status().message();
}

}  // namespace lockstep::testing
