#pragma once

#include <string>

/// Pieces of SVG pictures.
namespace windtunnel {

/// A coordinate, to a tenth of a unit.
std::string svg_number(double number);
/// A text at (x, y); `attributes` as they are written: text-anchor="end".
std::string svg_text(double x, double y, const std::string& text, const std::string& attributes);
/// A line in the text's colour, faint unless its `attributes` say otherwise.
std::string svg_rule(double x1, double y1, double x2, double y2,
                     const std::string& attributes = "stroke-opacity=\"0.3\"");
/// A line of a style class.
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& kind);

}  // namespace windtunnel
