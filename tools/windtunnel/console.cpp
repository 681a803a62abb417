#include "windtunnel/console.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <streambuf>
#include <string>

#include "core/open_file.hpp"
#include "core/problem.hpp"
#include "core/terminal_safe.hpp"
#include "report/terminal_text.hpp"
#include "windtunnel/signals.hpp"

namespace windtunnel {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Characters that a line may have: those of the terminal, or COLUMNS; 0 in a file and in a pipe.
int width_of(int descriptor) {
  int width = 0;
  const std::string columns = environment("COLUMNS");
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  winsize size{};
  if (width <= 0 && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  constexpr int least = 40;  // narrower, tables are unreadable however they are broken
  return width <= 0 ? 0 : std::max(width, least);
}

/// Safe for terminals, and no wider than the one that messages go to.
void write_message(std::string_view text) {
  const std::string shown = for_terminal(text);
  const int width = width_of(STDERR_FILENO);
  detail::write_whole(STDERR_FILENO, width == 0 ? shown : fitted_text(shown, width));
  note_message();
}

/// The buffer of std::cerr: a line at a time. Failure is ignored: there is nobody left to tell.
class MessageStream final : public std::streambuf {
 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    begun_.append(text, static_cast<std::size_t>(size));
    const std::size_t end = begun_.rfind('\n') + 1;  // 0 where there is none
    if (end > 0) write_message(std::string_view(begun_).substr(0, end));
    begun_.erase(0, end);
    return size;
  }
  int_type overflow(int_type letter) override {
    const char text = traits_type::to_char_type(letter);
    if (!traits_type::eq_int_type(letter, traits_type::eof())) xsputn(&text, 1);
    return traits_type::not_eof(letter);
  }
  /// A question, or a line that is written over itself.
  int sync() override {
    if (begun_.empty()) return 0;
    detail::write_whole(STDERR_FILENO, for_terminal(begun_));
    note_message();
    begun_.clear();
    return 0;
  }

 private:
  std::string begun_;  ///< a line without its end
};

void write_result(std::string_view text) {
  if (!detail::write_whole(STDOUT_FILENO, text))
    throw EnvironmentError("cannot write the result to stdout: " + detail::last_error().message());
}

}  // namespace

int result_width(const CommandLine& line) {
  return line.format == ResultFormat::json ? 0 : width_of(STDOUT_FILENO);
}

void guard_standard_streams() {
  // Writing then fails, with a reason.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  // The lowest free descriptor is taken, in order; reading from stdin and writing to stdout then fails as it should.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) == -1)
      ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  static auto* const messages = new MessageStream;  // std::cerr is flushed after all destructors
  std::cerr.rdbuf(messages);
  std::cerr.unsetf(std::ios::unitbuf);
}

void print_result(std::string_view text) { write_result(for_terminal(text)); }

void fit_text(const CommandLine& line) {
  if (const int width = result_width(line); width > 0) detail::set_text_width(width);
}

void print_result(const CommandLine& line, std::string_view text) {
  const int width = result_width(line);
  write_result(width == 0 ? for_terminal(text) : fitted_text(for_terminal(text), width));
}

void print_result(const CommandLine& line, const document::Document& document) {
  print_result(line, line.format == ResultFormat::json
                         ? json_of(document)
                         : text_of(document, colour_of_results(line)));
}

void print_message(std::string_view text) { write_message(std::string(text) + "\n"); }

void print_note(const CommandLine& line, std::string_view text) {
  if (line.verbosity == Verbosity::normal) print_message(text);
}

std::ostream& notes_of(const CommandLine& line) {
  static std::ostream nowhere(nullptr);
  return line.verbosity == Verbosity::normal ? std::cerr : nowhere;
}

Colour colour_of_results(const CommandLine& line) {
  if (line.colour == ColourChoice::always) return Colour::always;
  if (line.colour == ColourChoice::never) return Colour::never;
  const bool wanted = ::isatty(STDOUT_FILENO) == 1 && environment("NO_COLOR").empty() &&
                      environment("TERM") != "dumb";
  return wanted ? Colour::always : Colour::never;
}

ProgressStyle progress_style(const CommandLine& line) {
  if (line.verbosity == Verbosity::quiet) return ProgressStyle::hidden;
  return ::isatty(STDERR_FILENO) == 1 ? ProgressStyle::in_place : ProgressStyle::lines;
}

}  // namespace windtunnel
