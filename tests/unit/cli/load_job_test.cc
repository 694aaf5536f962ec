#include "deploy/cli/run/load_job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

// A launcher may show each worker only its own GPU. What this process sees then says nothing about
// the other workers' GPUs, so it does not refuse comm.backend nccl and auto.
//
// Loads a job of four workers on a machine where this process sees one GPU.
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

constexpr char kKeys[] = "train: {global_batch: 8, epochs: 1}\n";

// A folder in which `python -m proj.train` works.
class ModuleJob : public ::testing::Test {
 protected:
  ModuleJob() : before_(std::filesystem::current_path()) {
    std::filesystem::create_directory(directory_.path("proj"));
    write("proj/train.py", std::string("# /// lockstep\n# ") + kKeys + "# ///\n");
    std::filesystem::current_path(directory_.path(""));
  }
  ~ModuleJob() override { std::filesystem::current_path(before_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.path(name)) << text;
    return directory_.path(name);
  }
  Result<wire::JobSpec> load(const std::vector<std::string>& words,
                             const wire::JobSpec* stored = nullptr) {
    JobRequest request;
    request.stored = stored;
    LOCKSTEP_RETURN_IF_ERROR(split_arguments(words, request));
    return load_job(request);
  }

  const TemporaryDirectory directory_;
  const std::filesystem::path before_;
};

TEST_F(ModuleJob, HasTheKeysOfItsFile) {
  const auto job = load({"script.module=proj.train", "train.epochs=2"});
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->script().path(), directory_.path("proj/train.py"));
  EXPECT_EQ(job->script().module(), "proj.train");
  EXPECT_EQ(job->train().global_batch(), 8u);
  EXPECT_EQ(job->train().epochs(), 2u);
}

TEST_F(ModuleJob, MayBeNamedByItsFileToo) {
  const auto job = load({"proj/train.py", "script.module=proj.train"});
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->script().module(), "proj.train");
  EXPECT_EQ(load({"proj/train.py"})->script().module(), "");
  EXPECT_THAT(load({"proj/train.py", "script.module=train.proj"}),
              FailsWith(Code::kUsage, Names("train.proj", "proj/train.py")));
}

TEST_F(ModuleJob, IsFoundFromTheFolderOfAJobFile) {
  std::filesystem::current_path("/");
  const std::string file = write("job.yaml", std::string("script: {module: proj.train}\n") + kKeys);
  const auto job = load({file});
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->script().path(), directory_.path("proj/train.py"));
}

TEST_F(ModuleJob, ReplacesWhatAFileSays) {
  write("other.py", "");
  const std::string file = write("job.yaml", std::string("script: {path: other.py}\n") + kKeys);
  EXPECT_EQ(load({file, "script.module=proj.train"})->script().path(),
            directory_.path("proj/train.py"));
  const std::string module =
      write("job.yaml", std::string("script: {module: proj.train}\n") + kKeys);
  EXPECT_EQ(load({module, "script.path=other.py"})->script().module(), "");
}

TEST_F(ModuleJob, StaysOnAResumeUnlessAScriptIsNamed) {
  const auto stored = load({"script.module=proj.train"});
  ASSERT_TRUE(stored.is_ok());
  EXPECT_EQ(load({"train.epochs=3"}, &*stored)->script().module(), "proj.train");
  const auto other = load({"proj/train.py"}, &*stored);
  ASSERT_TRUE(other.is_ok()) << other.status().message();
  EXPECT_EQ(other->script().module(), "");
}

TEST_F(ModuleJob, WithoutItsOptionIsNoFile) {
  EXPECT_THAT(load({"proj.train"}), FailsWith(Code::kNoInput, Names("proj.train"),
                                              Advises("lockstep run -m proj.train")));
  const auto other = load({"proj.none"});
  EXPECT_EQ(other.status().message().find("-m"), std::string::npos) << other.status().message();
}

TEST_F(ModuleJob, ThatIsNotThereIsRefused) {
  EXPECT_THAT(load({"script.module=proj.none"}),
              FailsWith(Code::kNoInput, Names("proj.none", "proj/none.py")));
  const std::string file = write("job.yaml", std::string("script: {module: proj.none}\n") + kKeys);
  EXPECT_THAT(load({file}), FailsWith(Code::kNoInput, Names("script.module", "job.yaml:1")));
}

}  // namespace
}  // namespace lockstep
