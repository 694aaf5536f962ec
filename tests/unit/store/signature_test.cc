#include "comm/store/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/http/percent_encoding.h"

namespace lockstep::store {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// The keys and the moment of the examples in the Amazon S3 API Reference, "Signature Calculations
// for the Authorization Header".
Signer example() {
  return {.keys = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", {}},
          .region = "us-east-1",
          .now_s = 1'369'353'600};  // 2013-05-24T00:00:00Z
}

std::string authorization(http::HttpRequest request, const Signer& signer = example()) {
  sign(request, signer);
  return request.headers.back();
}

TEST(Signature, IsAmazonsOwnInItsExamples) {
  EXPECT_EQ(authorization({.url = "https://examplebucket.s3.amazonaws.com/?lifecycle="}),
            "Authorization: AWS4-HMAC-SHA256 "
            "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
            "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_THAT(authorization({.url = "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J"}),
              EndsWith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(Signature, CoversTheHeadersOfAmazonAndNoOther) {
  http::HttpRequest request{.method = http::Method::kPut,
                            .url = "http://h:9000/b/k",
                            .body = "x",
                            .headers = {"If-None-Match: *", "X-Amz-Checksum-Crc32c:  abc="}};
  Signer signer = example();
  signer.keys.session_token = "t0";
  sign(request, signer);
  EXPECT_THAT(request.headers.back(),
              HasSubstr("SignedHeaders=host;x-amz-checksum-crc32c;x-amz-content-sha256;x-amz-date;"
                        "x-amz-security-token,"));
  EXPECT_THAT(request.headers, Contains("x-amz-security-token: t0"));
}

TEST(Signature, ABodyInTheClearIsHashedAndOneOverTlsIsNot) {
  for (const char* url : {"http://h/b/k", "https://h/b/k"}) {
    http::HttpRequest request{.method = http::Method::kPut, .url = url, .body = "x"};
    sign(request, example());
    const bool is_hashed =
        std::ranges::find(request.headers, "x-amz-content-sha256: UNSIGNED-PAYLOAD") ==
        request.headers.end();
    EXPECT_EQ(is_hashed, std::string(url).starts_with("http://")) << url;
  }
}

TEST(Signature, TheUsualPortIsNoPartOfTheHostAndAnotherOneIs) {
  const std::string plain = authorization({.url = "http://h/b/k"});
  EXPECT_EQ(authorization({.url = "http://h:80/b/k"}), plain);
  EXPECT_NE(authorization({.url = "http://h:9000/b/k"}), plain);
  EXPECT_NE(authorization({.url = "http://h:443/b/k"}), plain);
  EXPECT_THAT(plain, Not(HasSubstr(example().keys.secret)));
}

TEST(Signature, NamesAreEncodedAsTheyAreSigned) {
  EXPECT_EQ(http::percent_encoded("a b+c%d/e~\xc3\xa9", true), "a%20b%2Bc%25d/e~%C3%A9");
  EXPECT_EQ(http::percent_encoded("a/b", false), "a%2Fb");
}

}  // namespace
}  // namespace lockstep::store
