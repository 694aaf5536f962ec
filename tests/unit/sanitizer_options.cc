// Every unit test asks this of a sanitizer. Only the programs of a sanitizer build link it.

namespace {

// An allocation that cannot be had fails as it does without a sanitizer, and does not end the
// program: that the caller says so is what tests look for.
constexpr const char* kOptions = "allocator_may_return_null=1";

}  // namespace

extern "C" {
// The names are the sanitizers' own.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
const char* __asan_default_options() {
  return kOptions;
}
// NOLINTNEXTLINE(bugprone-reserved-identifier)
const char* __tsan_default_options() {
  return kOptions;
}
}
