#include <map>

#include "program.hpp"

namespace scheme {
namespace {

constexpr Primitive kPrimitives[] = {
    {"eq?", "is_eq", 2, Primitive::Test},
    {"eqv?", "is_eqv", 2, Primitive::Test},
    {"equal?", "is_equal", 2, Primitive::Test},
    {"not", "is_not", 1, Primitive::Test},
    {"null?", "is_null", 1, Primitive::Test},
    {"boolean?", "is_boolean", 1, Primitive::Test},
    {"pair?", "is_pair", 1, Primitive::Test},
    {"number?", "is_number", 1, Primitive::Test},
    {"integer?", "is_fixnum", 1, Primitive::Test},
    {"real?", "is_number", 1, Primitive::Test},
    {"flonum?", "is_flonum", 1, Primitive::Test},
    {"symbol?", "is_symbol", 1, Primitive::Test},
    {"string?", "is_string", 1, Primitive::Test},
    {"char?", "is_character", 1, Primitive::Test},
    {"vector?", "is_vector", 1, Primitive::Test},
    {"procedure?", "is_procedure", 1, Primitive::Test},

    {"cons", "cons", 2, Primitive::Value},
    {"car", "car", 1, Primitive::Value},
    {"cdr", "cdr", 1, Primitive::Value},
    {"set-car!", "set_car", 2, Primitive::Value},
    {"set-cdr!", "set_cdr", 2, Primitive::Value},
    {"apply", "apply", 2, Primitive::Value},

    {"+", "add", 2, Primitive::Fold},
    {"-", "subtract", 2, Primitive::Fold},
    {"*", "multiply", 2, Primitive::Fold},
    {"/", "divide", 2, Primitive::Fold},
    {"=", "is_same_number", 2, Primitive::Test},
    {"<", "is_less", 2, Primitive::Test},
    {">", "is_greater", 2, Primitive::Test},
    {"<=", "is_less_or_same", 2, Primitive::Test},
    {">=", "is_greater_or_same", 2, Primitive::Test},
    {"quotient", "quotient", 2, Primitive::Value},
    {"remainder", "remainder_of", 2, Primitive::Value},
    {"modulo", "modulo", 2, Primitive::Value},
    {"sqrt", "square_root", 1, Primitive::Value},
    {"exact->inexact", "to_flonum", 1, Primitive::Value},
    {"truncate->exact", "to_fixnum", 1, Primitive::Value},
    {"number->string", "number_to_string", 1, Primitive::Value},

    {"make-vector", "make_vector", 2, Primitive::Value},
    {"vector-length", "vector_length", 1, Primitive::Value},
    {"vector-ref", "vector_ref", 2, Primitive::Value},
    {"vector-set!", "vector_set", 3, Primitive::Value},

    {"make-string", "make_string", 2, Primitive::Value},
    {"string-length", "string_length", 1, Primitive::Value},
    {"string-ref", "string_ref", 2, Primitive::Value},
    {"string-set!", "string_set", 3, Primitive::Value},
    {"string-append", "string_append", 2, Primitive::Fold},
    {"substring", "substring", 3, Primitive::Value},
    {"string=?", "is_same_string", 2, Primitive::Test},
    {"string<?", "is_string_less", 2, Primitive::Test},
    {"symbol->string", "symbol_to_string", 1, Primitive::Value},
    {"string->symbol", "string_to_symbol", 1, Primitive::Value},
    {"char=?", "is_eq", 2, Primitive::Test},
    {"char->integer", "character_to_integer", 1, Primitive::Value},
    {"integer->char", "integer_to_character", 1, Primitive::Value},
    {"char-alphabetic?", "is_alphabetic", 1, Primitive::Test},
    {"char-numeric?", "is_numeric", 1, Primitive::Test},

    {"eq-hash", "hash_by_identity", 1, Primitive::Value},
    {"equal-hash", "hash_by_content", 1, Primitive::Value},
    {"make-weak", "make_weak", 1, Primitive::Value},
    {"weak-value", "weak_value", 1, Primitive::Value},
    {"collect", "collect", 0, Primitive::Value},
    {"epoch", "epoch", 0, Primitive::Value},
    {"command-line-number", "argument", 2, Primitive::Value},

    {"display", "display", 1, Primitive::Value},
    {"write", "write_value", 1, Primitive::Value},
    {"newline", "newline", 0, Primitive::Value},
    {"%error", "report_error", 2, Primitive::Value},
};

}  // namespace

const Primitive* find_primitive(const std::string& name) {
  static const auto by_name = [] {
    std::map<std::string, const Primitive*> map;
    for (const Primitive& primitive : kPrimitives) map[primitive.name] = &primitive;
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace scheme
