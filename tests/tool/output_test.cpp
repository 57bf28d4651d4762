// Files of results: what stands at their paths before decides how they are written.
#include "figures/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "failure.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "jackdaw-output-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string at(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  fs::path folder_;
};

TEST_F(Output, MakesAndReplacesAFile) {
  const mode_t mask = umask(022);
  write_file(at("figures"), "one");
  umask(mask);
  EXPECT_EQ(read(at("figures")), "one");
  EXPECT_EQ(fs::status(at("figures")).permissions(), fs::perms(0644));
  write_file(at("figures"), "two");
  EXPECT_EQ(read(at("figures")), "two");
  EXPECT_EQ(files(), 1u);
}

TEST_F(Output, KeepsPermissionsAndNeighbours) {
  write_file(at("figures"), "one");
  write_file(at("figures.new"), "somebody's");
  fs::permissions(at("figures"), fs::perms(0600));
  write_file(at("figures"), "two");
  EXPECT_EQ(fs::status(at("figures")).permissions(), fs::perms(0600));
  EXPECT_EQ(read(at("figures.new")), "somebody's");
}

TEST_F(Output, FollowsLinks) {
  write_file(at("figures"), "one");
  fs::create_symlink("figures", at("link"));
  write_file(at("link"), "two");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read(at("figures")), "two");
}

TEST_F(Output, MakesWhatALinkNames) {
  fs::create_directory(at("there"));
  fs::create_symlink("there/file", at("link"));
  write_file(at("link"), "text");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read(at("there/file")), "text");
  const std::string long_name = at(std::string(250, 'n').c_str());
  write_file(long_name, "text");
  EXPECT_EQ(read(long_name), "text");
}

TEST_F(Output, MakesWhatALinkToALinkNames) {
  fs::create_symlink("second", at("first"));
  fs::create_symlink("file", at("second"));
  write_file(at("first"), "text");
  EXPECT_TRUE(fs::is_symlink(at("second")));
  EXPECT_EQ(read(at("file")), "text");
}

TEST_F(Output, IsAppendedToWhatIsOpen) {
  const int fd = open(at("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::write(fd, "old ", 4), 4);
  const std::string number = std::to_string(fd);
  for (const std::string& path : {"/dev/fd/" + number, "/proc/self/fd/" + number,
                                  "/proc/" + std::to_string(getpid()) + "/fd/" + number}) {
    EXPECT_NO_THROW(require_writable(path, kExitUsage));
    write_file(path, "new ");
  }
  fs::create_symlink("/dev/fd/" + number, at("link"));
  write_file(at("link"), "last");
  EXPECT_EQ(::write(fd, ".", 1), 1);
  close(fd);
  EXPECT_EQ(read(at("log")), "old new new new last.");
  EXPECT_THROW(require_writable("/dev/fd/" + number, kExitUsage), Failure);
  EXPECT_EQ(files(), 2u);
}

TEST_F(Output, PartsAreForRegularFilesAlone) {
  write_so_far(at("figures"), "a part");
  EXPECT_EQ(read(at("figures")), "a part");
  const int fd = open(at("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  write_so_far("/dev/fd/" + std::to_string(fd), "a part");
  write_file("/dev/fd/" + std::to_string(fd), "the whole");
  close(fd);
  EXPECT_EQ(read(at("log")), "the whole");
  // Would wait for a reader.
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  write_so_far(at("pipe"), "a part");
}

TEST_F(Output, KeepsTheOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  constexpr uid_t kSomebody = 65534;
  write_file(at("figures"), "one");
  if (chown(at("figures").c_str(), kSomebody, kSomebody) != 0) {
    GTEST_SKIP() << "no other user is known here";
  }
  write_file(at("figures"), "two");
  struct stat now {};
  ASSERT_EQ(stat(at("figures").c_str(), &now), 0);
  EXPECT_EQ(now.st_uid, kSomebody);
  EXPECT_EQ(now.st_gid, kSomebody);
}

TEST_F(Output, WritesToWhatIsNoFile) {
  write_file("/dev/null", "lost");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  const int reader = open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_file(at("pipe"), "through");
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

TEST_F(Output, SaysBeforehandWhatCannotBeWritten) {
  EXPECT_NO_THROW(require_writable("", kExitUsage));
  EXPECT_NO_THROW(require_writable(at("figures"), kExitUsage));
  EXPECT_NO_THROW(require_writable("/dev/null", kExitUsage));
  EXPECT_THROW(require_writable(at("no/folder"), kExitUsage), Failure);
  EXPECT_THROW(require_writable(at(""), kExitUsage), Failure);
  EXPECT_THROW(write_file(at("no/folder"), "text"), Failure);
  EXPECT_THROW(require_writable(at(std::string(300, 'n').c_str()), kExitUsage), Failure);
  EXPECT_NO_THROW(require_writable(at(std::string(250, 'n').c_str()), kExitUsage));
  EXPECT_EQ(files(), 0u);
  fs::create_symlink(at("no/file"), at("astray"));
  EXPECT_THROW(require_writable(at("astray"), kExitUsage), Failure);
}

TEST_F(Output, AFullDiskIsAnErrorAndLosesNothing) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  EXPECT_THROW(write_file("/dev/full", "text"), Failure);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace jackdaw
