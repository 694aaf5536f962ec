// A launcher may show each of its workers one GPU alone: what this process sees says nothing of the
// others' GPUs then, and so comm.backend nccl and auto are not refused by it.
#include "deploy/cli/run/load_job.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

// Of four workers on a machine where this process sees one GPU.
Result<wire::JobSpec> load_with(const std::string& backend, uint32_t launched_workers) {
  const TemporaryDirectory directory;
  JobRequest request;
  request.file = directory.path("job.yaml");
  std::ofstream(request.file) << "job: a\nmodel: {name: mlp}\n";
  request.overrides = {"data.train.path=/data/train",
                       "data.train.format=idx",
                       "train.global_batch=64",
                       "train.epochs=1",
                       "train.slots=4",
                       "cluster.device=cuda",
                       "comm.backend=" + backend};
  request.launched_workers = launched_workers;
  request.launcher = "srun";
  if (launched_workers == 0) request.workers = "4";
  request.gpus = 1;
  return load_job(request);
}

TEST(LoadJob, TakesNcclWhereALauncherShowsEachWorkerOneGpu) {
  for (const char* backend : {"nccl", "auto"}) {
    const auto job = load_with(backend, 4);
    ASSERT_TRUE(job.is_ok()) << job.status().message();
    EXPECT_EQ(job->cluster().workers(), 4u);
    EXPECT_EQ(job->comm().backend(), backend);
  }
}

TEST(LoadJob, CountsTheGpusOfThisMachineWhereNoLauncherDealsThemOut) {
  EXPECT_THAT(load_with("nccl", 0), FailsWith(Code::kConfig, Names("comm.backend", "nccl"),
                                              Advises("take host or auto")));
  const auto job = load_with("auto", 0);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->comm().backend(), "host");
}

}  // namespace
}  // namespace lockstep
