// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace jackdaw {

std::string show_bytes(double bytes);      // "1.50 MiB"
std::string show_seconds(double seconds);  // "12.3 ms"

// Three digits that mean something: 1234, 123, 12.3, 1.23, 0.123.
std::string show_number(double value);

}  // namespace jackdaw
