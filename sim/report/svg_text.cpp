#include "report/svg_text.hpp"

#include "report/html_text.hpp"
#include "report/number_text.hpp"

namespace windtunnel {

std::string svg_number(double number) { return fixed_text(number, 1); }

std::string svg_text(double x, double y, const std::string& text, const std::string& attributes) {
  return "<text x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" " + attributes + ">" +
         html::escaped(text) + "</text>\n";
}

std::string svg_rule(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return "<line x1=\"" + svg_number(x1) + "\" y1=\"" + svg_number(y1) + "\" x2=\"" +
         svg_number(x2) + "\" y2=\"" + svg_number(y2) + "\" stroke=\"currentColor\" " + attributes +
         "/>\n";
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& kind) {
  return "<line class=\"" + kind + "\" x1=\"" + svg_number(x1) + "\" y1=\"" + svg_number(y1) +
         "\" x2=\"" + svg_number(x2) + "\" y2=\"" + svg_number(y2) + "\"/>\n";
}

}  // namespace windtunnel
