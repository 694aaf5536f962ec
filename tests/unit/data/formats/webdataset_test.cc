#include "data/formats/shards/webdataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/formats/shards/tar_entries.h"
#include "tests/support/fails_with.h"
#include "tests/support/tar_writer.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// "name:offset:bytes" of every file, or what is wrong.
std::vector<std::string> entries_of(const std::string& archive) {
  std::vector<std::string> found;
  const Status status = walk_tar(span_of(archive), [&](const TarEntry& entry) {
    found.push_back(entry.name + ":" + std::to_string(entry.offset) + ":" +
                    std::to_string(entry.bytes));
    return Status::ok();
  });
  if (!status.is_ok()) found.push_back(status.message());
  return found;
}

std::string failure_of(const std::string& archive) {
  return entries_of(archive).back();
}

TEST(TarEntries, AreFoundWhereTheyLie) {
  const std::string archive = tar_entry({"a.jpg", std::string(600, 'x')}) +
                              tar_entry({"empty.cls", ""}) + tar_entry({"dir/", "", '5'}) +
                              tar_entry({"dir/b.cls", "7"});
  const std::vector<std::string> all{"a.jpg:512:600", "empty.cls:2048:0", "dir/b.cls:3072:1"};
  EXPECT_EQ(entries_of(archive + kTarEnd), all);
  EXPECT_EQ(entries_of(archive), all);  // some writers end without the two blocks
}

TEST(TarEntries, LongNamesOfBothKinds) {
  const std::string name = std::string(150, 'd') + "/" + std::string(150, 'f') + ".jpg";
  EXPECT_THAT(entries_of(tar_entry({"././@LongLink", name + '\0', 'L'}) +
                         tar_entry({name.substr(0, 100), "xy"})),
              ElementsAre(name + ":1536:2"));
  const std::string record = "path=" + name + "\n";
  const std::string pax = std::to_string(record.size() + 4) + " " + record;
  EXPECT_THAT(entries_of(tar_entry({"x", pax, 'x'}) + tar_entry({"short", "xy"})),
              ElementsAre(name + ":1536:2"));
}

TEST(TarEntries, WhatIsNoPlainFileIsRefused) {
  EXPECT_THAT(failure_of(tar_entry({"a", "", '2', "/etc/passwd"})), Says("link, a"));
  EXPECT_THAT(failure_of(tar_entry({"a", "", '1', "b"})), Says("link, a"));
  EXPECT_THAT(failure_of(tar_entry({"a", "", '3'})), Says("file, a"));
  EXPECT_THAT(failure_of(tar_entry({"a", "", 'S'})),
              AllOf(Says("sparse file, a"), Advises("--sparse")));
  for (const char* key : {"GNU.sparse.major=1", "GNU.sparse.map=0,1"}) {
    const std::string record = std::string(key) + "\n";
    const std::string pax = std::to_string(record.size() + 3) + " " + record;
    EXPECT_THAT(failure_of(tar_entry({"x", pax, 'x'}) + tar_entry({"a", "xy"})),
                AllOf(Says("sparse"), Advises("--sparse")))
        << pax;
  }
}

TEST(TarEntries, NamesThatLeadOutsideAreRefused) {
  EXPECT_THAT(failure_of(tar_entry({"/etc/x.jpg", ""})),
              AllOf(Names("/etc/x.jpg"), Says("absolute")));
  for (const char* name : {"../x.jpg", "a/../../x.jpg", "a/.."})
    EXPECT_THAT(failure_of(tar_entry({name, ""})), HasSubstr("leads upwards")) << name;
  EXPECT_THAT(entries_of(tar_entry({"a/..b/c.jpg", ""})), ElementsAre("a/..b/c.jpg:512:0"));
}

TEST(TarEntries, DamageIsSeen) {
  const std::string good = tar_entry({"a.jpg", std::string(600, 'x')}) + tar_entry({"b.jpg", "y"});
  EXPECT_EQ(failure_of(""), "is empty");
  EXPECT_EQ(failure_of(good.substr(0, 300)), "is truncated");
  EXPECT_EQ(failure_of(good.substr(0, 1'000)), "is truncated");
  std::string flipped = good;
  flipped[1'536] = 'c';
  EXPECT_THAT(failure_of(flipped), AllOf(Names("byte 1536"), Says("no file header")));
  EXPECT_EQ(failure_of(tar_header({"a.jpg", ""}, uint64_t{1} << 32)), "is truncated");
  EXPECT_THAT(failure_of(std::string("\x1f\x8b", 2) + std::string(1'000, 'z')), Says("compressed"));
  EXPECT_THAT(failure_of(tar_entry({"x", "99 path=a\n", 'x'})), HasSubstr("pax header"));
  EXPECT_THAT(failure_of(tar_entry({"x", "0 path=a\n", 'x'})), HasSubstr("pax header"));
  EXPECT_THAT(
      failure_of(tar_entry({"x", "29 size=18446744073709551615\n", 'x'}) + tar_entry({"a", ""})),
      HasSubstr("truncated"));
}

TEST(TarEntries, LargeNumbersInBytes) {
  std::string header = tar_header({"a.jpg", ""}, 0);
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\3", 12));
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  header.replace(148, 7, std::string(text, 7));
  EXPECT_THAT(entries_of(header + std::string(512, 'x')), ElementsAre("a.jpg:512:3"));
}

class Shards : public testing::Test {
 protected:
  static std::string image() { return image_sample("jpeg_420"); }
  static std::string failure(const std::string& archive) {
    const auto samples = samples_of_tar(span_of(archive));
    return samples.is_ok() ? "no failure" : samples.status().message();
  }
};

TEST_F(Shards, HaveImagesAndLabels) {
  const std::string png = image_sample("png_grey");
  const auto samples = samples_of_tar(span_of(
      tar_entry({"d/1.jpg", image()}) + tar_entry({"d/1.cls", "12\n"}) +
      tar_entry({"d/1.txt", "a cat"}) + tar_entry({"d/2.json", R"({"label": 3, "x": [1]})"}) +
      tar_entry({"d/2.png", png}) + tar_entry({"README", "no sample"}) + kTarEnd));
  ASSERT_TRUE(samples.is_ok()) << samples.status().message();
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ((*samples)[0].label, 12U);
  EXPECT_EQ((*samples)[0].offset, 512U);
  EXPECT_EQ((*samples)[0].bytes, image().size());
  EXPECT_EQ((*samples)[0].width, image_samples::kWidth);
  EXPECT_EQ((*samples)[0].channels, 3U);
  EXPECT_EQ((*samples)[1].label, 3U);
  EXPECT_EQ((*samples)[1].channels, 1U);
  EXPECT_EQ((*samples)[1].bytes, png.size());
}

TEST_F(Shards, SayWhichSampleIsWrong) {
  EXPECT_THAT(failure(tar_entry({"d/1.jpg", image()}) + tar_entry({"d/2.cls", "1"})),
              AllOf(Names("d/1"), Says("without a label")));
  EXPECT_THAT(failure(tar_entry({"1.cls", "cat"}) + tar_entry({"1.jpg", image()})),
              AllOf(Names("1.cls"), Says("no label"), Advises("0 to 65535")));
  EXPECT_THAT(failure(tar_entry({"1.cls", "-1"})), Says("no label"));
  EXPECT_THAT(failure(tar_entry({"1.jpg", "GIF89a"})), AllOf(Names("1.jpg"), Says("GIF")));
  EXPECT_THAT(failure(tar_entry({"1.jpg", image()}) + tar_entry({"1.png", image()})),
              AllOf(Names("sample 1"), Says("two images")));
}

}  // namespace
}  // namespace lockstep::data
