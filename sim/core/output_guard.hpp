#pragma once

#include <filesystem>
#include <vector>

#include "core/problem.hpp"

namespace windtunnel {

/// Names the files that this process was asked to write, all of them, before it reads any. From then on each of them is guarded:
/// expect_no_output refuses to read it under whatever name (a link, another spelling), and expect_not_read to write what was
/// read all the same. InputError when two of them are the same file. State of the process, like the files themselves: no reader and no command can then forget the question.
void announce_outputs(const std::vector<std::filesystem::path>& outputs);

/// Error for two outputs that are the same file, given as the user named them.
InputError same_outputs(const std::filesystem::path& first, const std::filesystem::path& second);

/// Why a file is read: to use what it says, or to write it anew with some of it kept.
enum class ReadFor { use, rewriting };

/// InputError, naming both, when `input` is the same file as an announced output.
void expect_no_output(const std::filesystem::path& input);

/// To be called before `output` is written: InputError when somebody tried to read it as an input, even where that error was
/// caught. Its guard ends here.
void expect_not_read(const std::filesystem::path& output);

}  // namespace windtunnel
