#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/compare_figures.hpp"
#include "units/quantity.hpp"

/// Bars of several runs on a common scale.
namespace windtunnel::html {

inline constexpr const char* time_pointer = "/iteration_time_s";

Seconds longest_time(const ComparedFigures& figures);
/// Times in the unit that suits the longest run.
std::function<std::string(double)> times_of(const ComparedFigures& figures);
/// The axis of bars of which one as long as their place is `whole`.
std::string time_axis(Seconds whole);

/// The text at `pointer` of a run; empty where there is none.
std::string string_at(const ComparedFigures& figures, std::size_t run, const std::string& pointer,
                      FigureSource source = FigureSource::report);

/// The lines of the breakdown that `object` holds, as pieces of a bar that is `whole` long.
std::vector<Piece> pieces_of(const JsonValue* object, Seconds whole);
/// What the pieces' colours mean: the lines that some run has.
std::string line_legend(const ComparedFigures& figures);

/// Bars under each other with their axis below: rows of label, bar and number, as HTML.
std::string chart(const std::string& caption, std::vector<std::vector<std::string>> rows,
                  const std::string& scale);

}  // namespace windtunnel::html
