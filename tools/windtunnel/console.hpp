#pragma once

#include <iosfwd>
#include <string_view>

#include "report/document.hpp"
#include "report/progress_line.hpp"
#include "report/summary_text.hpp"
#include "windtunnel/command_line.hpp"

namespace windtunnel {

/// Opens /dev/null in place of closed standard streams, so that no output file becomes one of them, turns the signal of a
/// closed pipe into a failed write, and makes std::cerr safe for terminals.
void guard_standard_streams();

/// The only way to stdout: all of `text`, safe for terminals, or EnvironmentError. A JSON document keeps its meaning: what is
/// spelt out is spelt as in JSON strings.
void print_result(std::string_view text);
/// The same of what is made for people, unless JSON is asked for: no wider than the terminal, or than COLUMNS where that is set. What goes
/// into a file or a pipe keeps its lines.
void print_result(const CommandLine& line, std::string_view text);
/// The text of a document, or its JSON where that is asked for.
void print_result(const CommandLine& line, const document::Document& document);
/// Characters that a line of results may have: those of the terminal, or COLUMNS; 0 in a file, in a pipe and in JSON.
int result_width(const CommandLine& line);
/// Lets sentences be made as wide as print_result() has room for.
void fit_text(const CommandLine& line);

/// A line on stderr. Failure is ignored: there is nobody left to tell.
void print_message(std::string_view text);
/// The same of what nobody must know: nothing with --quiet.
void print_note(const CommandLine& line, std::string_view text);
/// stderr, or nowhere with --quiet.
std::ostream& notes_of(const CommandLine& line);

/// As --color says; by itself, colours when stdout is a terminal, unless NO_COLOR is set or TERM is dumb.
Colour colour_of_results(const CommandLine& line);

/// Progress on stderr: in place for somebody at a terminal, in lines now and then elsewhere, hidden with --quiet.
ProgressStyle progress_style(const CommandLine& line);

}  // namespace windtunnel
