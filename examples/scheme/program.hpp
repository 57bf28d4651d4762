// A program as the passes of the compiler hand it on: expand (sugar is gone, names are variables),
// analyze (what is a loop, what needs a closure, what a box), emit (C).
#pragma once

#include "datum.hpp"

namespace scheme {

constexpr std::size_t kMostArguments = 8;  // MOST_ARGUMENTS in runtime.h

struct Lambda;

struct Variable {
  std::string name;
  int number = 0;
  bool global = false;
  bool assigned = false;  // by set!, or more than one definition
  // Bound to this expression for ever: calls go there directly.
  Lambda* known = nullptr;

  // analyze
  Lambda* owner = nullptr;  // whose C function has it; not a global one's
  bool captured = false;    // used in other lambda expressions than the owner's
  // Closures copy values, so a variable that changes must be somewhere else.
  [[nodiscard]] bool is_boxed() const { return assigned && captured; }
};

struct Primitive {
  const char* name;
  const char* function;  // runtime.h
  int arguments;         // the least number
  enum Form {
    Value,  // C function that returns a value
    Test,   // C function that returns bool
    Fold    // Value with two arguments, and (p a b c) is (p (p a b) c)
  } form;
};
const Primitive* find_primitive(const std::string& name);

struct Expression {
  enum Kind {
    Constant,   // datum; null: unspecified
    Reference,  // variable
    Assign,     // variable, parts: its new value. A definition is one, too
    If,         // parts: test, one, the other
    Sequence,   // parts
    Let,        // variables, parts: their values, the body
    Fix,        // variables, parts: their lambda expressions, the body. They see one another
    Function,   // lambda
    Call,       // parts: procedure, arguments
    Apply,      // primitive, parts: arguments
    Loop,       // variables, parts: their first values, the body
    Jump        // loop, parts: the variables' next values; in tail position of the loop's body
  };
  Kind kind;
  int line;
  std::vector<Expression*> parts = {};
  std::vector<Variable*> variables = {};
  Variable* variable = nullptr;
  const Datum* datum = nullptr;
  const Primitive* primitive = nullptr;
  Lambda* lambda = nullptr;
  Expression* loop = nullptr;
  int number = 0;  // a loop's, for its label; 0 while nothing jumps there

  [[nodiscard]] Expression* body() const { return parts.back(); }
  [[nodiscard]] bool is_constant(Datum::Kind of, std::int64_t integer) const {
    return kind == Constant && datum != nullptr && datum->kind == of && datum->integer == integer;
  }
};

struct Lambda {
  std::string name;
  int number = 0;
  std::vector<Variable*> parameters = {};
  bool rest = false;  // the last one is a list of all further arguments
  Expression* body = nullptr;

  // analyze
  bool reached = false;
  std::vector<Lambda*> inner = {};   // the lambda expressions directly in this one
  std::vector<Variable*> free = {};  // what a closure holds; without any, it is in static data
  bool returns_values = false;       // and never TAIL_CALL
  [[nodiscard]] bool is_static() const { return free.empty(); }
};

struct Program {
  Pool<Datum> data;
  Pool<Variable> variables;
  Pool<Expression> expressions;
  Pool<Lambda> lambdas;
  int numbers = 0;

  std::vector<Expression*> forms;  // of the top level, in their order
  Lambda* main = nullptr;          // has them for a body

  // analyze: what can be reached from the forms that do something.
  std::vector<Lambda*> reached;
  std::vector<Variable*> globals;

  Variable* new_variable(const std::string& name) { return variables.make(name, ++numbers); }
  Expression* new_expression(Expression::Kind kind, int line) {
    return expressions.make(kind, line);
  }
  Lambda* new_lambda(const std::string& name) { return lambdas.make(name, ++numbers); }
};

// Names of the prelude are seen by the program, which may define them anew for itself.
void expand(const std::vector<Datum*>& prelude, const std::vector<Datum*>& text, Program* program);
void analyze(Program* program);
std::string emit(const Program& program);

inline bool is_tail_call_to(const Expression& call, const Variable* variable) {
  return call.kind == Expression::Call && call.parts[0]->kind == Expression::Reference &&
         call.parts[0]->variable == variable;
}

}  // namespace scheme
