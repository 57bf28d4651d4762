#include "measure/measure.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "failure.hpp"
#include "figures/units.hpp"
#include "probe/record.h"
#include "program/signals.hpp"

namespace jackdaw {
namespace {

// A page that the disk has no room for would be a fault where it is first written to.
bool make_room(int fd, off_t size) {
  errno = posix_fallocate(fd, 0, size);
  return errno == 0;
}

// The file that this process and the probe map. Gone with the object.
class RecordFile {
 public:
  explicit RecordFile(bool serves_malloc) {
    const char* folder = std::getenv("TMPDIR");
    // Absolute: the program may change its folder, and then execute another.
    path_ = folder != nullptr && *folder != '\0' ? folder : "/tmp";
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path_, error);
    if (!error) path_ = absolute;
    path_ += "/jackdaw-XXXXXX";
    const File file(mkstemp(path_.data()));
    if (file.fd() < 0) fail("cannot create");
    void* p = MAP_FAILED;
    if (make_room(file.fd(), sizeof(jd_record))) {
      p = mmap(nullptr, sizeof(jd_record), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
    }
    if (p == MAP_FAILED) {
      const int error = errno;
      unlink(path_.c_str());
      errno = error;
      fail("cannot map");
    }
    record_ = static_cast<jd_record*>(p);
    record_->magic = JD_PROBE_MAGIC;
    record_->serves_malloc = serves_malloc ? 1 : 0;
  }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;
  ~RecordFile() {
    munmap(record_, sizeof(jd_record));
    unlink(path_.c_str());
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] jd_record& record() const { return *record_; }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Failure(kExitRefused, fmt::format("{} the record of the measurement, {}: {} (TMPDIR says "
                                            "where it is made)",
                                            what, path_, std::strerror(errno)));
  }

  std::string path_;
  jd_record* record_ = nullptr;
};

double from_ns(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string version_text(std::uint64_t version) {
  if (version == 0) return "unknown";
  return fmt::format("{}.{}.{}", version >> 16, (version >> 8) & 0xff, version & 0xff);
}

void read_attached(const jd_record& r, const Library& wanted, Measurement* m) {
  m->library = r.library;
  m->version = version_text(r.version);
  m->collections = r.gc_no;
  m->timed_collections = r.collections_ended;
  m->allocated_bytes = r.allocated_bytes;
  m->heap_peak_bytes = r.heap_peak_bytes;
  const std::uint64_t counted = r.gc_no - r.gc_no_at_start;
  // A libgc may count collections that it does not announce: those of an incremental mode, or all
  // once a program has set its callback behind the probe's back (with dlsym).
  if (r.collections_ended != 0 || counted == 0) {
    m->collection_seconds = from_ns(r.collect_total_ns);
    m->longest_collection_seconds = from_ns(r.collect_longest_ns);
  } else {
    m->notes.push_back(
        "the library reported no collection's beginning and end, so their time is "
        "not measured");
  }
  if (r.pauses != 0 || counted == 0) {
    m->pauses = r.pauses;
    m->pause_seconds = from_ns(r.pause_total_ns);
    m->longest_pause_seconds = from_ns(r.pause_longest_ns);
  } else {
    m->notes.push_back("the library reported no stop of the program, so pauses are not measured");
  }
  if (r.collections_ended != 0 && r.collections_ended < counted) {
    m->notes.push_back(
        fmt::format("{} of the {} collections reported no beginning and end; times "
                    "are those of the others",
                    counted - r.collections_ended, counted));
  }
  if (r.ended == 0 && r.collections_begun > r.collections_ended) {
    m->notes.push_back("the program ended inside a collection, which is not in the figures");
  }
  if (r.ended == 0) {
    m->notes.push_back(
        "the program ended without exit(): bytes allocated are those up to the last "
        "collection or growth of the heap");
  }
  std::error_code error;
  if (!std::filesystem::equivalent(r.library, wanted.path, error)) {
    m->notes.push_back(
        fmt::format("the program ran on {}, not on {}", m->library, wanted.path.string()));
  }
}

Measurement read_record(const jd_record& r, const Outcome& outcome, const Library& wanted) {
  Measurement m;
  m.outcome = outcome;
  if (r.state == JD_PROBE_ATTACHED) {
    read_attached(r, wanted, &m);
  } else if (r.state == JD_PROBE_NO_LIBGC) {
    m.notes.push_back(
        "no libgc was in the process when it started, so its collector was not "
        "measured");
  } else {
    m.notes.push_back(
        "the probe did not get to run in the program, so its collector was not "
        "measured");
  }
  if (r.images > 1) {
    m.notes.push_back(
        fmt::format("the process executed another program {} times; the figures are "
                    "of the last, the time is of all",
                    r.images - 1));
  }
  if (r.resident_peak_kib != 0) {
    m.resident_peak_bytes = r.resident_peak_kib * 1024;
  } else {
    m.resident_peak_bytes = static_cast<std::uint64_t>(outcome.resident_peak_kib) * 1024;
    m.notes.push_back(
        "the resident size is that of the largest among the program and the children "
        "it waited for");
  }
  return m;
}

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::string line(const char* what, const std::string& value) {
  return fmt::format("  {:<26} {}\n", what, value);
}

constexpr const char* kNotMeasured = "not measured";

}  // namespace

std::optional<double> Measurement::collector_share() const {
  if (!collection_seconds || outcome.wall_seconds <= 0) return std::nullopt;
  return *collection_seconds / outcome.wall_seconds;
}

Measurement run_measured(const MeasuredRun& request) {
  const HeldSignals held;
  const RecordFile file(request.serves_malloc);
  Command command = request.command;
  std::vector<std::string> variables = request.variables;
  variables.push_back(fmt::format("{}={}", JD_PROBE_ENV, file.path()));
  // The probe first: its setters stand before the library's.
  command.environment = environment_with({probe_library(), request.library.path}, variables);
  const Outcome outcome = run(command, &file.record().owner);
  return read_record(file.record(), outcome, request.library);
}

std::string to_text(const Measurement& m) {
  std::string text;
  text += line("time", fmt::format("{} ({} user, {} system)", show_seconds(m.outcome.wall_seconds),
                                   show_seconds(m.outcome.user_seconds),
                                   show_seconds(m.outcome.system_seconds)));
  text += line("collections", m.collections ? std::to_string(*m.collections) : kNotMeasured);
  text += line("time in collections",
               m.collection_seconds
                   ? fmt::format("{}, {:.1f}% of the time", show_seconds(*m.collection_seconds),
                                 100 * m.collector_share().value_or(0))
                   : kNotMeasured);
  text += line("pauses, total",
               m.pause_seconds
                   ? fmt::format("{} in {} pauses", show_seconds(*m.pause_seconds), *m.pauses)
                   : kNotMeasured);
  text += line("longest pause",
               m.longest_pause_seconds ? show_seconds(*m.longest_pause_seconds) : kNotMeasured);
  text += line("allocated", m.allocated_bytes ? show_bytes(static_cast<double>(*m.allocated_bytes))
                                              : kNotMeasured);
  text +=
      line("heap, largest",
           m.heap_peak_bytes ? show_bytes(static_cast<double>(*m.heap_peak_bytes)) : kNotMeasured);
  text += line("resident, largest", show_bytes(static_cast<double>(m.resident_peak_bytes)));
  for (const std::string& note : m.notes) text += fmt::format("  note: {}\n", note);
  return text;
}

nlohmann::ordered_json to_json(const Measurement& m) {
  nlohmann::ordered_json json;
  json["library"] = m.library.empty() ? nullptr : nlohmann::ordered_json(m.library);
  json["version"] = m.version.empty() ? nullptr : nlohmann::ordered_json(m.version);
  json["ended"] = m.outcome.describe();
  json["exit_status"] = m.outcome.exit_status();
  json["wall_s"] = m.outcome.wall_seconds;
  json["user_s"] = m.outcome.user_seconds;
  json["system_s"] = m.outcome.system_seconds;
  json["collections"] = or_null(m.collections);
  json["collections_timed"] = or_null(m.timed_collections);
  json["collections_s"] = or_null(m.collection_seconds);
  json["collections_longest_s"] = or_null(m.longest_collection_seconds);
  json["collector_share"] = or_null(m.collector_share());
  json["pauses"] = or_null(m.pauses);
  json["pauses_s"] = or_null(m.pause_seconds);
  json["pauses_longest_s"] = or_null(m.longest_pause_seconds);
  json["allocated_bytes"] = or_null(m.allocated_bytes);
  json["heap_peak_bytes"] = or_null(m.heap_peak_bytes);
  json["resident_peak_bytes"] = m.resident_peak_bytes;
  json["notes"] = m.notes;
  return json;
}

}  // namespace jackdaw
