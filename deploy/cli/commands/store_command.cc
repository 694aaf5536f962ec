// `lockstep store`: what a bucket that is to hold a run promises, and what this host may do there.
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "comm/environment/standard_streams.h"
#include "comm/store/s3_blobs.h"
#include "comm/store/store_check.h"
#include "data/source/url.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"

namespace lockstep {
namespace {

struct StoreArguments {
  std::string url;
  bool is_json = false;
};

// The address of a bucket. Other clouds are refused by name.
Result<std::string> bucket_url(const std::string& url) {
  if (url.starts_with("s3://")) return source::checked_url(url);
  if (url.starts_with("gs://"))
    return Status(
        Code::kUsage,
        "gs:// is not supported yet. Google's interface for S3 does not serve: it ignores "
        "If-None-Match. Use a store that is compatible with S3, or a shared directory");
  if (url.starts_with("az://") || url.starts_with("abfs") ||
      url.find(".blob.core.windows.net") != std::string::npos)
    return Status(Code::kUsage,
                  "Azure Blob is not supported: it has no S3 interface. Use a ReadWriteMany share, "
                  "or an S3 gateway");
  return Status(Code::kUsage, "'" + url +
                                  "' is no bucket; name it as s3://BUCKET or "
                                  "s3://BUCKET/PREFIX");
}

void tell(const store::StoreFinding& finding) {
  print_text("%-8s %-10s %s\n", text_of(finding.grade), finding.subject.c_str(),
             finding.text.c_str());
}

int check(const StoreArguments& arguments) {
  const auto url = bucket_url(arguments.url);
  if (!url.is_ok()) return report(url.status());
  const std::atomic<bool> never = false;
  const auto blobs = store::make_s3_blobs(*url, {}, never);
  auto findings = nlohmann::ordered_json::array();
  const bool is_good = store::check_store(*blobs, {}, [&](const store::StoreFinding& finding) {
    if (!arguments.is_json) return tell(finding);
    findings.push_back(
        {{"subject", finding.subject}, {"grade", text_of(finding.grade)}, {"text", finding.text}});
  });
  if (arguments.is_json) {
    const nlohmann::ordered_json json{
        {"store", blobs->place()}, {"is_good", is_good}, {"findings", findings}};
    print_text("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else if (is_good) {
    print_text(
        "%s can hold a run. Give the bucket a lifecycle rule that aborts incomplete uploads "
        "after 2 days: what a killed host began is billed until then.\n",
        blobs->place().c_str());
  } else {
    print_text("%s cannot hold a run: see what is bad.\n", blobs->place().c_str());
  }
  return is_good ? 0 : exit_code(Status(Code::kConfig, ""));
}

}  // namespace

void add_store_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("store", "Check a bucket that is to hold runs");
  command->require_subcommand(1);
  auto* checking =
      command->add_subcommand("check", "Try what a run needs of a bucket; leaves nothing there");
  const auto arguments = std::make_shared<StoreArguments>();
  checking->add_option("url", arguments->url, "s3://BUCKET or s3://BUCKET/PREFIX")->required();
  checking->add_flag("--json", arguments->is_json, "Print the findings as JSON");
  checking->footer(
      "A run in a bucket rests on one promise: of all that create one key, one wins\n"
      "(If-None-Match: *). This tries it, with each right that a run needs, and tells the speed.\n"
      "Keys, endpoint and region come from where AWS's own tools take them: AWS_ACCESS_KEY_ID,\n"
      "AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL, ~/.aws.\n"
      "Examples:\n"
      "  lockstep store check s3://bucket\n"
      "  lockstep store check s3://bucket/runs --json\n"
      "  AWS_ENDPOINT_URL=https://minio.example.org lockstep store check s3://bucket\n"
      "\n"
      "Exit codes: 0 it can hold a run, 64 bad usage, 78 it cannot.");
  commands[checking] = [arguments] { return check(*arguments); };
}

}  // namespace lockstep
