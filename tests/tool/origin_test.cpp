// Where a report's rounds come from, and which go together.
#include "measure/origin.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "failure.hpp"

namespace jackdaw {
namespace {

using Json = nlohmann::ordered_json;

Origin on(const std::string& day) {
  Origin origin = origin_now(false);
  origin.ours = "libgc 1";
  origin.days = {day};
  origin.notes = {"always"};
  return origin;
}

std::string refusal(const Json& file, Origin origin) {
  try {
    add_origin(file, "scale", &origin);
  } catch (const Failure& e) {
    return e.what();
  }
  return "";
}

TEST(Origin, TellsTheDay) {
  const Origin now = origin_now(true);
  ASSERT_EQ(now.days.size(), 1u);
  EXPECT_EQ(now.days[0].size(), std::string("2026-11-23").size());
  EXPECT_NE(to_text(now).find("measured " + now.days[0] + "\n"), std::string::npos);
}

TEST(Origin, OfAFileIsAdded) {
  Origin before = on("2026-11-22");
  before.notes.insert(before.notes.begin(), "then");
  Origin now = on("2026-11-23");
  add_origin(to_json(before, "scale"), "scale", &now);
  EXPECT_EQ(now.days, (std::vector<std::string>{"2026-11-22", "2026-11-23"}));
  EXPECT_EQ(now.notes, (std::vector<std::string>{"then", "always"}));
  // The same day twice is one.
  add_origin(to_json(on("2026-11-23"), "scale"), "scale", &now);
  EXPECT_EQ(now.days.size(), 2u);
}

TEST(Origin, HasNotesOnlyOfWhatWasNotRun) {
  Origin before = on("2026-11-22");
  before.notes = {not_run("oneTBB", "it was not built"), not_run("Cilk", "there is none"),
                  "fib: slow"};
  Origin now = on("2026-11-23");
  now.notes = {not_run("Cilk", "there is still none")};
  add_origin(to_json(before, "scale"), "scale", &now);
  drop_untrue_notes([](const std::string& what) { return what == "oneTBB"; }, &now);
  EXPECT_EQ(now.notes,
            (std::vector<std::string>{"fib: slow", "Cilk: not run, since there is still none"}));
}

// Files of before days were told.
TEST(Origin, MayHaveNoDays) {
  Json file = to_json(on("2026-11-22"), "scale");
  file.erase("days");
  Origin now = on("2026-11-23");
  add_origin(file, "scale", &now);
  EXPECT_EQ(now.days, (std::vector<std::string>{"2026-11-23"}));
}

TEST(Origin, OfOtherRoundsIsRefused) {
  const Origin now = on("2026-11-23");
  EXPECT_EQ(refusal(to_json(now, "scale"), now), "");
  EXPECT_NE(refusal(Json::array(), now).find("no results"), std::string::npos);
  EXPECT_NE(refusal(Json::object(), now).find("report"), std::string::npos);
  EXPECT_NE(refusal(to_json(now, "work-stealing"), now).find("something else"), std::string::npos);
  Origin other = now;
  other.machine.cpus += 1;
  EXPECT_NE(refusal(to_json(other, "scale"), now).find("machine"), std::string::npos);
  other = now;
  other.quick = true;
  EXPECT_NE(refusal(to_json(other, "scale"), now).find("size"), std::string::npos);
  other = now;
  other.peer = "libgc 2";
  EXPECT_NE(refusal(to_json(other, "scale"), now).find("library"), std::string::npos);
  Json file = to_json(now, "scale");
  file["days"] = 3;
  EXPECT_NE(refusal(file, now), "");
}

}  // namespace
}  // namespace jackdaw
