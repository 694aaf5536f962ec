// Tests which archives are exported programs, and what the others are.
#include "worker/model/exported_program/archive.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "tests/support/fails_with.h"
#include "tests/unit/exported_program/golden_program.h"
#include "worker/model/exported_program/node_text.h"
#include "worker/model/exported_program/operators.h"

namespace lockstep::exported {
namespace {

void put16(std::string& out, uint32_t value) {
  for (const int shift : {0, 8}) out.push_back(static_cast<char>(value >> shift));
}
void put32(std::string& out, uint32_t value) {
  put16(out, value & 0xffff);
  put16(out, value >> 16);
}

// A ZIP archive of files that are stored as they are.
std::string stored_zip(const std::vector<std::pair<std::string, std::string>>& files,
                       uint16_t method = 0) {
  std::string out;
  std::string directory;
  for (const auto& [name, content] : files) {
    const auto crc = static_cast<uint32_t>(::crc32(
        0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    std::string common;
    put16(common, 0);
    put16(common, method);
    put32(common, 0);
    put32(common, crc);
    put32(common, static_cast<uint32_t>(content.size()));
    put32(common, static_cast<uint32_t>(content.size()));
    put16(common, static_cast<uint32_t>(name.size()));
    put16(common, 0);
    put32(directory, 0x02014b50);
    put32(directory, 0);
    directory += common.substr(2);
    directory.insert(directory.end() - static_cast<long>(common.size()) + 2, 2, '\0');
    directory.append(10, '\0');
    put32(directory, static_cast<uint32_t>(out.size()));
    directory += name;
    put32(out, 0x04034b50);
    put16(out, 0);
    out += common + name + content;
  }
  const size_t begin = out.size();
  out += directory;
  put32(out, 0x06054b50);
  put32(out, 0);
  put16(out, static_cast<uint32_t>(files.size()));
  put16(out, static_cast<uint32_t>(files.size()));
  put32(out, static_cast<uint32_t>(directory.size()));
  put32(out, static_cast<uint32_t>(begin));
  put16(out, 0);
  return out;
}

Result<ProgramArchive> open_zip(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto bytes = std::make_shared<std::string>(stored_zip(files));
  return ProgramArchive::open({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()},
                              bytes);
}

const std::vector<std::pair<std::string, std::string>> kSmallest = {
    {"m/archive_format", "pt2"},
    {"m/archive_version", "0"},
    {"m/byteorder", "little"},
    {"m/models/model.json", "{}"},
    {"m/data/weights/model_weights_config.json", "{}"},
};

TEST(ProgramArchive, KnowsItsFilesByTheirNamesBelowTheRoot) {
  const auto archive = open_zip(kSmallest);
  ASSERT_TRUE(archive.is_ok()) << archive.status().message();
  EXPECT_EQ(archive->root(), "m");
  EXPECT_EQ(archive->program(), "model");
  EXPECT_EQ(*archive->read_text("byteorder"), "little");
  EXPECT_THAT(archive->read("data/weights/weight_0"),
              FailsWith(Code::kBadData, Names("data/weights/weight_0")));
}

TEST(ProgramArchive, OtherFilesOfPyTorchAreNamed) {
  EXPECT_THAT(open_zip({{"m/constants.pkl", ""}, {"m/data.pkl", ""}}),
              FailsWith(Code::kConfig, Says("TorchScript"), Advises("torchscript")));
  EXPECT_THAT(open_zip({{"m/data.pkl", ""}}),
              FailsWith(Code::kConfig, Says("torch.save()"), Advises("torch.export.save()")));
  EXPECT_THAT(open_zip({{"m/serialized_exported_program.json", ""}}),
              FailsWith(Code::kConfig, Says("older"), Advises("torch 2.11")));
  EXPECT_THAT(open_zip({{"a.txt", ""}}), FailsWith(Code::kConfig, Says("ZIP")));
  EXPECT_THAT(open_zip({{"m/a.txt", ""}, {"n/a.txt", ""}}), FailsWith(Code::kConfig, Says("ZIP")));
}

TEST(ProgramArchive, ALayoutThatIsNotKnownIsRefused) {
  auto files = kSmallest;
  files[1].second = "1";
  EXPECT_THAT(open_zip(files), FailsWith(Code::kConfig, Names("archive_version 1")));
  files = kSmallest;
  files.pop_back();
  EXPECT_THAT(open_zip(files), FailsWith(Code::kConfig, Says("older")));
  files = kSmallest;
  files.push_back({"m/models/eval.json", "{}"});
  EXPECT_THAT(open_zip(files), FailsWith(Code::kConfig, Names("eval"), Advises("one program")));
  files = kSmallest;
  files.push_back(files[0]);
  EXPECT_THAT(open_zip(files), FailsWith(Code::kBadData, Says("twice")));
  files = kSmallest;
  files[3] = {"m/models/sub/\n.json", "{}"};
  EXPECT_FALSE(open_zip(files).is_ok());
}

TEST(UserLine, IsTheInnermostOfTheUsersOwnFiles) {
  EXPECT_EQ(user_line("File \"/a/train.py\", line 3, in forward\n    x = self.net(x)\n"
                      "  File \"/a/net.py\", line 9, in forward\n    return self.fc(x)\n"
                      "  File \"/v/site-packages/torch/nn/modules/linear.py\", line 134, in forward"
                      "\n    return F.linear(input)"),
            "/a/net.py, line 9: return self.fc(x)");
  EXPECT_EQ(user_line("File \"/v/site-packages/torchvision/resnet.py\", line 1, in forward\n    a\n"
                      "File \"/v/site-packages/torch/nn/relu.py\", line 2, in forward\n    b"),
            "/v/site-packages/torchvision/resnet.py, line 1: a");
  EXPECT_EQ(user_line("File \"/v/site-packages/torch/nn/relu.py\", line 2, in forward\n    b"),
            "/v/site-packages/torch/nn/relu.py, line 2: b");
  EXPECT_EQ(user_line("File \"/a/net.py\", line 9, in forward\n    a\n"
                      "File \"torch/fx/passes/runtime_assert.py\", line 24, in f\n    b"),
            "/a/net.py, line 9: a");
  EXPECT_EQ(user_line("File \"/a/net.py\", line 9, in forward\n    torch.while_loop(c, b, (x,))\n"
                      "  File \"<eval_with_key>.5\", line 8, in forward\n    while_loop = loop(x)"),
            "/a/net.py, line 9: torch.while_loop(c, b, (x,))");
  EXPECT_EQ(user_line("File \"<eval_with_key>.5\", line 8, in forward\n    a"),
            "<eval_with_key>.5, line 8: a");
  EXPECT_EQ(user_line("File \"<stdin>\", line 9, in forward\n    a\n"
                      "  File \"/v/site-packages/torch/nn/relu.py\", line 2, in forward\n    b"),
            "<stdin>, line 9: a");
  EXPECT_EQ(user_line(""), "");
  EXPECT_EQ(user_line("File \""), "");
  EXPECT_LE(user_line("File \"" + std::string(100'000, 'x')).size(), 210u);
}

TEST(ModulesOf, TakesPathAndType) {
  const auto modules = modules_of("L__self__,,m.Net;getattr(a, '0'),layers.0,torch.nn.Linear;bad;");
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[0].path, "");
  EXPECT_EQ(modules[1].path, "layers.0");
  EXPECT_EQ(modules[1].type, "torch.nn.Linear");
}

TEST(KindOfTarget, DeniesWhatReachesFilesOrMemory) {
  EXPECT_EQ(kind_of_target("torch.ops.aten.linear.default"), NodeKind::kOperator);
  EXPECT_EQ(kind_of_target("_operator.floordiv"), NodeKind::kPython);
  EXPECT_EQ(kind_of_target("torch.ops.higher_order.wrap_with_autocast"), NodeKind::kAutocast);
  for (const char* target :
       {"torch.ops.aten.from_file.default", "torch.ops.aten.set_.source_Storage",
        "torch.ops.aten.resize_.default", "torch.ops.aten._unsafe_index.Tensor",
        "torch.ops.aten.record_stream.default", "torch.ops.aten.to_mkldnn.default",
        "torch.ops.aten.linear", "torch.ops.aten.", "torch.ops.higher_order.cond",
        "torch.ops.mylib.twice.default", "os.system", "builtins.eval", "_operator.setitem", ""})
    EXPECT_FALSE(kind_of_target(target)) << target;
}

}  // namespace
}  // namespace lockstep::exported
