// A listing of a bucket, page by page.
//
// Thread-safety: a free function; any thread.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/status.h"
#include "comm/store/s3_answers.h"

namespace lockstep::store {

// The items of all pages. `ask` gets a page, with its retries. `place`: what is listed, for
// messages. kBadData for more than `most` items, and for a list that has no end.
template <typename Item>
Result<std::vector<Item>> all_pages(const std::string& place, size_t most, const Query& query,
                                    const std::function<Result<Page<Item>>(const Query&)>& ask) {
  constexpr size_t kEmptyPages = 1'000;  // in a row; there may be some
  std::vector<Item> items;
  Query next;
  size_t empty_pages = 0;
  do {
    Query asked = query;
    asked.insert(next.begin(), next.end());
    LOCKSTEP_ASSIGN_OR_RETURN(Page<Item> page, ask(asked));
    empty_pages = page.items.empty() ? empty_pages + 1 : 0;
    std::ranges::move(page.items, std::back_inserter(items));
    if (items.size() > most)
      return Status(Code::kBadData,
                    place + " holds more than " + std::to_string(most) + " objects");
    if ((!next.empty() && page.next == next) || empty_pages > kEmptyPages)
      return Status(Code::kBadData,
                    "the server lists " + place + " without end: " +
                        (empty_pages > kEmptyPages ? "too many pages in a row have no objects"
                                                   : "a page names itself as the next one"));
    next = std::move(page.next);
  } while (!next.empty());
  return items;
}

}  // namespace lockstep::store
