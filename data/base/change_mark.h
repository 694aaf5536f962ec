// Tells that a file was written to although its size and time of change say that it was not, as
// `touch -r`, `cp -p` and `rsync --times` leave it. The kernel notes every write and every such
// setting of times in the time of the inode (ctime), which nobody can set.
//
// A mark is a hint. Other rights, another owner, a link, a rename or an attribute change the time
// of the inode, too, and no byte. So whoever can compares the content before it calls a file
// rewritten; is_rewritten() judges the rest.
//
// A copy, or another mount, has other marks of the same content. So no mark belongs into a
// fingerprint.
//
// Thread-safety: free functions, any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::data {

// Never 0. Leaves a bit to the keeper of a mark: the file was touched since, and no byte of it that
// could be compared was another one.
inline constexpr uint64_t kTouchedMark = 2;
uint64_t change_mark(const struct stat& info);

// Never 0, nor are its lower 32 bits.
uint64_t content_mark(std::span<const uint8_t> content);

// Whether marks of an open file tell anything. Not on FUSE, where the time of an inode may be any.
bool has_change_marks(int fd);

// Whether a file with other marks than `then`, open as `fd`, was rewritten, where its content
// cannot be compared: no rename, link, right or owner explains the other mark.
bool is_rewritten(int fd, const std::string& path, const struct stat& now, uint64_t then);

}  // namespace lockstep::data
