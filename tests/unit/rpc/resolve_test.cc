// Names, over a resolver of our own: this program's getaddrinfo() comes before libc's.
#include "comm/rpc/resolve.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/rpc/asio_transport.h"
#include "tests/support/fails_with.h"

namespace lockstep::rpc {
namespace {

// Holds what the names are now. "slow" is answered when it is let go.
class Names {
 public:
  void set(const std::string& name, std::vector<std::string> addresses) {
    const std::lock_guard lock(mutex_);
    addresses_[name] = std::move(addresses);
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    is_free_ = true;
    changed_.notify_all();
  }
  std::optional<std::vector<std::string>> ask(const std::string& name) {
    std::unique_lock lock(mutex_);
    ++asked_;
    if (name == "slow") changed_.wait(lock, [this] { return is_free_; });
    ++answered_;
    changed_.notify_all();
    const auto it = addresses_.find(name);
    return it == addresses_.end() ? std::nullopt : std::optional(it->second);
  }
  void wait_answered(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answered_ >= count; });
  }
  int asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::string>> addresses_;
  bool is_free_ = false;
  int asked_ = 0;
  int answered_ = 0;
};

std::shared_ptr<Names> names;  // of the test that runs; a thread may outlive it

struct Answer {
  std::deque<addrinfo> entries;
  std::deque<sockaddr_storage> sockets;
};

}  // namespace

Answer* answer_of(const std::vector<std::string>& addresses) {
  auto* answer = new Answer;
  for (const std::string& text : addresses) {
    sockaddr_storage& socket = answer->sockets.emplace_back();
    auto* v4 = reinterpret_cast<sockaddr_in*>(&socket);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&socket);
    const bool is_v4 = ::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1;
    if (!is_v4) ::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr);
    socket.ss_family = is_v4 ? AF_INET : AF_INET6;
    addrinfo& entry = answer->entries.emplace_back();
    entry.ai_family = socket.ss_family;
    entry.ai_addr = reinterpret_cast<sockaddr*>(&socket);
    // freeaddrinfo() frees the answer by this.
    entry.ai_canonname = reinterpret_cast<char*>(answer);
    if (answer->entries.size() > 1) answer->entries[answer->entries.size() - 2].ai_next = &entry;
  }
  return answer;
}

}  // namespace lockstep::rpc

extern "C" int getaddrinfo(const char* name, const char*, const addrinfo*, addrinfo** out) {
  const auto mine = lockstep::rpc::names;
  const auto addresses = mine->ask(name);
  if (!addresses) return EAI_NONAME;
  *out = &lockstep::rpc::answer_of(*addresses)->entries.front();
  return 0;
}

extern "C" void freeaddrinfo(addrinfo* first) {
  delete reinterpret_cast<lockstep::rpc::Answer*>(first->ai_canonname);
}

namespace lockstep::rpc {
namespace {

class ResolveTest : public testing::Test {
 protected:
  void SetUp() override { names = std::make_shared<Names>(); }
  void TearDown() override { names->let_go(); }

  Result<Address> resolved(const std::string& host, int64_t timeout_ms = 30'000) {
    std::optional<Result<Address>> result;
    resolve(*loop_, {host, 4100}, timeout_ms, [&](Result<Address> r) { result = std::move(r); });
    EXPECT_FALSE(result) << "never from inside resolve()";
    while (!result) loop_->run_one(1'000);
    return *std::move(result);
  }

  std::unique_ptr<AsioLoop> loop_ = std::make_unique<AsioLoop>();
};

TEST_F(ResolveTest, ANameIsAskedForAnewEveryTime) {
  names->set("shoes-0.shoes", {"10.1.0.7"});
  EXPECT_EQ(*resolved("shoes-0.shoes"), (Address{"10.1.0.7", 4100}));
  names->set("shoes-0.shoes", {"10.1.0.9"});
  EXPECT_EQ(*resolved("shoes-0.shoes"), (Address{"10.1.0.9", 4100}));
}

TEST_F(ResolveTest, Ipv4ComesFirstAndIpv6WillDo) {
  names->set("both", {"fd00::1", "fd00::2", "10.1.0.7", "10.1.0.8"});
  names->set("six", {"fd00::1", "fd00::2"});
  EXPECT_EQ(resolved("both")->host, "10.1.0.7");
  EXPECT_EQ(resolved("six")->host, "fd00::1");
}

TEST_F(ResolveTest, ANameThatIsNotThereYetIsUnavailableAndNamed) {
  const auto result = resolved("shoes-0.shoes");
  EXPECT_THAT(result, FailsWith(Code::kUnavailable, lockstep::Names("shoes-0.shoes")));
}

TEST_F(ResolveTest, ASlowResolverCostsTheDeadlineAndItsLateAnswerNothing) {
  names->set("slow", {"10.1.0.7"});
  EXPECT_EQ(resolved("slow", 20).status().code(), Code::kTimeout);
  names->let_go();
  names->wait_answered(1);
  EXPECT_FALSE(loop_->run_one(50)) << "nobody waits for the answer any more";
}

TEST_F(ResolveTest, ALoopThatEndsDoesNotWaitForTheResolver) {
  resolve(*loop_, {"slow", 1}, 60'000, [](const Result<Address>&) { FAIL() << "nobody is left"; });
  while (names->asked() == 0) loop_->run_one(1);
  loop_.reset();
  names->let_go();
  names->wait_answered(1);
}

TEST_F(ResolveTest, AConnectionIsMadeToWhereTheNameIsNow) {
  AsioTransport transport(*loop_);
  std::shared_ptr<Connection> far;
  auto listener = transport.listen({"127.0.0.1", 0}, [&](auto c) { far = std::move(c); });
  ASSERT_TRUE(listener.is_ok());
  const Address named{"shoes-0.shoes", (*listener)->address().port};
  std::optional<Result<std::shared_ptr<Connection>>> result;
  const auto connect = [&] {
    result.reset();
    transport.connect(named, 5'000, [&](auto r) { result = std::move(r); });
    while (!result) loop_->run_one(1'000);
  };
  connect();
  EXPECT_EQ(result->status().code(), Code::kUnavailable);
  names->set("shoes-0.shoes", {"127.0.0.1"});
  connect();
  ASSERT_TRUE(result->is_ok()) << result->status().message();
}

}  // namespace
}  // namespace lockstep::rpc
