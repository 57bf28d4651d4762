#include "task/unwind_table.hpp"

#include "os/modules.hpp"

namespace jd::task {
namespace {

// The length field of a record; *end is where the record ends.
bool read_length(Reader* reader, const Byte** end) {
  constexpr std::uint32_t kLong = 0xffffffff;
  Word length = reader->read<std::uint32_t>();
  if (length == 0) return false;
  if (length == kLong) length = reader->read<std::uint64_t>();
  *end = reader->at() + length;
  return true;
}

// Finds the record of the function that contains the address, in the sorted table that linkers put
// beside .eh_frame.
const Byte* find_record(Word address, Word header) {
  constexpr Byte kVersion = 1;
  Reader reader(bytes_at(header));
  if (reader.read<Byte>() != kVersion) return nullptr;
  const Byte pointer_encoding = reader.read<Byte>();
  const Byte count_encoding = reader.read<Byte>();
  if (reader.read<Byte>() != (kRelativeToData | kSigned4)) return nullptr;
  Word ignored = 0;
  Word count = 0;
  if (!reader.pointer(pointer_encoding, header, &ignored)) return nullptr;
  if (!reader.pointer(count_encoding, header, &count) || count == 0) return nullptr;
  struct Row {
    std::int32_t low;
    std::int32_t record;
  };
  const Byte* table = reader.at();
  const auto row = [table](Word index) {
    Row r;
    __builtin_memcpy(&r, table + index * sizeof(Row), sizeof r);
    return r;
  };
  const auto wanted = static_cast<std::int64_t>(address - header);
  if (wanted < row(0).low) return nullptr;
  Word low = 0;
  for (Word high = count; high - low > 1;) {
    const Word middle = low + (high - low) / 2;
    (row(middle).low <= wanted ? low : high) = middle;
  }
  return bytes_at(header + static_cast<Word>(std::int64_t{row(low).record}));
}

Word add_to_digest(Word digest, const Byte* from, const Byte* to) {
  for (; to - from >= static_cast<std::ptrdiff_t>(sizeof(Word)); from += sizeof(Word)) {
    Word word;
    __builtin_memcpy(&word, from, sizeof word);
    digest = base::add_to_digest(digest, word);
  }
  for (; from < to; ++from) digest = base::add_to_digest(digest, *from);
  return digest;
}

}  // namespace

Word digest_entry(Word address) {
  const Word header = base::as_word(os::find_unwind_table(base::as_pointer(address)));
  if (header == 0) return 0;
  const Byte* record = find_record(address, header);
  Word digest = base::add_to_digest(0, header);
  if (record == nullptr) return digest;
  digest = base::add_to_digest(digest, base::as_word(record));
  Reader function(record);
  const Byte* end = nullptr;
  if (!read_length(&function, &end)) return digest;
  const Byte* here = function.at();
  digest = add_to_digest(digest, here, end);
  Reader common(here - function.read<std::uint32_t>());
  if (!read_length(&common, &end)) return digest;
  return add_to_digest(digest, common.at(), end);
}

bool read_entry(Word address, Entry* entry) {
  const Word header = base::as_word(os::find_unwind_table(base::as_pointer(address)));
  if (header == 0) return false;
  const Byte* record = find_record(address, header);
  if (record == nullptr) return false;

  Reader function(record);
  if (!read_length(&function, &entry->end)) return false;
  const Byte* here = function.at();
  const auto back = function.read<std::uint32_t>();
  Reader common(here - back);
  if (!read_length(&common, &entry->common_end)) return false;
  common.skip(sizeof(std::uint32_t));
  const Byte version = common.read<Byte>();
  const auto* augmentation = reinterpret_cast<const char*>(common.at());
  while (common.read<Byte>() != 0) {
  }
  entry->code_factor = common.uleb();
  entry->data_factor = common.sleb();
  if (version == 1) {
    common.skip(1);
  } else {
    common.uleb();
  }
  Byte encoding = kAbsolute;
  bool sized = false;
  const Byte* program = nullptr;
  for (const char* letter = augmentation; *letter != '\0'; ++letter) {
    Word ignored = 0;
    switch (*letter) {
      case 'z': {
        const Word size = common.uleb();
        program = common.at() + size;
        sized = true;
        break;
      }
      case 'R':
        encoding = common.read<Byte>();
        break;
      case 'P': {
        const Byte personality = common.read<Byte>();
        if (!common.pointer(personality & ~kIndirect, header, &ignored)) return false;
        break;
      }
      case 'L':
        common.skip(1);
        break;
      case 'B':
        break;
      // 'S', a signal's frame: what was interrupted is not at a call, and not ours to change.
      default:
        return false;
    }
  }
  entry->common_program = sized ? program : common.at();

  Word length = 0;
  if (!function.pointer(encoding, header, &entry->low)) return false;
  if (!function.pointer(encoding & 0x0f, header, &length)) return false;
  entry->high = entry->low + length;
  if (address < entry->low || address >= entry->high) return false;
  if (sized) {
    const Word size = function.uleb();
    function.skip(size);
  }
  entry->program = function.at();
  return true;
}

}  // namespace jd::task
