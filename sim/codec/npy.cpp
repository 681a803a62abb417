#include "codec/npy.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "core/file_io.hpp"
#include "core/problem.hpp"

namespace windtunnel {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t most_axes = 32;  ///< NumPy's own limit
/// Bytes of a file with as many numbers as a tensor may have, of eight bytes each, and its header.
constexpr std::size_t largest_npy = most_tensor_values * 8 + (std::size_t{1} << 20);

/// Content of the header.
struct Header {
  std::string type;  ///< "<f4"
  std::vector<std::size_t> shape;
  bool is_fortran = false;
  std::size_t data = 0;  ///< where the numbers begin
};

class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& file)
      : source_(read_source(file, {.largest = largest_npy, .remark = " (2^27 numbers)"})) {}

  Tensor read() {
    header_ = read_header();
    Tensor tensor;
    tensor.source = source_->name;
    const std::size_t count = lay_out(tensor);
    const std::size_t width = width_of_type(tensor);
    check_length(count, width);
    tensor.values = transposed(numbers(count, width));
    check_finite(tensor.values);
    return tensor;
  }

 private:
  [[noreturn]] void refuse(const std::string& message, const std::string& suggestion = {}) const {
    const Origin origin{OriginKind::file, source_, 0, 0, 0};
    throw InputError({{origin, {}, message, suggestion}});
  }

  std::uint8_t byte(std::size_t at) const {
    if (at >= source_->text.size()) refuse("the file ends inside its header");
    return static_cast<std::uint8_t>(source_->text[at]);
  }

  Header read_header() {
    const std::string& text = source_->text;
    if (!text.starts_with(magic)) refuse("this is no .npy file", "write it with numpy.save");
    const int version = byte(magic.size());
    if (version < 1 || version > 3)
      refuse("the file is of .npy version " + std::to_string(version) + ", known are 1 to 3");
    const std::size_t length_at = magic.size() + 2;
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    std::size_t length = 0;
    for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | byte(length_at + i);
    Header header;
    header.data = length_at + length_bytes + length;
    if (header.data > text.size()) refuse("the file ends inside its header");
    rest_ = std::string_view(text).substr(length_at + length_bytes, length);
    parse_dictionary(header);
    return header;
  }

  // The header is a Python dictionary of three known keys: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.

  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
  }
  bool accept(std::string_view token) {
    skip_blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token))
      refuse("the header is damaged: \"" + std::string(token) + "\" is missing before \"" +
             std::string(rest_.substr(0, 20)) + "\"");
  }

  std::string parse_string() {
    const char* const quote = accept("'") ? "'" : "\"";
    if (*quote == '"') expect(quote);
    const std::size_t end = rest_.find(*quote);
    if (end == std::string_view::npos) refuse("the header is damaged: a text has no end");
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::vector<std::size_t> parse_shape() {
    std::vector<std::size_t> shape;
    expect("(");
    while (!accept(")")) {
      skip_blanks();
      std::size_t axis = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), axis);
      if (error != std::errc{}) refuse("the header is damaged: the shape is no list of lengths");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      shape.push_back(axis);
      if (shape.size() > most_axes) refuse("the array has more than 32 axes");
      if (!accept(",")) {
        expect(")");
        break;
      }
    }
    return shape;
  }

  void parse_dictionary(Header& header) {
    bool has_type = false, has_order = false, has_shape = false;
    expect("{");
    while (!accept("}")) {
      const std::string key = parse_string();
      expect(":");
      if (key == "descr" && !std::exchange(has_type, true)) {
        skip_blanks();
        if (rest_.starts_with('['))
          refuse("the array is of records", "save one field of it as an array of its own");
        header.type = parse_string();
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header.is_fortran = accept("True");
        if (!header.is_fortran) expect("False");
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        header.shape = parse_shape();
      } else {
        refuse("the header is damaged: key \"" + key + "\" is unknown or stands there twice");
      }
      if (!accept(",")) {
        expect("}");
        break;
      }
    }
    skip_blanks();
    if (!has_type || !has_order || !has_shape || !rest_.empty())
      refuse("the header is damaged: it needs descr, fortran_order and shape, and no more");
  }

  /// Rows and columns from the shape; the number of values.
  std::size_t lay_out(Tensor& tensor) const {
    std::size_t count = 1;
    for (const std::size_t axis : header_.shape) {
      if (axis == 0) refuse("the array is empty");
      if (count > most_tensor_values / axis) refuse("the array has more than 2^27 numbers");
      count *= axis;
    }
    if (header_.shape.empty()) refuse("the array is a single number", "save a matrix or a list");
    tensor.columns = header_.shape.back();
    tensor.rows = count / tensor.columns;
    return count;
  }

  /// Bytes of one number in the file.
  std::size_t width_of_type(Tensor& tensor) const {
    const std::string& type = header_.type;
    const bool has_order = type.size() == 3 && (type[0] == '<' || type[0] == '>' || type[0] == '=');
    const std::string_view kind = has_order ? std::string_view(type).substr(1) : "";
    if (kind != "f2" && kind != "f4" && kind != "f8")
      refuse("the array is of type \"" + type + "\", known are float16, float32 and float64",
             "save array.astype(numpy.float32)");
    tensor.element = kind == "f2" ? ElementType::float16 : ElementType::float32;
    return static_cast<std::size_t>(kind[1] - '0');
  }

  void check_length(std::size_t count, std::size_t width) const {
    const std::size_t there = source_->text.size() - header_.data;
    if (there != count * width)
      refuse("the shape asks for " + std::to_string(count * width) +
             " bytes of numbers, the file has " + std::to_string(there));
  }

  std::vector<float> numbers(std::size_t count, std::size_t width) const {
    const char order = header_.type[0];
    const bool swapped =
        order != '=' && (order == '>') == (std::endian::native == std::endian::little);
    std::vector<float> values(count);
    std::array<char, 8> bytes{};
    for (std::size_t i = 0; i < count; ++i) {
      const char* const at = source_->text.data() + header_.data + i * width;
      if (swapped)
        std::reverse_copy(at, at + width, bytes.begin());
      else
        std::copy(at, at + width, bytes.begin());
      values[i] = number_from(bytes, width);
    }
    return values;
  }

  static float number_from(const std::array<char, 8>& bytes, std::size_t width) {
    if (width == 2) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data(), sizeof bits);
      return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits));
    }
    if (width == 4) {
      float value = 0;
      std::memcpy(&value, bytes.data(), sizeof value);
      return value;
    }
    double value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return static_cast<float>(value);
  }

  /// Numbers in C order, whatever the order in the file: the last axis fastest instead of the first.
  std::vector<float> transposed(std::vector<float> values) const {
    if (!header_.is_fortran || header_.shape.size() < 2) return values;
    std::vector<float> result(values.size());
    std::vector<std::size_t> index(header_.shape.size(), 0);
    for (const float value : values) {
      std::size_t at = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis)
        at = at * header_.shape[axis] + index[axis];
      result[at] = value;
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        if (++index[axis] < header_.shape[axis]) break;
        index[axis] = 0;
      }
    }
    return result;
  }

  void check_finite(const std::vector<float>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]))
        refuse("number " + std::to_string(i) + " (from 0, in C order) is " +
               (std::isnan(values[i]) ? "not a number" : "infinite as a float32") +
               ", which no codec takes");
  }

  std::shared_ptr<const SourceText> source_;
  std::string_view rest_;  ///< of the header's dictionary
  Header header_;
};

}  // namespace

Tensor read_npy(const std::filesystem::path& file) { return NpyFile(file).read(); }

}  // namespace windtunnel
