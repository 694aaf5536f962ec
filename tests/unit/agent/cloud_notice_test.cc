#include "deploy/agent/cloud/cloud_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deploy/agent/agent_messages.h"
#include "deploy/agent/cloud/cloud_watch.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

constexpr int64_t kNow = 1'796'132'400;  // 2026-12-01T13:40:00Z

// What the cloud's questions find in these answers, one for each question.
std::vector<std::optional<CloudNotice>> read_all(Cloud cloud,
                                                 const std::vector<std::string>& answers) {
  const auto questions = questions_of(cloud);
  EXPECT_EQ(questions.size(), answers.size());
  std::vector<std::optional<CloudNotice>> notices;
  for (size_t i = 0; i < answers.size(); ++i)
    notices.push_back(questions[i].read(answers[i], kNow, "vm-3"));
  return notices;
}

TEST(CloudNotice, OfAwsNamesTheActionAndTheTimeThatIsLeft) {
  const auto notices =
      read_all(Cloud::kAws, {R"({"action": "terminate", "time": "2026-12-01T13:41:54Z"})",
                             R"({"noticeTime": "2026-12-01T13:39:00Z"})"});
  EXPECT_EQ(notices[0], (CloudNotice{"AWS spot interruption: terminate", 114, true}));
  EXPECT_EQ(notices[1], (CloudNotice{"AWS rebalance recommendation", {}, false}));
  const auto past =
      read_all(Cloud::kAws, {R"({"action": "stop", "time": "2026-12-01T13:39:00Z"})", ""});
  EXPECT_EQ(past[0], (CloudNotice{"AWS spot interruption: stop", 0, true}));
}

TEST(CloudNotice, OfGcpIsOneWord) {
  const auto notices = read_all(Cloud::kGcp, {"TRUE\n", "TERMINATE_ON_HOST_MAINTENANCE"});
  EXPECT_EQ(notices[0], (CloudNotice{"GCP preemption", 30, true}));
  EXPECT_EQ(notices[1], (CloudNotice{"GCP host maintenance", {}, true}));
  EXPECT_EQ(read_all(Cloud::kGcp, {"FALSE", "MIGRATE_ON_HOST_MAINTENANCE"}),
            (std::vector<std::optional<CloudNotice>>(2)));
}

TEST(CloudNotice, OfAzureCountsForThisMachineAlone) {
  const auto event = [](const char* type, const char* machine) {
    return read_all(Cloud::kAzure, {std::string(R"({"Events": [{"EventType": ")") + type +
                                    R"(", "Resources": ["vm-1", ")" + machine +
                                    R"("], "NotBefore": "Tue, 01 Dec 2026 13:40:30 GMT"}]})"})[0];
  };
  EXPECT_EQ(event("Preempt", "vm-3"), (CloudNotice{"Azure scheduled event: Preempt", 30, true}));
  EXPECT_EQ(event("Preempt", "vm-4"), std::nullopt);
  EXPECT_EQ(event("Freeze", "vm-3"), std::nullopt);
}

TEST(CloudNotice, TextThatIsNoAnswerIsNone) {
  for (const char* text :
       {"", "null", "[]", "{}", "<html>", R"({"action": 1, "time": []})", R"({"action": "none"})",
        R"({"Events": {}})", R"({"Events": [1, {"EventType": "Preempt"}, null]})",
        R"({"Events": [{"EventType": "Preempt", "Resources": [3, {}]}]})", "{\"noticeTime\": 5}"})
    for (const Cloud cloud : {Cloud::kAws, Cloud::kGcp, Cloud::kAzure})
      for (const NoticeQuestion& question : questions_of(cloud))
        EXPECT_EQ(question.read(text, kNow, "vm-3"), std::nullopt) << text;
}

TEST(CloudNotice, IsASentenceForPeople) {
  EXPECT_EQ(notice_text("node-b", {"AWS spot interruption: terminate", 114, true}, true),
            "node-b is to be taken away in 1:54 (AWS spot interruption: terminate); its workers "
            "leave");
  EXPECT_EQ(notice_text("n", {"GCP preemption", 5, true}, true),
            "n is to be taken away in 0:05 (GCP preemption); its workers leave");
  EXPECT_EQ(notice_text("n", {"AWS rebalance recommendation", {}, false}, false),
            "n may be taken away (AWS rebalance recommendation); its workers stay");
}

TEST(MetadataService, IsTheOneThatDmiNames) {
  TemporaryDirectory dmi;
  const auto found = [&](const char* vendor, const char* product, const char* bios,
                         const char* tag) {
    write_file(dmi.path("sys_vendor"), std::string(vendor) + "\n");
    write_file(dmi.path("product_name"), std::string(product) + "\n");
    write_file(dmi.path("bios_version"), std::string(bios) + "\n");
    write_file(dmi.path("chassis_asset_tag"), std::string(tag) + "\n");
    return metadata_service("", dmi.path())->cloud;
  };
  const char* azure = "7783-7084-3265-9085-8269-3286-77";
  EXPECT_EQ(found("Amazon EC2", "p5.48xlarge", "1.0", "Amazon EC2"), Cloud::kAws);
  EXPECT_EQ(found("Xen", "HVM domU", "4.11.amazon", ""), Cloud::kAws);
  EXPECT_EQ(found("Xen", "HVM domU", "4.11", ""), Cloud::kNone);
  EXPECT_EQ(found("Google", "Google Compute Engine", "Google", ""), Cloud::kGcp);
  EXPECT_EQ(found("Microsoft Corporation", "Virtual Machine", "v4.1", azure), Cloud::kAzure);
  EXPECT_EQ(found("Microsoft Corporation", "Virtual Machine", "v4.1", "0000"), Cloud::kNone);
  EXPECT_EQ(found("Dell Inc.", "PowerEdge", "2.1", ""), Cloud::kNone);
  EXPECT_EQ(metadata_service("", "/nonexistent")->cloud, Cloud::kNone);
}

TEST(MetadataService, IsWhatASettingNamesAndNothingElse) {
  const auto service = metadata_service("gcp=http://127.0.0.1:8000", "/nonexistent");
  EXPECT_EQ(service->cloud, Cloud::kGcp);
  EXPECT_EQ(service->address, "127.0.0.1:8000");
  EXPECT_EQ(metadata_service("none", "/nonexistent")->cloud, Cloud::kNone);
  for (const char* bad :
       {"gcp", "gcp=", "ovh=http://h:1", "http://h:1", "aws=https://h:1", "aws=http://h:1/"})
    EXPECT_THAT(metadata_service(bad, "/nonexistent"),
                FailsWith(Code::kUsage, Names("LOCKSTEP_METADATA_URL"), Advises("aws=http://")))
        << bad;
}

}  // namespace
}  // namespace lockstep
