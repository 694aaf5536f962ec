#include "deploy/cli/job/job_script.h"

#include <gtest/gtest.h>

#include "comm/run/job/predictions.h"
#include "deploy/cli/job/job_print.h"
#include "deploy/cli/script/script_keys.h"
#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using testing::context;

constexpr char kTrainPy[] =
    "# /// lockstep\n# train: {global_batch: 128, epochs: 2}\n# ///\nimport lockstep\n";

Result<wire::JobSpec> script_job(const std::vector<std::string>& overrides = {},
                                 const std::string& script = kTrainPy,
                                 const JobContext& where = context()) {
  auto values = parse_job_file(script, "train.py", "/jobs/train.py");
  if (!values.is_ok()) return values.status();
  const auto given = parse_job_overrides(overrides);
  if (!given.is_ok()) return given.status();
  overlay(*values, *given);
  return resolve_job(*values, where);
}

TEST(JobScript, IsMadeOfTheBlockAlone) {
  const auto job = script_job();
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_TRUE(is_script(job->model()));
  EXPECT_EQ(job->script().path(), "/jobs/train.py");
  EXPECT_EQ(job->train().global_batch(), 128u);
  EXPECT_EQ(job->data().train().path(), "");
  EXPECT_EQ(job->data().transforms_size(), 0);
  EXPECT_EQ(job->comm().backend(), "host");
}

TEST(JobScript, WaitsLongerForItsWorkersThanOtherJobs) {
  const auto job = script_job();
  ASSERT_TRUE(job.is_ok());
  EXPECT_EQ(job->cluster().start_timeout_s(), 600u);
  EXPECT_EQ(job->cluster().leave_s(), 600u);
  EXPECT_EQ(script_job({"cluster.leave_s=5"})->cluster().leave_s(), 5u);
  EXPECT_EQ(testing::resolved().cluster().start_timeout_s(), 120u);
  EXPECT_EQ(testing::resolved().cluster().leave_s(), 10u);
}

TEST(JobScript, ComputesOnTheCpuWhereThereAreGpus) {
  JobContext where = context();
  where.count_gpus = [] { return Result<uint32_t>(4); };
  const auto job = script_job({}, kTrainPy, where);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->cluster().device(), "cpu");
  EXPECT_EQ(job->comm().backend(), "host");
}

TEST(JobScript, KeepsItsWordsInTheirOrder) {
  const auto job = script_job({"script.args=[--a, \"1\", --b, \"1\", \"\", \"no\"]"});
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  const auto& args = job->script().args();
  EXPECT_EQ(std::vector<std::string>(args.begin(), args.end()),
            (std::vector<std::string>{"--a", "1", "--b", "1", "", "no"}));
}

TEST(JobScript, IsNamedByAJobFile) {
  const auto job = resolve_job(
      testing::values_of("script: {path: s/train.py}\ntrain: {global_batch: 8, max_steps: 3}\n"),
      context());
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->model().name(), "script");
  EXPECT_EQ(job->script().path(), "/jobs/s/train.py");
}

TEST(JobScript, IsPrintedWithoutTheKeysThatItSaysItself) {
  const auto job = script_job({"script.args=[--lr, \"0.1\"]", "cluster.workers=2"});
  ASSERT_TRUE(job.is_ok());
  const std::string text = job_yaml(*job);
  for (const char* key : {"optimizer", "schedule", "data:", "precision", "dropout", "loss:"})
    EXPECT_EQ(text.find(key), std::string::npos) << key << "\n" << text;
  const auto again = resolve_job(*parse_job_yaml(text, "job.yaml"), context());
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ(again->SerializeAsString(), job->SerializeAsString());
}

TEST(JobScript, RefusesWhatTheScriptSays) {
  const std::pair<const char*, const char*> kCases[] = {
      {"model.dropout=0.1", "makes its model itself"},
      {"model.init=w.safetensors", "load_state_dict"},
      {"optimizer.lr=0.001", "torch.optim"},
      {"optimizer.clip_norm=1", "clip_grad_norm_"},
      {"optimizer.groups=[{match: a, lr: 2}]", "torch.optim"},
      {"schedule=cosine", "lr_scheduler"},
      {"data.holdout=0.1", "data.train.path"},
      {"model.block=8", "makes its model itself"},
      {"data.mix=[{path: d}]", "run.batches"},
      {"data.transforms=[]", "run.batches"},
      {"train.precision=bf16", "torch.autocast"},
      {"train.loss_scale=2", "GradScaler"},
      {"train.loss=mse", "computes its loss itself"},
      {"train.label_smoothing=0.1", "computes its loss itself"},
      {"train.ema=0.9", "AveragedModel"},
      {"train.prune.sparsity=0.5", "torch.nn.utils.prune"},
      {"train.graph=off", "torch.compile"},
      {"train.global_batch=auto", "take a number"},
      {"comm.backend=mpi", "take host"},
  };
  for (const auto& [given, advice] : kCases) {
    const std::string key = std::string(given).substr(0, std::string(given).find('='));
    EXPECT_THAT(script_job({given}), FailsWith(Code::kUsage,
                                               Names(key == "schedule" ? "schedule.name" : key,
                                                     "command line", "script"),
                                               Advises(advice)))
        << given;
  }
}

TEST(JobScript, ComputesOnAGpuWhereItsJobSaysSoAndSumsOverTheHost) {
  JobContext with_gpus = context();
  with_gpus.count_gpus = [] { return Result<uint32_t>(3); };
  const auto job = script_job({"cluster.device=cuda", "comm.backend=auto"}, kTrainPy, with_gpus);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->cluster().workers(), 3u) << "a worker for each";
  EXPECT_EQ(job->comm().backend(), "host");
  EXPECT_EQ(script_job({}, kTrainPy, with_gpus)->cluster().device(), "cpu");
  EXPECT_THAT(script_job({"cluster.device=cuda"}),
              FailsWith(Code::kConfig, Names("cluster.device is cuda"), Advises("cpu")));
}

TEST(JobScript, SumsBetweenGpusWhereItsJobSaysSo) {
  JobContext with_gpus = context();
  with_gpus.count_gpus = [] { return Result<uint32_t>(3); };
  const auto job = script_job({"cluster.device=cuda", "comm.backend=nccl"}, kTrainPy, with_gpus);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->comm().backend(), "nccl");
  EXPECT_EQ(job->comm().bucket_mb(), 32u);
  EXPECT_THAT(script_job({"comm.backend=nccl"}, kTrainPy, with_gpus),
              FailsWith(Code::kConfig, Names("comm.backend is nccl", "cluster.device is cpu"),
                        Advises("take host")));
}

TEST(JobScript, MayNameItsData) {
  const auto job = script_job({"data.train.path=d", "data.holdout=0.1", "data.threads=2"});
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->data().train().path(), "/home/me/d");
  EXPECT_EQ(job->data().eval().path(), "/home/me/d") << "what is held out";
  EXPECT_THAT(job->data().transforms(), ::testing::ElementsAre("normalize"));
  const auto again = resolve_job(*parse_job_yaml(job_yaml(*job), "job.yaml"), context());
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ(again->SerializeAsString(), job->SerializeAsString());
}

TEST(JobScript, MayNameItsEvaluationData) {
  const auto job = script_job({"data.train.path=d", "data.eval.path=e", "data.eval.fraction=0.5"});
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->data().eval().path(), "/home/me/e");
  JobContext where = context();
  where.has_eval_files = [](const wire::DataSpec&, const std::string&) { return true; };
  const auto found = resolve_job(*parse_job_overrides(std::vector<std::string>{
                                     "script.path=train.py", "train.global_batch=8",
                                     "train.slots=2", "train.epochs=1", "data.train.path=d"}),
                                 where);
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_EQ(found->data().eval().path(), found->data().train().path());
}

TEST(JobScript, CutsTokensAsItsBlockSays) {
  const auto job = script_job({"data.train.path=d", "data.train.format=tokens", "model.block=8",
                               "data.documents=pack", "data.document_end=7"});
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->model().block(), 8u);
  EXPECT_EQ(job->data().transforms_size(), 0);
  EXPECT_THAT(script_job({"data.train.path=d", "data.train.format=tokens"}),
              FailsWith(Code::kUsage, Names("model.block")));
  EXPECT_THAT(script_job({"data.train.path=d", "data.train.format=idx", "model.block=8"}),
              FailsWith(Code::kUsage, Names("model.block", "no tokens")));
}

TEST(JobScript, RefusesWhatItCannotDoWithItsData) {
  EXPECT_THAT(
      script_job({"data.eval.path=e"}),
      FailsWith(Code::kUsage, Names("data.eval.path", "script"), Advises("data.train.path")));
  EXPECT_THAT(script_job({"data.train.path=d", "data.transforms=[mixup=0.2]"}),
              FailsWith(Code::kUsage, Names("data.transforms", "mixup"), Advises("in the script")));
  EXPECT_THAT(script_job({"data.train.path=d", "data.train.format=idx",
                          "data.mix=[{path: e, format: tokens}]"}),
              FailsWith(Code::kUsage, Names("data.mix.0.format", "both tokens")));
}

TEST(JobScript, TakesTheKeysOfTheRun) {
  for (const char* given : {"train.accumulate=2", "train.loss_spike=10", "train.trace=1:2",
                            "train.eval_batch=7", "eval.every_steps=5", "train.on_bad_samples=skip",
                            "comm.numerics=fast", "seed=3", "checkpoint.every_steps=7",
                            "cluster.malloc=system", "comm.backend=auto", "cluster.device=auto",
                            "checkpoint.best=accuracy", "train.patience=3", "model.name=script"}) {
    const auto job = script_job({given, "cluster.workers=1"});
    EXPECT_TRUE(job.is_ok()) << given << ": " << job.status().message();
  }
}

TEST(JobScript, NamesTheLineOfTheScript) {
  EXPECT_THAT(
      script_job({}, "import torch\n# /// lockstep\n# train: {epochs: 2}\n# seed: x\n# ///\n"),
      FailsWith(Code::kUsage, Names("train.py:4", "seed")));
  EXPECT_THAT(script_job({}, "# /// lockstep\n# optimizer: {lr: 1}\n# ///\n"),
              FailsWith(Code::kUsage, Names("optimizer.lr", "train.py:2")));
  EXPECT_THAT(script_job({}, "# /// lockstep\n# train: {epochs 2\n# ///\n"),
              FailsWith(Code::kUsage, Names("train.py:", "not valid YAML")));
}

TEST(JobScript, SaysWhereItsKeysStandIfOneIsMissing) {
  EXPECT_THAT(
      script_job({}, "import torch\n"),
      FailsWith(Code::kUsage, Names("train.global_batch is missing"), Advises("# /// lockstep")));
}

TEST(JobScript, RefusesABlockThatNamesAnotherScript) {
  EXPECT_THAT(
      script_job({}, "# /// lockstep\n# script: {path: other.py}\n# ///\n"),
      FailsWith(Code::kUsage, Names("script.path", "train.py:2"), Advises("leave the key out")));
}

TEST(JobScript, RefusesAModelBesideAScript) {
  EXPECT_THAT(script_job({"model.name=mlp", "data.train.path=d"}),
              FailsWith(Code::kUsage, Names("script.path", "model.name is mlp"),
                        Advises("leave one of the two out")));
}

TEST(JobScript, MayBeAModuleOfAPackage) {
  const std::string yaml =
      "script: {path: s/proj/train.py, module: proj.train}\n"
      "train: {global_batch: 8, max_steps: 3}\n";
  const auto job = resolve_job(testing::values_of(yaml), context());
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->script().module(), "proj.train");
  const auto again = resolve_job(*parse_job_yaml(job_yaml(*job), "job.yaml"), context());
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ(again->SerializeAsString(), job->SerializeAsString());
  EXPECT_THAT(resolve_job(testing::values_of(yaml, {"script.module=train.proj"}), context()),
              FailsWith(Code::kUsage, Names("script.module is train.proj", "script.path"),
                        Advises("leave one of the two out")));
}

TEST(JobScript, MayBeAModuleWhoseFileIsFoundWhereItRuns) {
  const auto job = resolve_job(
      testing::values_of("script: {module: proj.train}\ntrain: {global_batch: 8, max_steps: 3}\n"),
      context());
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_TRUE(is_script(job->model()));
  EXPECT_NE(testing::error_of({"script.module=proj.train"}).find("leave one of the two out"),
            std::string::npos);
}

TEST(JobScript, RefusesWordsWithoutAScript) {
  EXPECT_NE(testing::error_of({"script.args=[a]"}).find("only a script takes such words"),
            std::string::npos);
}

TEST(JobScript, RefusesModelScriptWithoutAScript) {
  const auto job = resolve_job(
      testing::values_of("model: script\ntrain: {global_batch: 8, max_steps: 3}\n"), context());
  EXPECT_THAT(job,
              FailsWith(Code::kUsage, Names("script.path is (empty)"), Advises("name the script")));
}

TEST(JobScript, RefusesAFileThatCannotBeRead) {
  JobContext where = context();
  where.check_script = [](auto&) { return Status(Code::kNoInput, "there is no such file"); };
  EXPECT_THAT(script_job({}, kTrainPy, where),
              FailsWith(Code::kNoInput, Names("script.path is /jobs/train.py", "no such file")));
}

TEST(JobScript, MayTakeOtherWordsOnAResume) {
  const auto stored = script_job({"script.args=[a]"});
  ASSERT_TRUE(stored.is_ok());
  JobContext where = context();
  where.stored = &*stored;
  const auto resumed =
      resolve_job(*parse_job_overrides(std::vector<std::string>{"script.args=[b]"}), where);
  ASSERT_TRUE(resumed.is_ok()) << resumed.status().message();
  EXPECT_EQ(resumed->script().args(0), "b");
  EXPECT_EQ(resumed->script().path(), "/jobs/train.py");
  const auto kept = resolve_job({}, where);
  ASSERT_TRUE(kept.is_ok());
  EXPECT_EQ(kept->SerializeAsString(), stored->SerializeAsString());
  const auto refused =
      resolve_job(*parse_job_overrides(std::vector<std::string>{"optimizer.lr=1"}), where);
  EXPECT_THAT(refused, FailsWith(Code::kUsage, Names("optimizer.lr"), Advises("torch.optim")));
}

// Every new key either may stand next to a script or may not.
TEST(JobScript, LeavesOutWholeSectionsOrSingleKeys) {
  for (const bool has_data : {false, true}) {
    EXPECT_EQ(said_by_script("model.name", has_data), "");
    EXPECT_EQ(said_by_script("train.global_batch", has_data), "");
    EXPECT_NE(said_by_script("optimizer.groups", has_data), "");
    EXPECT_EQ(said_by_script("script.path", has_data), "");
  }
  for (const char* key : {"data.mix.0.path", "data.train.path", "data.eval.path",
                          "data.eval.fraction", "model.block"}) {
    EXPECT_NE(said_by_script(key, false), "");
    EXPECT_EQ(said_by_script(key, true), "");
  }
}

}  // namespace
}  // namespace lockstep
