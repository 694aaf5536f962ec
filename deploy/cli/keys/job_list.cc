#include "deploy/cli/keys/job_list.h"

#include <charconv>

namespace lockstep {
namespace {

constexpr std::string_view kElement = ".N.";  // in the row of a list's keys
constexpr size_t kElementDigits = 4;

}  // namespace

std::string_view element_digits(const JobKey& row, std::string_view key) {
  const size_t place = row.key.find(kElement);
  if (place == std::string_view::npos) return {};
  const std::string_view list = row.key.substr(0, place + 1);                 // "data.mix."
  const std::string_view leaf = row.key.substr(place + kElement.size() - 1);  // ".path"
  if (!key.starts_with(list) || !key.ends_with(leaf) || key.size() <= list.size() + leaf.size())
    return {};
  const auto digits = key.substr(list.size(), key.size() - list.size() - leaf.size());
  const bool is_number = digits.size() <= kElementDigits &&
                         digits.find_first_not_of("0123456789") == std::string_view::npos &&
                         (digits == "0" || digits[0] != '0');
  return is_number ? digits : std::string_view();
}

const JobKey* find_job_key(std::string_view key) {
  for (const JobKey& row : job_keys()) {
    const bool is_its = list_of(row).empty() ? row.key == key : !element_digits(row, key).empty();
    if (is_its) return &row;
  }
  return nullptr;
}

bool is_job_list(std::string_view key) {
  for (const JobKey& row : job_keys())
    if (!key.empty() && list_of(row) == key) return true;
  return false;
}

std::string_view list_of(const JobKey& row) {
  const size_t place = row.key.find(kElement);
  return place == std::string_view::npos ? std::string_view() : row.key.substr(0, place);
}

std::string numbered_key(const JobKey& row, size_t element) {
  const std::string_view list = list_of(row);
  if (list.empty()) return std::string(row.key);
  return std::string(list) + "." + std::to_string(element) +
         std::string(row.key.substr(list.size() + kElement.size() - 1));
}

size_t element_of(std::string_view key) {
  const JobKey* const row = find_job_key(key);
  size_t element = 0;
  if (row == nullptr) return element;
  const std::string_view digits = element_digits(*row, key);
  std::from_chars(digits.data(), digits.data() + digits.size(), element);
  return element;
}

}  // namespace lockstep
