// Tests check a failure by its code, its subjects and its advice. The sentences around these words
// are free to change.
//
//   EXPECT_THAT(open("a.npz"), FailsWith(Code::kBadData, Names("a.npz", "labels"),
//   Advises("--format"))); EXPECT_THAT(refused({"model.name=cn"}), Suggests("cnn"));  // of a
//   message
#pragma once

#include <gmock/gmock.h>

#include <ostream>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

namespace fails_with {

using Message = ::testing::Matcher<const std::string&>;

template <typename... Words>
Message all_of(const Words&... words) {
  return ::testing::AllOfArray(std::vector<Message>{Message(::testing::HasSubstr(words))...});
}

inline Status status_of(const Status& status) {
  return status;
}
template <typename T>
Status status_of(const Result<T>& result) {
  return result.status();
}

class Matcher {
 public:
  using is_gtest_matcher = void;

  Matcher(Code code, const std::vector<Message>& messages)
      : code_(code), message_(::testing::AllOfArray(messages)) {}

  template <typename Outcome>
  bool MatchAndExplain(const Outcome& outcome, ::testing::MatchResultListener* listener) const {
    const Status status = status_of(outcome);
    *listener << code_name(status.code()) << ": " << status.message();
    return status.code() == code_ && message_.Matches(status.message());
  }
  void DescribeTo(std::ostream* out) const {
    *out << "fails with " << code_name(code_) << " and a message that ";
    message_.DescribeTo(out);
  }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "does not fail with " << code_name(code_) << " and a message that ";
    message_.DescribeTo(out);
  }

 private:
  Code code_;
  Message message_;
};

}  // namespace fails_with

// The message names its subjects: a file, a member, a key, a place in them, a value.
template <typename... Subjects>
fails_with::Message Names(const Subjects&... subjects) {
  return fails_with::all_of(subjects...);
}

// The message says what is wrong, in words that no other failure of the same subject has.
template <typename... Facts>
fails_with::Message Says(const Facts&... facts) {
  return fails_with::all_of(facts...);
}

// The message says what to do, with these keywords.
template <typename... Keywords>
fails_with::Message Advises(const Keywords&... keywords) {
  return fails_with::all_of(keywords...);
}

// The message offers a name for one that is not known.
inline fails_with::Message Suggests(const std::string& name) {
  return ::testing::HasSubstr("did you mean " + name + "?");
}

// Matches a Status or a Result that failed with this code, and whose message is as `about` wants
// it.
template <typename... About>
fails_with::Matcher FailsWith(Code code, const About&... about) {
  return {code, {fails_with::Message(about)...}};
}

}  // namespace lockstep
