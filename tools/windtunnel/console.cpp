#include "windtunnel/console.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <system_error>

#include "core/problem.hpp"

namespace windtunnel {
namespace {

/// Zero, or the reason why not all of `text` was written.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void guard_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  // The lowest free descriptor is taken, in order; reading from stdin and writing to stdout then fails as it should.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) == -1)
      ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
}

void print_result(std::string_view text) {
  if (const int reason = write_all(STDOUT_FILENO, text); reason != 0)
    throw EnvironmentError("cannot write the result to stdout: " +
                           std::generic_category().message(reason));
}

void print_message(std::string_view text) { write_all(STDERR_FILENO, std::string(text) + "\n"); }

Colour colour_of_results(const CommandLine& line) {
  if (line.colour == ColourChoice::always) return Colour::always;
  if (line.colour == ColourChoice::never) return Colour::never;
  const bool wanted = ::isatty(STDOUT_FILENO) == 1 && environment("NO_COLOR").empty() &&
                      environment("TERM") != "dumb";
  return wanted ? Colour::always : Colour::never;
}

ProgressStyle progress_style(const CommandLine& line) {
  const bool shown = line.verbosity == Verbosity::normal && ::isatty(STDERR_FILENO) == 1;
  return shown ? ProgressStyle::in_place : ProgressStyle::hidden;
}

}  // namespace windtunnel
