#include "codec/npy.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>

#include "core/problem.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

/// A .npy file of the version, its header as numpy.save writes it, padded to 64 bytes.
std::string npy(std::string header, const std::string& data, char version = 1) {
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t before = 8 + length_bytes;
  header.resize((before + header.size() + 64) / 64 * 64 - before, ' ');
  header.back() = '\n';
  std::string text = std::string("\x93NUMPY") + version + '\0';
  for (std::size_t i = 0; i < length_bytes; ++i)
    text += static_cast<char>(header.size() >> 8 * i & 0xFF);
  return text + header + data;
}

std::string header(const std::string& type, const std::string& shape, bool is_fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (is_fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

const std::string six = bytes_of<float>({1, 2, 3, 4, 5, 6});

Tensor read(const std::string& text) {
  const TemporaryFolder folder;
  return read_npy(folder.write("a.npy", text));
}

std::string refusal_of_file(const std::string& text) {
  try {
    read(text);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

void refuses(const std::string& text, const char* why) {
  const std::string message = refusal_of_file(text);
  CHECK_MESSAGE(message.find(why) != std::string::npos, message);
}

TEST_CASE("a float32 matrix in C order is read row after row") {
  const Tensor tensor = read(npy(header("<f4", "(2, 3)"), six));
  CHECK(tensor.rows == 2);
  CHECK(tensor.columns == 3);
  CHECK(tensor.element == ElementType::float32);
  CHECK(tensor.values == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(tensor.bytes() == 24_B);
}

TEST_CASE("Fortran order is turned into C order, with any number of axes") {
  // Column after column: the matrix is 1 3 5 / 2 4 6.
  CHECK(read(npy(header("<f4", "(2, 3)", true), six)).values ==
        std::vector<float>{1, 3, 5, 2, 4, 6});
  // a[i][j][k] stands at i + 1 j + 1*3 k for the shape (1, 3, 2): 1 4 / 2 5 / 3 6.
  const Tensor tensor = read(npy(header("<f4", "(1, 3, 2)", true), six));
  CHECK(tensor.values == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(tensor.rows == 3);
  CHECK(tensor.columns == 2);
}

TEST_CASE("a list is one row, and leading axes become rows") {
  const Tensor list = read(npy(header("<f4", "(6,)"), six));
  CHECK(list.rows == 1);
  CHECK(list.columns == 6);
  const Tensor box = read(npy(header("<f4", "(3, 1, 2)"), six));
  CHECK(box.rows == 3);
  CHECK(box.columns == 2);
}

TEST_CASE("float16 keeps its size, float64 is rounded to float32") {
  // 1.5 is 0x3E00, -2 is 0xC000, the smallest subnormal 2^-24 is 0x0001.
  const Tensor half =
      read(npy(header("<f2", "(3,)"), bytes_of<std::uint16_t>({0x3E00, 0xC000, 1})));
  CHECK(half.values == std::vector<float>{1.5F, -2.0F, 0x1p-24F});
  CHECK(half.bytes() == 6_B);
  const Tensor wide = read(npy(header("<f8", "(2,)"), bytes_of<double>({0.1, -3})));
  CHECK(wide.values == std::vector<float>{0.1F, -3.0F});
  CHECK(wide.bytes() == 8_B);
}

TEST_CASE("big endian numbers are turned round") {
  // 1.0 is 0x3F800000.
  CHECK(read(npy(header(">f4", "(1,)"), std::string("\x3F\x80\0\0", 4))).values ==
        std::vector<float>{1});
}

TEST_CASE("versions 2 and 3 have a longer header") {
  for (const char version : {'\2', '\3'})
    CHECK(read(npy(header("<f4", "(2, 3)"), six, version)).values.size() == 6);
}

TEST_CASE("what is no array of floating-point numbers is refused, with the reason") {
  refuses("", "no .npy file");
  refuses("{\"version\": 1}", "no .npy file");
  refuses(npy(header("<f4", "(2, 3)"), six, 4), "version 4");
  refuses(npy(header("<i4", "(2, 3)"), six), "type \"<i4\"");
  refuses(npy(header("|O", "(2, 3)"), six), "type \"|O\"");
  refuses(npy(header("<f16", "(2, 3)"), six), "type \"<f16\"");
  refuses(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", six),
          "records");
  refuses(npy(header("<f4", "()"), six.substr(0, 4)), "single number");
  refuses(npy(header("<f4", "(0, 3)"), ""), "empty");
}

TEST_CASE("files that are too short, too long or damaged are refused") {
  const std::string whole = npy(header("<f4", "(2, 3)"), six);
  for (const std::size_t length : {3U, 7U, 9U, 40U})
    CHECK_FALSE(refusal_of_file(whole.substr(0, length)).empty());
  refuses(whole.substr(0, whole.size() - 1), "asks for 24 bytes of numbers, the file has 23");
  refuses(whole + "x", "the file has 25");
  refuses(npy(header("<f4", "(9999999999, 9999999999)"), six), "more than 2^27");
  refuses(npy(header("<f4", "(99999999999999999999,)"), six), "no list of lengths");
  refuses(npy("{'descr': '<f4', 'shape': (2, 3), }", six), "needs descr, fortran_order and shape");
  refuses(npy(header("<f4", "(2, 3)") + " x", six), "and no more");
  refuses(npy("{'descr': '<f4', 'descr': '<f4'}", six), "stands there twice");
  refuses(npy("{'descr': '<f4', 'other': 1}", six), "\"other\" is unknown");
  refuses(npy("{'descr: ", six), "has no end");
  refuses(npy("['descr']", six), "\"{\" is missing");
}

TEST_CASE("numbers that are not finite are refused with their place") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  refuses(npy(header("<f4", "(3,)"), bytes_of<float>({1, nan, 3})), "number 1");
  refuses(npy(header("<f8", "(2,)"), bytes_of<double>({1, 1e300})), "infinite as a float32");
}

TEST_CASE("a file that is not there is the environment's fault") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(read_npy(folder.path() / "none.npy"), EnvironmentError);
}

}  // namespace
}  // namespace windtunnel
