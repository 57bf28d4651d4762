// C for a program. Each lambda expression becomes a function, each variable a variable of C's; the
// value of each other expression gets a name of its own, so that they are evaluated from the left
// to the right.
#include <cctype>
#include <cstdio>
#include <map>
#include <sstream>

#include "program.hpp"

namespace scheme {
namespace {

// What becomes of an expression's value.
struct Target {
  enum Kind { Return, Define, Store, Test, Ignore };
  Kind kind;
  std::string name = {};  // of the variable: a new one, one that there is, a bool
};

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

std::string name_of(char prefix, int number, const std::string& name) {
  std::string made = text(prefix, number, '_');
  for (const char c : name) made += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return made;
}
std::string name_of(const Variable* variable) {
  return name_of(variable->global ? 'g' : 'v', variable->number, variable->name);
}
// An argument or a loop's variable before it is put into its box.
std::string raw_name_of(const Variable* variable) {
  return name_of(variable) + (variable->is_boxed() ? "_raw" : "");
}
std::string function_of(const Lambda* lambda) { return name_of('f', lambda->number, lambda->name); }
std::string code_of(const Lambda* lambda) { return name_of('c', lambda->number, lambda->name); }
std::string closure_of(const Lambda* lambda) { return name_of('k', lambda->number, lambda->name); }

std::string quoted(const std::string& content) {
  std::string made = "\"";
  for (const char c : content) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ' || c == '-') {
      made += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\%03o", static_cast<unsigned char>(c));
      made += escape;
    }
  }
  return made + '"';
}

// Constants: immediates where they are used, objects in static data. They must not be const: a
// program may change a pair that it has quoted, and then the word is a root like others.
class Constants {
 public:
  std::string value(const Datum* datum) {
    if (datum == nullptr) return "UNSPECIFIED";
    switch (datum->kind) {
      case Datum::Boolean:
        return datum->integer != 0 ? "TRUE" : "FALSE";
      case Datum::Fixnum:
        return text("make_fixnum(", datum->integer, ')');
      case Datum::Character:
        return text("make_character(", datum->integer, ')');
      default:
        return object(*datum);
    }
  }
  [[nodiscard]] std::string definitions() const { return definitions_.str(); }
  [[nodiscard]] std::string symbols() const {
    std::string made;
    for (const auto& [name, value] : symbols_) made += text("&", value, ", ");
    return made;
  }

 private:
  // In an initialiser only macros will do.
  std::string initial(const Datum* datum) {
    if (datum->kind == Datum::Fixnum) {
      return text("FIXNUM | (value)INT64_C(", datum->integer, ')');
    }
    if (datum->kind == Datum::Character) return text("CHARACTER | ", datum->integer);
    return value(datum);
  }
  std::string define(const char* type, const std::string& content, const char* tag) {
    const std::string name = text("o", ++count_);
    definitions_ << "static struct " << type << ' ' << name << " = {" << content << "};\n";
    return text("STATIC(", name, ", ", tag, ')');
  }
  std::string string(const std::string& content) {
    return define("string", text(content.size(), ", {", quoted(content), "}"), "TAG_STRING");
  }

  std::string object(const Datum& datum) {
    switch (datum.kind) {
      case Datum::Flonum: {
        char number[40];
        std::snprintf(number, sizeof number, "%.17g", datum.number);
        return define("flonum", number, "TAG_FLONUM");
      }
      case Datum::String:
        return string(datum.text);
      case Datum::Symbol: {
        std::string& symbol = symbols_[datum.text];
        if (symbol.empty()) {
          define("symbol", string(datum.text), "TAG_SYMBOL");
          symbol = text("o", count_);
        }
        return text("STATIC(", symbol, ", TAG_SYMBOL)");
      }
      case Datum::Vector: {
        std::string items;
        for (const Datum* item : datum.items) items += text(initial(item), ", ");
        return define("vector", text(datum.items.size(), ", {", items, '}'), "TAG_VECTOR");
      }
      default: {
        std::string list = datum.tail != nullptr ? initial(datum.tail) : "NIL";
        for (std::size_t i = datum.items.size(); i-- > 0;) {
          list = define("pair", text(initial(datum.items[i]), ", ", list), "TAG_PAIR");
        }
        return list;
      }
    }
  }

  std::ostringstream definitions_;
  std::map<std::string, std::string> symbols_;
  int count_ = 0;
};

class FunctionEmitter {
 public:
  FunctionEmitter(const Lambda* lambda, Constants* constants)
      : lambda_(lambda), constants_(*constants) {}

  static std::string head(const Lambda* lambda) {
    std::string made = text("static value ", function_of(lambda), "(value self");
    for (const Variable* parameter : lambda->parameters) {
      made += text(", value ", raw_name_of(parameter));
    }
    return made + ")";
  }

  std::string emit() {
    line(head(lambda_), " {");
    ++depth_;
    for (const Variable* parameter : lambda_->parameters) put_into_box(parameter);
    statement(*lambda_->body, {Target::Return});
    --depth_;
    line("}");
    return out_.str();
  }

 private:
  using Expressions = std::vector<Expression*>;

  template <class... Parts>
  void line(const Parts&... parts) {
    out_ << std::string(2 * static_cast<std::size_t>(depth_), ' ') << text(parts...) << '\n';
  }
  std::string new_name() { return text("t", ++names_); }

  // ---- Variables ----

  std::string place(const Variable* variable) const {
    if (variable->known != nullptr && variable->known->is_static()) {
      return text("STATIC(", closure_of(variable->known), ", TAG_CLOSURE)");
    }
    if (variable->global) return name_of(variable);
    if (variable->known == lambda_) return "self";
    if (variable->owner == lambda_) return name_of(variable);
    std::size_t i = 0;
    while (lambda_->free[i] != variable) ++i;
    return text("free_variable(self, ", i, ')');
  }
  std::string variable(const Variable* variable) const {
    return variable->is_boxed() ? text("box_at(", place(variable), ")->content") : place(variable);
  }
  void put_into_box(const Variable* variable) {
    if (!variable->is_boxed()) return;
    line("value ", name_of(variable), " = make_box(", raw_name_of(variable), ");");
  }
  // Under its raw name.
  void bind(const Variable* variable, const Expression& value) {
    define(raw_name_of(variable), value);
  }
  void define(const std::string& name, const Expression& value) {
    const Expression* last = &value;
    while (last->kind == Expression::Sequence || last->kind == Expression::Let ||
           last->kind == Expression::Fix) {
      last = last->body();
    }
    if (last->kind != Expression::If && last->kind != Expression::Loop) {
      return statement(value, {Target::Define, name});
    }
    line("value ", name, ';');
    statement(value, {Target::Store, name});
  }

  // ---- Values ----

  // C for the value, which may be written down anywhere later, and more than once: a constant, or
  // the name of what does not change any more.
  std::string operand(const Expression& expression) {
    if (expression.kind == Expression::Constant) return constants_.value(expression.datum);
    if (expression.kind == Expression::Reference) {
      const Variable* used = expression.variable;
      if (used->known != nullptr || (!used->global && !used->assigned)) return place(used);
    }
    std::string name = new_name();
    define(name, expression);
    return name;
  }
  std::vector<std::string> operands(const Expressions& parts, std::size_t from) {
    std::vector<std::string> all;
    for (std::size_t i = from; i < parts.size(); ++i) all.push_back(operand(*parts[i]));
    return all;
  }
  static std::string joined(const std::vector<std::string>& all, const std::string& before = "") {
    std::string made = before;
    for (const std::string& each : all) made += made.empty() ? each : text(", ", each);
    return made;
  }

  // C for what decides an if.
  std::string test(const Expression& expression) {
    if (expression.kind == Expression::Apply && expression.primitive->form == Primitive::Test) {
      if (std::string(expression.primitive->function) == "is_not") {
        return text('!', test(*expression.parts[0]));
      }
      return application(expression);
    }
    if (expression.kind == Expression::If) {
      std::string name = new_name();
      line("bool ", name, ';');
      statement(expression, {Target::Test, name});
      return name;
    }
    return text("is_true(", operand(expression), ')');
  }
  std::string application(const Expression& expression) {
    return text(expression.primitive->function, '(', joined(operands(expression.parts, 0)), ')');
  }

  // ---- Statements ----

  void deliver(const Target& target, const std::string& value, bool does_something = false) {
    switch (target.kind) {
      case Target::Return:
        return line("return ", value, ';');
      case Target::Define:
        return line("value ", target.name, " = ", value, ';');
      case Target::Store:
        return line(target.name, " = ", value, ';');
      case Target::Test:
        return line(target.name, " = is_true(", value, ");");
      case Target::Ignore:
        if (does_something) line(value, ';');
    }
  }

  void statement(const Expression& expression, const Target& target) {
    switch (expression.kind) {
      case Expression::Constant:
        return deliver(target, constants_.value(expression.datum));
      case Expression::Reference:
        return deliver(target, variable(expression.variable));
      case Expression::Assign: {
        const std::string value = operand(*expression.parts[0]);
        line(variable(expression.variable), " = ", value, ';');
        return deliver(target, "UNSPECIFIED");
      }
      case Expression::If:
        return emit_if(expression, target);
      case Expression::Sequence:
        for (std::size_t i = 0; i + 1 < expression.parts.size(); ++i) {
          statement(*expression.parts[i], {Target::Ignore});
        }
        return statement(*expression.body(), target);
      case Expression::Let:
        for (std::size_t i = 0; i < expression.variables.size(); ++i) {
          bind(expression.variables[i], *expression.parts[i]);
          put_into_box(expression.variables[i]);
        }
        return statement(*expression.body(), target);
      case Expression::Fix:
        emit_closures(expression);
        return statement(*expression.body(), target);
      case Expression::Function: {
        const std::string name = new_name();
        if (expression.lambda->is_static()) {
          return deliver(target, text("STATIC(", closure_of(expression.lambda), ", TAG_CLOSURE)"));
        }
        line("value ", name, " = make_closure(&", code_of(expression.lambda), ");");
        fill_closure(name, expression.lambda);
        return deliver(target, name);
      }
      case Expression::Call:
        return emit_call(expression, target);
      case Expression::Apply: {
        const bool tests = expression.primitive->form == Primitive::Test;
        const std::string value = tests ? test(expression) : application(expression);
        if (!tests) return deliver(target, value, true);
        if (target.kind == Target::Test) return line(target.name, " = ", value, ';');
        return deliver(target, text("make_boolean(", value, ')'), true);
      }
      case Expression::Loop:
        return emit_loop(expression, target);
      case Expression::Jump:
        return emit_jump(expression);
    }
  }

  void emit_if(const Expression& expression, const Target& target) {
    line("if (", test(*expression.parts[0]), ") {");
    ++depth_;
    statement(*expression.parts[1], target);
    --depth_;
    if (target.kind != Target::Ignore || expression.parts[2]->kind != Expression::Constant) {
      line("} else {");
      ++depth_;
      statement(*expression.parts[2], target);
      --depth_;
    }
    line("}");
  }

  // All of them first, since they may hold one another. What a new closure holds is 0 meanwhile.
  void emit_closures(const Expression& fix) {
    for (const Variable* name : fix.variables) {
      if (name->known->is_static()) continue;
      line("value ", name_of(name), " = make_closure(&", code_of(name->known), ");");
    }
    for (const Variable* name : fix.variables) fill_closure(name_of(name), name->known);
  }
  void fill_closure(const std::string& closure, const Lambda* lambda) {
    for (std::size_t i = 0; i < lambda->free.size(); ++i) {
      line("closure_at(", closure, ")->free[", i, "] = ", place(lambda->free[i]), ';');
    }
  }

  void emit_call(const Expression& call, const Target& target) {
    const Variable* name = call.parts[0]->variable;
    const Lambda* known = name != nullptr ? name->known : nullptr;
    const std::string callee = operand(*call.parts[0]);
    std::vector<std::string> arguments = operands(call.parts, 1);
    if (known != nullptr && (known->returns_values || target.kind != Target::Return)) {
      if (known->rest) make_list(&arguments, known->parameters.size() - 1);
      // A function that is handed no closure's variables does not look at its first argument.
      const std::string direct =
          text(function_of(known), '(', joined(arguments, known->is_static() ? "0" : callee), ')');
      return deliver(target, known->returns_values ? direct : text("finish(", direct, ')'), true);
    }
    if (arguments.size() > kMostArguments) throw Error(call.line, "more than 8 arguments");
    const std::string count = std::to_string(arguments.size());
    const std::string array =
        arguments.empty() ? "NULL" : text("(const value[]){", joined(arguments), '}');
    if (target.kind == Target::Return) {
      return line("return tail_call(", callee, ", ", count, ", ", array, ");");
    }
    deliver(
        target,
        text("finish(takes(", callee, ", ", count, ") ? CODE(", callee, ", ", count, ")(",
             joined(arguments, callee), ") : call_any(", callee, ", ", count, ", ", array, "))"),
        true);
  }
  // Of all arguments but the first ones.
  void make_list(std::vector<std::string>* arguments, std::size_t first) {
    std::string list = "NIL";
    for (; arguments->size() > first; arguments->pop_back()) {
      const std::string longer = new_name();
      line("value ", longer, " = cons(", arguments->back(), ", ", list, ");");
      list = longer;
    }
    arguments->push_back(list);
  }

  void emit_loop(const Expression& loop, const Target& target) {
    for (std::size_t i = 0; i < loop.variables.size(); ++i) {
      bind(loop.variables[i], *loop.parts[i]);
    }
    if (loop.number != 0) line("loop_", loop.number, ":;");
    // Each round has boxes of its own: closures made in the one before keep theirs.
    for (const Variable* variable : loop.variables) put_into_box(variable);
    statement(*loop.body(), target);
  }

  void emit_jump(const Expression& jump) {
    const std::vector<Variable*>& variables = jump.loop->variables;
    std::vector<std::string> values = operands(jump.parts, 0);
    // One that is the name of a variable which changes before its turn is kept aside.
    for (std::size_t i = 1; i < values.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (values[i] != raw_name_of(variables[j])) continue;
        const std::string kept = new_name();
        line("value ", kept, " = ", values[i], ';');
        values[i] = kept;
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string name = raw_name_of(variables[i]);
      if (values[i] != name) line(name, " = ", values[i], ';');
    }
    line("goto loop_", jump.loop->number, ';');
  }

  const Lambda* lambda_;
  Constants& constants_;
  std::ostringstream out_;
  int depth_ = 0;
  int names_ = 0;
};

}  // namespace

std::string emit(const Program& program) {
  Constants constants;
  std::ostringstream heads;
  std::ostringstream codes;
  std::ostringstream functions;
  std::ostringstream lists[2];
  for (const Lambda* lambda : program.reached) {
    if (lambda->free.size() > 63) throw Error(lambda->body->line, "more than 63 free variables");
    const std::string code = code_of(lambda);
    heads << FunctionEmitter::head(lambda) << ";\n";
    const int parameters = static_cast<int>(lambda->parameters.size());
    codes << "static struct code " << code << " = {NULL, (void (*)(void))" << function_of(lambda)
          << ", " << (lambda->rest ? ~(parameters - 1) : parameters) << ", " << lambda->free.size()
          << ", " << quoted(lambda->name) << "};\n";
    if (lambda->is_static()) {
      codes << "static struct closure " << closure_of(lambda) << " = {&" << code << "};\n";
    }
    functions << '\n' << FunctionEmitter(lambda, &constants).emit();
    lists[0] << '&' << code << ", ";
  }
  for (const Variable* variable : program.globals) {
    codes << "static value " << name_of(variable) << " = UNSPECIFIED;\n";
    lists[1] << '&' << name_of(variable) << ", ";
  }
  std::ostringstream all;
  all << "/* Made by schemec. */\n#include \"runtime.h\"\n\n"
      << "/* Not everything that a program computes is used. */\n"
      << "#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
      << "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
      << "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n\n"
      << heads.str() << '\n'
      << codes.str() << '\n'
      << constants.definitions() << functions.str() << '\n'
      << "int main(int argc, char** argv) {\n"
      << "  static struct code* codes[] = {" << lists[0].str() << "NULL};\n"
      << "  static value* variables[] = {" << lists[1].str() << "NULL};\n"
      << "  static struct symbol* symbols[] = {" << constants.symbols() << "NULL};\n"
      << "  static const struct program program = {codes, variables, symbols, "
      << function_of(program.main) << "};\n"
      << "  return run_program(argc, argv, &program);\n}\n";
  return all.str();
}

}  // namespace scheme
