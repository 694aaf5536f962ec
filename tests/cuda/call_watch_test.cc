// The watch tells of a call that does not return, in a closed generation only.
#include "comm/collectives/nccl/call_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep::nccl {
namespace {

struct Watched {
  explicit Watched(int looks) : watch({[this](const Status& why) { told.push_back(why); }, looks}) {
    watch.begin_generation([this] { return is_closed; });
  }
  void look(int times) {
    for (int i = 0; i < times; ++i) watch.look();
  }
  std::vector<Status> told;
  bool is_closed = false;
  CallWatch watch;
};

TEST(CallWatch, TellsOnceOfACallThatDoesNotReturnInAClosedGeneration) {
  Watched w(3);
  const CallWatch::Call call(w.watch, "enqueue a bucket");
  w.look(100);
  EXPECT_TRUE(w.told.empty()) << "a peer may still come";
  w.is_closed = true;
  w.look(2);
  EXPECT_TRUE(w.told.empty());
  w.look(100);
  ASSERT_EQ(w.told.size(), 1u);
  EXPECT_THAT(w.told[0],
              FailsWith(Code::kInternal, Says("enqueue a bucket"), Advises("start again")));
}

TEST(CallWatch, CountsNoLooksOfAnotherCallNorOutsideOfCalls) {
  Watched w(3);
  w.is_closed = true;
  for (int i = 0; i < 10; ++i) {
    {
      const CallWatch::Call call(w.watch, "a");
      w.look(3);  // the first look sees that it is another call
    }
    w.look(3);
  }
  EXPECT_TRUE(w.told.empty());
}

TEST(CallWatch, CountsAnewWhenTheNextGenerationBegins) {
  Watched w(3);
  w.is_closed = true;
  const CallWatch::Call call(w.watch, "connect");
  w.look(3);
  w.is_closed = false;
  w.look(1);
  w.is_closed = true;
  w.look(2);
  EXPECT_TRUE(w.told.empty());
  w.look(1);
  EXPECT_EQ(w.told.size(), 1u);
}

}  // namespace
}  // namespace lockstep::nccl
