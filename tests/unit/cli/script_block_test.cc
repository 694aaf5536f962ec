#include "deploy/cli/script/script_block.h"

#include <gtest/gtest.h>

#include "deploy/cli/script/script_words.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

std::string yaml_of(const std::string& script) {
  const auto yaml = script_block(script, "train.py");
  EXPECT_TRUE(yaml.is_ok()) << yaml.status().message();
  return yaml.is_ok() ? *yaml : "";
}

TEST(ScriptBlock, KeepsTheLinesAndColumnsOfTheScript) {
  EXPECT_EQ(yaml_of("#!/usr/bin/env python3\n"
                    "# /// lockstep\n"
                    "# train:\n"
                    "#   epochs: 3\r\n"
                    "#\n"
                    "# seed: 2\n"
                    "# ///\n"
                    "import lockstep\n"),
            "\n\n  train:\n    epochs: 3\n\n  seed: 2\n\n\n");
}

TEST(ScriptBlock, IsEmptyForAScriptWithoutKeys) {
  for (const char* script :
       {"", "import torch\n", "# /// script\n# dependencies = []\n# ///\n",
        "# /// lockstep\n# ///\n", "# /// lockstep\n#\n# # all defaults\n# ///\n",
        "    # /// lockstep\n", "text = '''\n  # /// lockstep\n'''\n"})
    EXPECT_EQ(yaml_of(script), "") << script;
}

TEST(ScriptBlock, StandsBesideBlocksOfOtherTools) {
  EXPECT_EQ(yaml_of("# /// script\n# a = 1\n# ///\n# /// lockstep\n# seed: 2\n# ///\n"),
            "\n\n\n\n  seed: 2\n\n");
}

TEST(ScriptBlock, RefusesASecondOne) {
  EXPECT_THAT(
      script_block("# /// lockstep\n# seed: 1\n# ///\n\n# /// lockstep\n# ///\n", "train.py"),
      FailsWith(Code::kUsage, Names("train.py:5", "second", "line 1"),
                Advises("put all keys into one")));
}

TEST(ScriptBlock, RefusesOneThatIsNotClosed) {
  for (const char* script : {"# /// lockstep\n# seed: 1\nimport torch\n# ///\n",
                             "# /// lockstep\n# seed: 1\n\n# ///\n", "# /// lockstep\n# seed: 1"})
    EXPECT_THAT(script_block(script, "train.py"),
                FailsWith(Code::kUsage, Names("train.py:1", "not closed"), Advises("# ///")))
        << script;
}

TEST(ScriptBlock, RefusesLinesThatMissABlank) {
  EXPECT_THAT(script_block("# /// lockstep\n#seed: 1\n# ///\n", "train.py"),
              FailsWith(Code::kUsage, Names("train.py:2"), Advises("begin with \"# \"")));
  for (const char* opening : {"#/// lockstep", "# ///lockstep", "#///lockstep", "## /// lockstep"})
    EXPECT_THAT(script_block("\n" + std::string(opening) + "\n# ///\n", "train.py"),
                FailsWith(Code::kUsage, Names("train.py:2"), Advises("# /// lockstep")))
        << opening;
}

using Words = std::vector<std::string>;

TEST(ScriptWords, BecomeOneOverride) {
  EXPECT_EQ(with_script_words({"run", "train.py", "-n", "2", "--", "--lr", "0.1", "a \"b\"\\"}),
            (Words{"run", "train.py", "-n", "2",
                   "script.args=[\"--lr\", \"0.1\", \"a \\\"b\\\"\\\\\"]"}));
  EXPECT_EQ(with_script_words({"agent", "train.py", "--", "--", "x"}),
            (Words{"agent", "train.py", "script.args=[\"--\", \"x\"]"}));
}

TEST(ScriptWords, AreNoneWithoutDashes) {
  EXPECT_EQ(with_script_words({"run", "train.py"}), (Words{"run", "train.py"}));
  EXPECT_EQ(with_script_words({"run", "train.py", "--"}),
            (Words{"run", "train.py", "script.args=[]"}));
  EXPECT_EQ(with_script_words({}), Words{});
}

TEST(ScriptWords, OfOtherCommandsStayAsTheyAre) {
  const Words slurms = {"sbatch", "train.py", "--", "--account=vision"};
  EXPECT_EQ(with_script_words(slurms), slurms);
}

}  // namespace
}  // namespace lockstep
