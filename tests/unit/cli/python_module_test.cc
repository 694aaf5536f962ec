#include "deploy/cli/script/python_module.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "comm/base/file.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class ScriptModuleTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path(name); }
  std::string make(const std::string& name) {
    fs::create_directories(fs::path(path(name)).parent_path());
    EXPECT_TRUE(replace_file(path(name), "").is_ok());
    return path(name);
  }
  Result<std::string> find(const std::string& module) {
    return find_module(module, path("here"), [this](const std::string& name) {
      ++asked_;
      return installed_.count(name) > 0 ? installed_.at(name) : "";
    });
  }

  TemporaryDirectory directory_;
  std::map<std::string, std::string> installed_;
  int asked_ = 0;
};

TEST_F(ScriptModuleTest, IsAFileOfAPackageBelowTheFolder) {
  const std::string file = make("here/proj/inner/train.py");
  EXPECT_EQ(*find("proj.inner.train"), file);
  EXPECT_EQ(asked_, 0) << "Python starts slowly";
  EXPECT_EQ(folder_of_module(file, "proj.inner.train"), path("here"));
}

TEST_F(ScriptModuleTest, MayBeAModuleOfNoPackage) {
  const std::string file = make("here/train.py");
  EXPECT_EQ(*find("train"), file);
  EXPECT_EQ(folder_of_module(file, "train"), path("here"));
}

TEST_F(ScriptModuleTest, OfAPackageIsItsMainModule) {
  const std::string file = make("here/proj/__main__.py");
  EXPECT_EQ(*find("proj"), file) << "a folder without __init__.py is a package";
  make("here/proj/__init__.py");
  EXPECT_EQ(*find("proj"), file);
  EXPECT_EQ(folder_of_module(file, "proj"), path("here"));
  EXPECT_EQ(folder_of_module(file, "proj.__main__"), path("here"));
}

TEST_F(ScriptModuleTest, ComesInPythonsOrder) {
  make("here/proj/train/__main__.py");
  const std::string file = make("here/proj/train.py");
  EXPECT_EQ(*find("proj.train"), file) << "before a folder without __init__.py";
  make("here/proj/train/__init__.py");
  EXPECT_EQ(*find("proj.train"), path("here/proj/train/__main__.py"));
}

TEST_F(ScriptModuleTest, IsLookedForWherePythonImportsItsPackageFrom) {
  const std::string file = make("site/proj/train.py");
  installed_["proj"] = path("site/proj");
  EXPECT_EQ(*find("proj.train"), file);
  const std::string single = make("site/loop.py");
  installed_["loop"] = single;
  EXPECT_EQ(*find("loop"), single);
}

TEST_F(ScriptModuleTest, ThatIsNotThereIsToldWithTheFolders) {
  EXPECT_THAT(find("proj.train"),
              FailsWith(Code::kNoInput, Names("proj.train", "proj/train.py", path("here")),
                        Advises("the folder that holds proj", "PYTHONPATH")));
  make("here/src/proj/train.py");
  EXPECT_THAT(find("proj.train"),
              FailsWith(Code::kNoInput, Names(path("here")), Advises("PYTHONPATH=src")));
  fs::remove_all(path("here/src"));
  make("site/proj/other.py");
  installed_["proj"] = path("site/proj");
  EXPECT_THAT(find("proj.train"), FailsWith(Code::kNoInput, Names(path("site"))));
}

TEST_F(ScriptModuleTest, RefusesAPackageThatCannotBeRun) {
  make("here/proj/__init__.py");
  EXPECT_THAT(find("proj"),
              FailsWith(Code::kUsage, Names("proj", "__main__.py"), Advises("proj.train")));
}

TEST_F(ScriptModuleTest, RefusesAPackageUnderAnotherName) {
  make("src/lib/train.py");
  installed_["proj"] = path("src/lib");
  EXPECT_THAT(find("proj.train"),
              FailsWith(Code::kUsage, Names(path("src/lib")), Advises("without -m")));
}

TEST_F(ScriptModuleTest, RefusesWhatIsNoName) {
  for (const char* const name : {"", ".", "a..b", ".a", "a.", "1a", "a b", "a-b", "a;b", "../a"})
    EXPECT_THAT(find(name), FailsWith(Code::kUsage, Names("no name of a module"))) << name;
  for (const char* const name : {"proj/train.py", "proj/train", "proj.train.py"})
    EXPECT_THAT(find(name), FailsWith(Code::kUsage, Names(name), Advises("-m proj.train"))) << name;
  EXPECT_THAT(find(std::string(5000, 'a')), FailsWith(Code::kUsage, Names("no name of a module")));
  EXPECT_EQ(asked_, 0);
}

TEST_F(ScriptModuleTest, OfAnotherFileHasNoFolder) {
  EXPECT_EQ(folder_of_module("/src/proj/train.py", "train.proj"), "");
  EXPECT_EQ(folder_of_module("/src/myproj/train.py", "proj.train"), "");
  EXPECT_EQ(folder_of_module("/proj/train.py", "proj.train"), "/");
}

}  // namespace
}  // namespace lockstep
