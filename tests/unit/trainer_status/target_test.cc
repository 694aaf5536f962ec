#include "coordinator/trainer_status/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/fails_with.h"

namespace lockstep::trainer {
namespace {

using Variables = std::map<std::string, std::string>;

Result<std::optional<Target>> target_from(const Variables& variables) {
  return target_of([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

constexpr char kReal[] =
    "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443/apis/"
    "trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/shoes/status";

TEST(TrainerTarget, IsWhatKubeflowTrainerPutsIntoThePod) {
  const auto target = target_from({{kUrlVariable, kReal},
                                   {kAuthorityVariable, "/var/run/secrets/kubeflow/trainer/ca.crt"},
                                   {kTokenVariable, "/var/run/secrets/kubeflow/trainer/token"}});
  ASSERT_TRUE(target.is_ok()) << target.status().message();
  ASSERT_TRUE(target->has_value());
  const Target& t = **target;
  EXPECT_TRUE(t.is_tls);
  EXPECT_EQ(t.address.host, "kubeflow-trainer-controller-manager.kubeflow-system.svc");
  EXPECT_EQ(t.address.port, 10443);
  EXPECT_EQ(t.path, "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/shoes/status");
  EXPECT_EQ(t.authority_path, "/var/run/secrets/kubeflow/trainer/ca.crt");
  EXPECT_EQ(t.token_path, "/var/run/secrets/kubeflow/trainer/token");
}

TEST(TrainerTarget, WithoutAUrlNobodyWantsReports) {
  for (const Variables& none :
       {Variables{}, Variables{{kUrlVariable, ""}, {kTokenVariable, "t"}}}) {
    const auto target = target_from(none);
    ASSERT_TRUE(target.is_ok()) << target.status().message();
    EXPECT_FALSE(target->has_value());
  }
}

TEST(TrainerTarget, AMissingFileIsNamed) {
  const auto without = [](const char* missing) {
    Variables all = {{kUrlVariable, kReal}, {kAuthorityVariable, "c"}, {kTokenVariable, "t"}};
    all.erase(missing);
    return target_from(all);
  };
  for (const char* missing : {kAuthorityVariable, kTokenVariable})
    EXPECT_THAT(without(missing), FailsWith(Code::kConfig, Names(missing)));
}

TEST(TrainerTarget, PortPathAndBracketsMayBeAsInAnyUrl) {
  const auto expect = [](const char* url, const rpc::Address& address, const char* path) {
    const auto target = parse_url(url);
    ASSERT_TRUE(target.is_ok()) << target.status().message();
    EXPECT_EQ(target->address, address) << url;
    EXPECT_EQ(target->path, path) << url;
  };
  expect("https://server", {"server", 443}, "/");
  expect("https://server:8443?x=1", {"server", 8443}, "/?x=1");
  expect("https://[fd00::1]/p", {"fd00::1", 443}, "/p");
  expect("https://[fd00::1]:8443/p", {"fd00::1", 8443}, "/p");
  expect("http://127.0.0.1:80/p", {"127.0.0.1", 80}, "/p");
  expect("http://localhost/p", {"localhost", 80}, "/p");
}

TEST(TrainerTarget, AUrlThatMeansSomethingElseIsRefused) {
  const std::string long_path(kUrlBytes, 'a');
  for (const std::string& url : {std::string("ftp://server/"),
                                 std::string("server:8443/"),
                                 std::string("https://"),
                                 std::string("https:///path"),
                                 std::string("https://:443/"),
                                 std::string("https://a:0/"),
                                 std::string("https://a:65536/"),
                                 std::string("https://a:8443x/"),
                                 std::string("https://a:/"),
                                 std::string("https://user@a/"),
                                 std::string("https://user:word@a:443/"),
                                 std::string("https://a/#there"),
                                 std::string("https://.svc:443/"),
                                 std::string("https://a\\b/"),
                                 std::string("https://fd00::1/"),
                                 std::string("https://[fd00::1/"),
                                 std::string("https://a/x y"),
                                 std::string("https://a/\r\nX: y"),
                                 std::string("https://a/") + '\0',
                                 std::string("https://a/\xc3\xa4"),
                                 "https://a/" + long_path,
                                 std::string("http://10.1.2.3/"),
                                 std::string("http://server/"),
                                 std::string("http://127.0.0.1.example/"),
                                 std::string("HTTPS://a/")}) {
    const auto target = parse_url(url);
    EXPECT_THAT(target, FailsWith(Code::kConfig, Names(kUrlVariable))) << url;
  }
}

}  // namespace
}  // namespace lockstep::trainer
