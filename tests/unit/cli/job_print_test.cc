#include "deploy/cli/job/job_print.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "deploy/cli/job/job_schema.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::context;
using ::testing::HasSubstr;
using testing::resolved;
using testing::values_of;

TEST(JobPrint, TheResolvedJobReadsBackAsItself) {
  const wire::JobSpec job = resolved({"data.train.path=/a b/: #\"\\'\xc3\xa9", "job=null",
                                      "data.transforms=[]", "optimizer.lr=0.1234567890123"});
  const auto again = resolve_job(values_of(job_yaml(job)), context());
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_TRUE(MessageDifferencer::Equals(*again, job)) << job_yaml(job);
}

TEST(JobPrint, AnyNumbersAndNamesReadBackAsThemselves) {
  rc::check([] {
    wire::JobSpec job = resolved();
    job.mutable_optimizer()->set_lr(*rc::gen::map(
        rc::gen::positive<double>(), [](double x) { return std::isfinite(x) && x > 0 ? x : 0.5; }));
    job.set_seed(*rc::gen::inRange<uint64_t>(0, uint64_t{1} << 62));
    job.mutable_data()->mutable_eval()->set_path(
        "/" + *rc::gen::container<std::string>(rc::gen::inRange<char>(32, 127)));
    const auto values = parse_job_yaml(job_yaml(job), "again");
    RC_ASSERT(values.is_ok());
    const auto again = resolve_job(*values, context());
    RC_ASSERT(again.is_ok());
    RC_ASSERT(MessageDifferencer::Equals(*again, job));
  });
}

}  // namespace
}  // namespace lockstep
