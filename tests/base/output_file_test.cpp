#include "baton/output_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include "baton/error.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using support::error_of;
using support::TemporaryFolder;

namespace {

std::string content_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

/// The sentence of the error of body(), in a process of its own; empty if there is none.
template <class Body>
std::string sentence_in_child(const Body& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    try {
      body();
    } catch (const Error& error) {
      const std::string text = error.what();
      if (write(ends[1], text.data(), text.size()) < 0) _exit(2);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = read(ends[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return text;
}

}  // namespace

TEST_CASE("a file is replaced when it is whole, and not before") {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", "before");
  OutputFile output(file);
  output.write("af");
  CHECK(content_of(file) == "before");
  CHECK(names_in(folder.path()) != std::set<std::string>{"f"});
  output.write("ter");
  output.commit();
  CHECK(content_of(file) == "after");
  CHECK(names_in(folder.path()) == std::set<std::string>{"f"});
  write_file(folder / "g", "");
  CHECK(content_of(folder / "g").empty());
  CHECK(names_in(folder.path()) == std::set<std::string>{"f", "g"});
}

TEST_CASE("what is not committed goes, and what was there stays") {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", "before");
  {
    OutputFile output(file);
    output.write("after");
    const OutputFile moved(std::move(output));
    CHECK(names_in(folder.path()).size() == 2);
  }
  CHECK(content_of(file) == "before");
  CHECK(names_in(folder.path()) == std::set<std::string>{"f"});
}

TEST_CASE("a full disk leaves the file that was there, and says so") {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", "before");
  const std::string sentence = sentence_in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    write_file(file, std::string(2000, 'x'));
  });
  CHECK(sentence == file + ": expected a file to write, found File too large");
  CHECK(content_of(file) == "before");
  CHECK(names_in(folder.path()) == std::set<std::string>{"f"});
  CHECK(sentence_in_child([] { write_file("/dev/full", "x"); }) ==
        "/dev/full: expected a file to write, found No space left on device");
}

TEST_CASE("a folder or a file that must not be written to is refused, root or not") {
  const TemporaryFolder folder;
  const std::string inner = folder / "inner", file = inner + "/f";
  std::filesystem::create_directory(inner);
  std::ofstream(file) << "before";
  chmod(folder.path().c_str(), 0755);
  const auto as_nobody = [&](const std::string& name) {
    return sentence_in_child([&] {
      if (getuid() == 0 && setuid(65534) != 0) _exit(3);
      write_file(name, "after");
    });
  };
  chmod(inner.c_str(), 0555);
  CHECK(as_nobody(file) == file + ": expected a file to write, found Permission denied");
  CHECK(as_nobody(inner + "/g") == inner + "/g: expected a file to write, found Permission denied");
  chmod(inner.c_str(), 0777);
  chmod(file.c_str(), 0444);
  CHECK(as_nobody(file) == file + ": expected a file to write, found Permission denied");
  CHECK(content_of(file) == "before");
  CHECK(names_in(inner) == std::set<std::string>{"f"});
}

TEST_CASE("a name of a folder, or in no folder, is refused") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "d");
  const Error error = error_of([&] { write_file(folder / "d", "x"); });
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK(error.what() == (folder / "d") + ": expected a file to write, found Is a directory");
  CHECK(error_of([&] { write_file(folder / "no/f", "x"); }).what() ==
        (folder / "no/f") + ": expected a file to write, found No such file or directory");
  CHECK(names_in(folder.path()) == std::set<std::string>{"d"});
}

TEST_CASE("the file that a link leads to is replaced; its permissions stay") {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", "before");
  chmod(file.c_str(), 0600);
  std::filesystem::create_symlink("f", folder / "link");
  write_file(folder / "link", "after");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(content_of(file) == "after");
  struct stat status {};
  CHECK(stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  std::filesystem::create_symlink("later", folder / "dangling");
  write_file(folder / "dangling", "new");
  CHECK(content_of(folder / "later") == "new");
}

TEST_CASE("what an ended process has left is replaced; a link in its place is not followed") {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", "before"), other = folder.write("other", "other");
  CHECK(sentence_in_child([&] {
          for (int number = 0; number < 100; ++number) {
            std::string part = file + ".part-" + std::to_string(getpid());
            if (number > 0) part += "-" + std::to_string(number);
            if (symlink("other", part.c_str()) != 0) _exit(3);
          }
          write_file(file, "after");
        }).empty());
  CHECK(content_of(file) == "after");
  CHECK(content_of(other) == "other");
}

TEST_CASE("standard output and pipes are written at once") {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", "begin ");
  CHECK(sentence_in_child([&] {
          const int out = open(file.c_str(), O_WRONLY | O_APPEND);
          if (out < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(3);
          write_file("/dev/stdout", "middle ");
          if (write(STDOUT_FILENO, "end", 3) != 3) _exit(4);
        }).empty());
  CHECK(content_of(file) == "begin middle end");
  CHECK(names_in(folder.path()) == std::set<std::string>{"f"});

  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::string read;
  std::thread reader([&] { read = content_of(pipe); });
  write_file(pipe, "through");
  reader.join();
  CHECK(read == "through");
  CHECK(std::filesystem::is_fifo(pipe));
}
