#include "deploy/agent/worker_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "comm/base/file.h"
#include "deploy/agent/launch_env.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class WorkerLaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"bin", "tools"}) std::filesystem::create_directory(path(name));
    job_.mutable_model()->set_name("script");
    job_.mutable_script()->set_path("/jobs/train.py");
    job_.mutable_script()->add_args("--lr");
    job_.mutable_script()->add_args("0.1");
    job_.mutable_train()->set_threads_per_worker(3);
    variables_["PATH"] = "/nowhere::" + path("tools");
  }

  std::string path(const std::string& name) const { return directory_.path(name); }
  std::string make_program(const std::string& name, const std::string& text = "exit 0") {
    EXPECT_TRUE(replace_file(path(name), "#!/bin/sh\n" + text + "\n", 0755).is_ok());
    return path(name);
  }
  Result<WorkerLaunch> launch() {
    return worker_launch(job_, path("bin/"), [this](const char* name) -> const char* {
      const auto it = variables_.find(name);
      return it == variables_.end() ? nullptr : it->second.c_str();
    });
  }

  TemporaryDirectory directory_;
  wire::JobSpec job_;
  std::map<std::string, std::string> variables_;
};

const std::vector<WorkerOption> kOptions = {{"run-dir", "/runs/a b"}, {"local-rank", "2"}};

TEST_F(WorkerLaunchTest, AModelOfOursIsTrainedByTheProgramBesideThisOne) {
  job_.mutable_model()->set_name("mlp");
  make_program("bin/lockstep-worker");
  const auto found = launch();
  ASSERT_TRUE(found.is_ok());
  const auto spec = process_of(*found, kOptions);
  ASSERT_TRUE(spec.is_ok());
  EXPECT_THAT(spec->argv, ElementsAre(path("bin/lockstep-worker"), "--run-dir", "/runs/a b",
                                      "--local-rank", "2"));
  EXPECT_THAT(spec->env, ElementsAre());
  EXPECT_TRUE(check_python(*found).is_ok());
}

TEST_F(WorkerLaunchTest, AModelOfOursIsRefusedWhereThatProgramIsNotInstalled) {
  job_.mutable_model()->set_name("mlp");
  EXPECT_THAT(launch(), FailsWith(Code::kConfig, Names(path("bin/lockstep-worker")),
                                  Advises("build Lockstep", "with a script")));
}

TEST_F(WorkerLaunchTest, ALauncherIsAskedFirstWhetherAPythonHasItsTorch) {
  job_.mutable_model()->set_name("mlp");
  make_program("bin/lockstep-worker", "test \"$*\" = --find-libraries");
  EXPECT_TRUE(launch().is_ok());
  make_program("bin/lockstep-worker", "echo a hook; echo lockstep: needs torch 7 >&2; exit 78");
  EXPECT_THAT(launch(), FailsWith(Code::kConfig, Names("needs torch 7"), Advises("a script")));
  make_program("bin/lockstep-worker", "echo bash: broken; exit 2");
  EXPECT_THAT(launch(),
              FailsWith(Code::kConfig, Names(path("bin/lockstep-worker"), "code 2", "bash: broken"),
                        Advises("install Lockstep again")));
}

TEST_F(WorkerLaunchTest, AScriptLearnsFromOneVariableWhatItIs) {
  const std::string python = make_program("tools/python3");
  const auto found = launch();
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_TRUE(found->is_script);
  const auto spec = process_of(*found, kOptions);
  ASSERT_TRUE(spec.is_ok());
  EXPECT_THAT(spec->argv, ElementsAre(python, "-u", "-c", HasSubstr("lockstep._script"),
                                      "/jobs/train.py", "--lr", "0.1"));
  EXPECT_THAT(spec->env, ElementsAre("OMP_NUM_THREADS=3", "PYTHONHASHSEED=0",
                                     "LOCKSTEP_WORKER=run_dir=/runs/a b\nlocal_rank=2"));
}

TEST_F(WorkerLaunchTest, AModuleIsNamedBeforeItsFile) {
  const std::string python = make_program("tools/python3");
  job_.mutable_script()->set_module("jobs.train");
  const auto found = launch();
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_THAT(found->words, ElementsAre(python, "-u", "-c", HasSubstr("lockstep._script"), "-m",
                                        "jobs.train", "/jobs/train.py", "--lr", "0.1"));
}

TEST_F(WorkerLaunchTest, PythonSaysWhereItImportsAPackageFrom) {
  const auto variable = [this](const char* name) -> const char* {
    const auto it = variables_.find(name);
    return it == variables_.end() ? nullptr : it->second.c_str();
  };
  EXPECT_EQ(imported_from("proj", variable), "") << "there is no Python";
  make_program("tools/python3", "echo a hook of another library; echo \"/site/$3\"");
  EXPECT_EQ(imported_from("proj", variable), "/site/proj");
  make_program("tools/python3", "echo /site/proj; exit 3");
  EXPECT_EQ(imported_from("proj", variable), "");
}

TEST_F(WorkerLaunchTest, OnlyAScriptIsKeptFromTheVariablesOfLaunchers) {
  make_program("tools/python3");
  EXPECT_EQ(process_of(*launch(), kOptions)->is_left_out, &is_launch_variable);
  job_.mutable_model()->set_name("mlp");
  make_program("bin/lockstep-worker");
  EXPECT_EQ(process_of(*launch(), kOptions)->is_left_out, nullptr);
}

TEST_F(WorkerLaunchTest, ALineBreakThatWouldForgeAnOptionIsRefused) {
  make_program("tools/python3");
  EXPECT_THAT(process_of(*launch(), {{"node", "a\ngpu=7"}}),
              FailsWith(Code::kConfig, Names("node", "line break"), Advises("another name")));
}

TEST_F(WorkerLaunchTest, ModulesBesideTheProgramComeFirst) {
  make_program("tools/python3");
  std::filesystem::create_directories(path("bin/python"));
  EXPECT_THAT(launch()->env, ElementsAre("OMP_NUM_THREADS=3", "PYTHONHASHSEED=0",
                                         "PYTHONPATH=" + path("bin/python")));
  variables_["PYTHONPATH"] = "/mine:/yours";
  EXPECT_THAT(launch()->env, ElementsAre("OMP_NUM_THREADS=3", "PYTHONHASHSEED=0",
                                         "PYTHONPATH=" + path("bin/python") + ":/mine:/yours"));
}

TEST_F(WorkerLaunchTest, SetsHaveOneOrderInAllWorkersOrThatOfTheUser) {
  make_program("tools/python3");
  EXPECT_THAT(launch()->env, Contains("PYTHONHASHSEED=0"));
  variables_["PYTHONHASHSEED"] = "7";
  EXPECT_THAT(launch()->env, Not(Contains(HasSubstr("PYTHONHASHSEED")))) << "workers inherit it";
}

TEST_F(WorkerLaunchTest, APythonMayBeNamed) {
  make_program("tools/python3");
  variables_["LOCKSTEP_PYTHON"] = make_program("own");
  EXPECT_EQ(launch()->words[0], path("own"));
  make_program("tools/python3.13");
  variables_["LOCKSTEP_PYTHON"] = "python3.13";
  EXPECT_EQ(launch()->words[0], path("tools/python3.13"));
}

TEST_F(WorkerLaunchTest, APythonThatIsNotThereIsRefused) {
  EXPECT_THAT(launch(),
              FailsWith(Code::kConfig, Names("python3", "PATH"), Advises("LOCKSTEP_PYTHON")));
  variables_["LOCKSTEP_PYTHON"] = path("tools");  // a directory
  EXPECT_THAT(launch(), FailsWith(Code::kConfig, Names("LOCKSTEP_PYTHON", path("tools")),
                                  Advises("name a Python")));
}

TEST_F(WorkerLaunchTest, APythonThatCannotStartTheScriptIsRefused) {
  const std::pair<const char*, const char*> kCases[] = {{"exit 3", "older than 3.10"},
                                                        {"exit 4", "pip install lockstep"},
                                                        {"exit 5", "pip install torch"},
                                                        {"exit 1", "does not work"},
                                                        {"kill -9 $$", "signal 9"}};
  for (const auto& [text, words] : kCases) {
    make_program("tools/python3", text);
    EXPECT_THAT(
        check_python(*launch()),
        FailsWith(Code::kConfig, Names(path("tools/python3"), words), Advises("LOCKSTEP_PYTHON")))
        << text;
  }
  make_program("tools/python3", "test \"$1\" = -c");
  EXPECT_TRUE(check_python(*launch()).is_ok());
}

TEST(LeaveTime, IsTenSecondsInARunFromBeforeTheKey) {
  wire::JobSpec job;
  EXPECT_EQ(leave_ms_of(job), 10'000);
  job.mutable_cluster()->set_leave_s(600);
  EXPECT_EQ(leave_ms_of(job), 600'000);
}

}  // namespace
}  // namespace lockstep
