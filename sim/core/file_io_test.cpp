#include "core/file_io.hpp"

#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "core/gzip.hpp"
#include "core/hash.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

std::string gunzip(const std::string& packed) {
  constexpr int gzip_only = 16 + 15;
  std::string text(1 << 20, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, gzip_only) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  CHECK(stream.avail_in == 0);
  text.resize(text.size() - stream.avail_out);
  inflateEnd(&stream);
  return text;
}

TEST_CASE("what was written is read and nothing else is left in the folder") {
  const TemporaryFolder folder;
  const std::string bytes("line\n\0more\r\n", 12);
  write_file_atomically(folder.path() / "a.json", bytes);
  const auto source = read_source(folder.path() / "a.json");
  CHECK(source->text == bytes);
  CHECK(source->name == (folder.path() / "a.json").string());
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file larger than any buffer is written and read whole") {
  const TemporaryFolder folder;
  const std::string bytes(300000, 'x');
  write_file_atomically(folder.path() / "big", bytes);
  CHECK(read_source(folder.path() / "big")->text == bytes);
}

TEST_CASE("writing makes the folders and replaces what was there") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out" / "deep" / "a.txt";
  write_file_atomically(path, "a long first text");
  write_file_atomically(path, "second");
  CHECK(read_source(path)->text == "second");
}

TEST_CASE("a file that is not there cannot be read and the reason is given") {
  CHECK_THROWS_WITH_AS(read_source("/no/such/file.json"),
                       "cannot read /no/such/file.json: No such file or directory",
                       EnvironmentError);
}

/// ThreadSanitizer sees what chance rarely does.
TEST_CASE("threads read files at the same time") {
  const TemporaryFolder folder;
  constexpr int num_threads = 4, num_files = 100;
  const auto name = [&](int thread, int file) {
    return folder.path() / (std::to_string(thread) + "-" + std::to_string(file));
  };
  for (int thread = 0; thread < num_threads; ++thread)
    for (int file = 0; file < num_files; ++file)
      write_file_atomically(name(thread, file), name(thread, file).string());
  std::array<int, num_threads> num_right{};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < num_threads; ++thread)
    threads.emplace_back([&, thread] {
      for (int file = 0; file < num_files; ++file)
        num_right[static_cast<std::size_t>(thread)] +=
            read_source(name(thread, file))->text == name(thread, file).string() ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  for (const int right : num_right) CHECK(right == num_files);
}

TEST_CASE("a folder cannot be read as a file") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(read_source(folder.path()), doctest::Contains("Is a directory"),
                       EnvironmentError);
}

TEST_CASE("a device without an end is not read for ever") {
  CHECK_THROWS_WITH_AS(
      read_source("/dev/zero"),
      "error: cannot read /dev/zero: it is larger than 256 MiB, the most that is read of it",
      InputError);
  CHECK(read_source("/dev/null")->text.empty());
}

TEST_CASE("a file with a hole larger than what is read is refused before it is read") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("sparse.json", "{}");
  fs::resize_file(file, std::uintmax_t{6} << 30);
  CHECK_THROWS_WITH_AS(read_source(file), doctest::Contains("larger than 256 MiB"), InputError);
  CHECK_THROWS_WITH_AS(read_source(file, {.largest = 1 << 20, .remark = " (two numbers)"}),
                       doctest::Contains("1 MiB, the most that is read of it (two numbers)"),
                       InputError);
}

TEST_CASE("a folder is not overwritten and nothing is left next to it") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "taken");
  CHECK_THROWS_WITH_AS(write_file_atomically(folder.path() / "taken", "x"),
                       doctest::Contains("Is a directory"), EnvironmentError);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file in place of a folder is an environment error") {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "file", "x");
  CHECK_THROWS_AS(write_file_atomically(folder.path() / "file" / "a.txt", "y"), EnvironmentError);
  CHECK(read_source(folder.path() / "file")->text == "x");
}

TEST_CASE("a name that is too long fails and leaves nothing") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(write_file_atomically(folder.path() / std::string(300, 'n'), "x"),
                       doctest::Contains("File name too long"), EnvironmentError);
  CHECK(folder.entries() == 0);
}

TEST_CASE("files that killed processes left behind are in nobody's way") {
  const TemporaryFolder folder;
  const fs::path first = folder.path() / "first";
  write_file_atomically(first, "x");
  // As a process of the same number leaves them, more than may be tried.
  const std::string stem = ".windtunnel-" + std::to_string(::getpid()) + "-";
  for (int i = 0; i < 1000; ++i)
    std::ofstream(folder.path() / (stem + std::to_string(i) + ".tmp")) << "half";
  for (int i = 0; i < 10; ++i) write_file_atomically(first, std::to_string(i));
  CHECK(read_source(first)->text == "9");
  CHECK(folder.entries() == 1001);
}

TEST_CASE("a link is followed and stays a link") {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "real", "old");
  fs::create_symlink("real", folder.path() / "link");
  write_file_atomically(folder.path() / "link", "new");
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(read_source(folder.path() / "real")->text == "new");
}

TEST_CASE("a link to what is not there yet is followed and stays a link") {
  const TemporaryFolder folder;
  fs::create_symlink("deep/real", folder.path() / "link");
  fs::create_symlink("link", folder.path() / "first");
  write_file_atomically(folder.path() / "first", "new");
  CHECK(fs::is_symlink(folder.path() / "first"));
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(read_source(folder.path() / "deep" / "real")->text == "new");
}

TEST_CASE("what cannot be looked at is not taken for absent") {
  const TemporaryFolder folder;
  CHECK(file_type_of(folder.path()) == fs::file_type::directory);
  CHECK(file_type_of(folder.write("a", "x")) == fs::file_type::regular);
  CHECK(file_type_of(folder.path() / "b") == fs::file_type::not_found);
  CHECK(file_type_of(folder.path() / "a" / "b") == fs::file_type::not_found);
  fs::create_symlink("ring", folder.path() / "ring");
  CHECK_THROWS_WITH_AS(file_type_of(folder.path() / "ring"),
                       doctest::Contains("Too many levels of symbolic links"), EnvironmentError);
}

TEST_CASE("links in a ring lead nowhere") {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder.path() / "a");
  fs::create_symlink("a", folder.path() / "b");
  CHECK_THROWS_WITH_AS(write_file_atomically(folder.path() / "a", "x"),
                       doctest::Contains("Too many levels of symbolic links"), EnvironmentError);
}

TEST_CASE("a device is written to and not replaced") {
  write_file_atomically("/dev/null", "x");
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("gzip is undone by gunzip") {
  std::mt19937 random(7);
  std::string noise(200000, '\0');  // more than one output buffer
  std::generate(noise.begin(), noise.end(), [&] { return static_cast<char>(random()); });
  for (const std::string& text :
       {std::string(), std::string("windtunnel"), noise, std::string(100000, 'a')})
    CHECK(gunzip(gzip(text)) == text);
}

TEST_CASE("gzip says no time and no name and is the same each time") {
  const std::string packed = gzip("windtunnel");
  REQUIRE(packed.size() > 10);
  CHECK(packed.substr(0, 4) == std::string("\x1f\x8b\x08\x00", 4));  // magic, deflate, no flags
  CHECK(packed.substr(4, 4) == std::string(4, '\0'));                // time
  CHECK(static_cast<unsigned char>(packed[9]) == 255);               // no system named
  CHECK(gzip("windtunnel") == packed);
}

// The FNV-1a test vectors of draft-eastlake-fnv.
TEST_CASE("the hash is FNV-1a of 128 bits") {
  CHECK(fnv1a_128_hex("") == "6c62272e07bb014262b821756295c58d");
  CHECK(fnv1a_128_hex("a") == "d228cb696f1a8caf78912b704e4a8964");
  CHECK(fnv1a_128_hex("foobar") == "343e1662793c64bf6f0d3597ba446f18");
}

TEST_CASE("bytes above 127 are hashed as positive numbers") {
  CHECK(fnv1a_128_hex("\xFF") != fnv1a_128_hex("\x7F"));
}

TEST_CASE("what a link out of its folder leads to is read, but not quoted") {
  const TemporaryFolder folder;
  const fs::path there = folder.write("there/a.json", "{}"),
                 here = folder.write("here/b.json", "{}");
  fs::create_symlink(there, folder.path() / "here" / "out.json");
  fs::create_symlink("b.json", folder.path() / "here" / "sibling.json");
  CHECK(read_source(there)->quoting == Quoting::allowed);
  CHECK(read_source(folder.path() / "here" / "sibling.json")->quoting == Quoting::allowed);
  CHECK(read_source(folder.path() / "here" / "out.json")->quoting == Quoting::link_elsewhere);
  CHECK(read_source("/dev/stdin")->quoting == Quoting::allowed);
}

}  // namespace
}  // namespace windtunnel
