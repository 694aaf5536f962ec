#include "data/source/stores/s3_listing.h"

#include <gtest/gtest.h>

namespace lockstep::source {
namespace {

std::string page(const std::string& inside) {
  return "<?xml version=\"1.0\"?><ListBucketResult "
         "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
         inside + "</ListBucketResult>";
}

TEST(S3Listing, KeysWithOddCharactersComeOutAsTheyAre) {
  const auto parsed = parse_s3_page(
      page("<Contents><Key>a b+c%20&amp;&#xe9;&lt;.jpg</Key><ETag>&quot;abc&quot;</ETag>"
           "<Size>12</Size></Contents><IsTruncated>false</IsTruncated>"));
  ASSERT_TRUE(parsed.is_ok());
  ASSERT_EQ(parsed->objects.size(), 1U);
  EXPECT_EQ(parsed->objects[0].name, "a b+c%20&\xc3\xa9<.jpg");
  EXPECT_EQ(parsed->objects[0].version, "\"abc\"");
  EXPECT_EQ(parsed->objects[0].bytes, 12U);
  EXPECT_EQ(parsed->next, "");
}

TEST(S3Listing, APageThatIsNotTheLastNamesTheNext) {
  const auto parsed = parse_s3_page(
      page("<IsTruncated>true</IsTruncated><NextContinuationToken>t/+=</NextContinuationToken>"));
  ASSERT_TRUE(parsed.is_ok());
  EXPECT_EQ(parsed->next, "t/+=");
}

TEST(S3Listing, WhatIsNoPageIsNotTakenForAnEmptyOne) {
  for (const std::string& text :
       {std::string("<html>busy</html>"), page("<Contents><Key>a</Key></Contents>"),
        page("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
        page("<Contents><Key>a&bad;</Key><Size>1</Size></Contents>"),
        page("<Contents><Key>a&#0;</Key><Size>1</Size></Contents>"),
        page("<IsTruncated>true</IsTruncated>")})
    EXPECT_EQ(parse_s3_page(text).status().code(), Code::kUnavailable) << text;
}

TEST(S3Listing, ErrorsAreToldByTheirCodeAndNothingElseOfThem) {
  EXPECT_EQ(s3_error_code("<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA"
                          "</AWSAccessKeyId></Error>"),
            "SignatureDoesNotMatch");
  EXPECT_EQ(s3_error_code("<Error><Code>no word\n</Code></Error>"), "");
  EXPECT_EQ(s3_error_code("<html>"), "");
}

}  // namespace
}  // namespace lockstep::source
