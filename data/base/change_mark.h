// Tells that a file was written to although its size and time of change say that it was not, as
// `touch -r`, `cp -p` and `rsync --times` leave it. The kernel notes every write and every such
// setting of times in the time of the inode (ctime), which no program can set.
//
// A mark is a hint. New rights, another owner, a link, a rename or an attribute change the time of
// the inode, too, but no byte. So code that can compare the content does so before it calls a file
// rewritten; is_rewritten() judges the other files.
//
// A copy, or another mount, has other marks for the same content. So no mark belongs in a
// fingerprint.
//
// Thread-safety: free functions, any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::data {

// The mark is never 0. It leaves the bit kTouchedMark to the keeper of the mark: the file was
// touched since, and no byte that could be compared had changed.
inline constexpr uint64_t kTouchedMark = 2;
uint64_t change_mark(const struct stat& info);

// Neither the mark nor its lower 32 bits are ever 0.
uint64_t content_mark(std::span<const uint8_t> content);

// True if the marks of an open file tell anything. On FUSE they do not: the time of an inode may be
// any there.
bool has_change_marks(int fd);

// Judges a file, open as `fd`, that has another mark than `then` and whose content cannot be
// compared. True if it was rewritten: no rename, link, right or owner explains the other mark.
bool is_rewritten(int fd, const std::string& path, const struct stat& now, uint64_t then);

}  // namespace lockstep::data
