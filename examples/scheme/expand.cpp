// From data to expressions: special forms become the few kinds that there are, names become
// variables. Keywords are names like others, which a program may give another meaning.
#include <map>

#include "program.hpp"

namespace scheme {
namespace {

struct Scope {
  std::map<std::string, Variable*> names = {};
  const Scope* outer = nullptr;

  [[nodiscard]] Variable* find(const std::string& name) const {
    const auto found = names.find(name);
    if (found != names.end()) return found->second;
    return outer != nullptr ? outer->find(name) : nullptr;
  }
};

struct Definition {
  std::string name;
  const Datum* value;
};

constexpr const char* kNested = "nested too deeply";

// Many parts of one form may be as many expressions in one another: (+ 1 2 3 ...), cond's clauses.
void check_depth(const Expression& expression, int depth) {
  if (depth > kMostNested) throw Error(expression.line, kNested);
  for (const Expression* part : expression.parts) check_depth(*part, depth + 1);
  if (expression.lambda != nullptr) check_depth(*expression.lambda->body, depth + 1);
}

using Expressions = std::vector<Expression*>;
using Variables = std::vector<Variable*>;

class Expander {
 public:
  explicit Expander(Program* program) : program_(*program) {}

  void expand_text(const std::vector<Datum*>& text, Scope* scope) {
    for (const Datum* form : text) {
      if (!is_form(*form, "define", *scope)) continue;
      const std::string& name = definition(*form).name;
      Variable*& variable = scope->names[name];
      if (variable != nullptr) {
        variable->assigned = true;
        continue;
      }
      variable = program_.new_variable(name);
      variable->global = true;
    }
    for (const Datum* form : text) {
      if (is_form(*form, "define", *scope)) {
        const Definition defined = definition(*form);
        program_.forms.push_back(make_assign(scope->names[defined.name],
                                             expand_named(*defined.value, *scope, defined.name)));
      } else {
        program_.forms.push_back(expand(*form, *scope));
      }
    }
  }

 private:
  // ---- Data ----

  static void require(bool good, const Datum& datum, const char* what) {
    if (!good) throw Error(datum.line, what);
  }
  static bool is_form(const Datum& datum, const char* keyword, const Scope& scope) {
    return datum.is_list() && !datum.items.empty() && datum.items[0]->is_symbol() &&
           datum.items[0]->text == keyword && scope.find(keyword) == nullptr;
  }
  static bool mentions(const Datum& datum, const std::string& name) {
    if (datum.is_symbol()) return datum.text == name;
    for (const Datum* item : datum.items) {
      if (mentions(*item, name)) return true;
    }
    return datum.tail != nullptr && mentions(*datum.tail, name);
  }

  // (define x e), or (define (f . parameters) . body) as (define f (lambda parameters . body)).
  Definition definition(const Datum& form) {
    require(form.items.size() >= 2, form, "define what?");
    const Datum* target = form.items[1];
    if (target->is_symbol()) {
      require(form.items.size() == 3, form, "define: a name and one expression");
      return {target->text, form.items[2]};
    }
    require(target->kind == Datum::List && !target->items.empty() && target->items[0]->is_symbol(),
            form, "define what?");
    Datum* keyword = program_.data.make(Datum::Symbol, form.line);
    keyword->text = "lambda";
    Datum* parameters = program_.data.make(Datum::List, form.line);
    parameters->items.assign(target->items.begin() + 1, target->items.end());
    parameters->tail = target->tail;
    Datum* lambda = program_.data.make(Datum::List, form.line);
    lambda->items = {keyword, parameters};
    lambda->items.insert(lambda->items.end(), form.items.begin() + 2, form.items.end());
    return {target->items[0]->text, lambda};
  }

  // ---- Making expressions ----

  Expression* make(Expression::Kind kind, int line, Expressions parts = {}) {
    Expression* made = program_.new_expression(kind, line);
    made->parts = std::move(parts);
    return made;
  }
  Expression* make_constant(const Datum* datum, int line) {
    Expression* made = make(Expression::Constant, line);
    made->datum = datum;
    return made;
  }
  Expression* make_unspecified(int line) { return make_constant(nullptr, line); }
  Expression* make_number(Datum::Kind kind, std::int64_t integer, int line) {
    Datum* datum = program_.data.make(kind, line);
    datum->integer = integer;
    return make_constant(datum, line);
  }
  Expression* make_reference(Variable* variable, int line) {
    Expression* made = make(Expression::Reference, line);
    made->variable = variable;
    return made;
  }
  Expression* make_assign(Variable* variable, Expression* value) {
    Expression* made = make(Expression::Assign, value->line, {value});
    made->variable = variable;
    return made;
  }
  Expression* make_apply(const Primitive* primitive, Expressions arguments, int line) {
    Expression* made = make(Expression::Apply, line, std::move(arguments));
    made->primitive = primitive;
    return made;
  }
  Expression* make_sequence(Expressions parts, int line) {
    if (parts.empty()) return make_unspecified(line);
    return parts.size() == 1 ? parts[0] : make(Expression::Sequence, line, std::move(parts));
  }

  // Procedures that keep their names are for Fix, which knows what is called by them.
  Expression* make_let(const Variables& variables, const Expressions& values, Expression* body) {
    Expression* let = make(Expression::Let, body->line);
    Expression* fix = make(Expression::Fix, body->line);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      Expression* made =
          values[i]->kind == Expression::Function && !variables[i]->assigned ? fix : let;
      made->variables.push_back(variables[i]);
      made->parts.push_back(values[i]);
      if (made == fix) variables[i]->known = values[i]->lambda;
    }
    fix->parts.push_back(body);
    let->parts.push_back(fix->variables.empty() ? body : fix);
    return let->variables.empty() ? let->body() : let;
  }

  // What sees one another: procedures as they are; everything else is assigned, in its order.
  Expression* make_recursive(const Variables& variables, const Expressions& values,
                             Expression* body) {
    Variables later;
    Expressions nothing;
    Expressions steps;
    Expression* fix = make(Expression::Fix, body->line);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (values[i]->kind == Expression::Function && !variables[i]->assigned) {
        fix->variables.push_back(variables[i]);
        fix->parts.push_back(values[i]);
        variables[i]->known = values[i]->lambda;
      } else {
        later.push_back(variables[i]);
        nothing.push_back(make_unspecified(body->line));
        steps.push_back(make_assign(variables[i], values[i]));
        variables[i]->assigned = true;
      }
    }
    steps.push_back(body);
    body = make_sequence(steps, body->line);
    if (!fix->variables.empty()) {
      fix->parts.push_back(body);
      body = fix;
    }
    return make_let(later, nothing, body);
  }

  // ---- Expressions ----

  Expression* expand(const Datum& datum, const Scope& scope) {
    if (datum.is_symbol()) return expand_name(datum, scope);
    if (datum.kind != Datum::List) return make_constant(&datum, datum.line);
    require(datum.is_list() && !datum.items.empty(), datum, "this is no expression");
    const Datum& head = *datum.items[0];
    if (head.is_symbol() && scope.find(head.text) == nullptr) {
      const auto form = forms().find(head.text);
      if (form != forms().end()) return (this->*form->second)(datum, scope);
      const Primitive* primitive = find_primitive(head.text);
      if (primitive != nullptr) {
        return expand_primitive(*primitive, expand_all(datum.items, 1, scope), datum);
      }
    }
    return make(Expression::Call, datum.line, expand_all(datum.items, 0, scope));
  }

  Expressions expand_all(const std::vector<Datum*>& items, std::size_t from, const Scope& scope) {
    Expressions all;
    for (std::size_t i = from; i < items.size(); ++i) all.push_back(expand(*items[i], scope));
    return all;
  }

  Expression* expand_named(const Datum& datum, const Scope& scope, const std::string& name) {
    if (!is_form(datum, "lambda", scope)) return expand(datum, scope);
    require(datum.items.size() >= 3, datum, "lambda: parameters and a body");
    return expand_lambda(name, *datum.items[1], datum, 2, scope);
  }

  Expression* expand_name(const Datum& datum, const Scope& scope) {
    Variable* variable = scope.find(datum.text);
    if (variable != nullptr) return make_reference(variable, datum.line);
    const Primitive* primitive = find_primitive(datum.text);
    if (primitive == nullptr) throw Error(datum.line, "nothing is called " + datum.text);
    // (lambda (a b) (primitive a b))
    Expression* function = make(Expression::Function, datum.line);
    function->lambda = program_.new_lambda(datum.text);
    Expressions arguments;
    for (int i = 0; i < primitive->arguments; ++i) {
      function->lambda->parameters.push_back(program_.new_variable("a"));
      arguments.push_back(make_reference(function->lambda->parameters.back(), datum.line));
    }
    function->lambda->body = make_apply(primitive, arguments, datum.line);
    return function;
  }

  Expression* expand_primitive(const Primitive& primitive, Expressions arguments,
                               const Datum& datum) {
    const std::string name = primitive.name;
    const auto needed = static_cast<std::size_t>(primitive.arguments);
    if (primitive.form == Primitive::Fold) {
      const bool adds = name == "+" || name == "-";
      if (arguments.empty() && (name == "+" || name == "*")) {
        return make_number(Datum::Fixnum, adds ? 0 : 1, datum.line);
      }
      if (arguments.size() == 1 && (name == "-" || name == "/")) {
        arguments.insert(arguments.begin(), make_number(Datum::Fixnum, adds ? 0 : 1, datum.line));
      }
      require(!arguments.empty(), datum, "too few arguments");
      Expression* result = arguments[0];
      for (std::size_t i = 1; i < arguments.size(); ++i) {
        result = make_apply(&primitive, {result, arguments[i]}, datum.line);
      }
      return result;
    }
    if (arguments.size() != needed) {
      throw Error(datum.line, name + " takes " + std::to_string(needed) + " arguments");
    }
    return make_apply(&primitive, std::move(arguments), datum.line);
  }

  Expression* expand_lambda(const std::string& name, const Datum& parameters, const Datum& datum,
                            std::size_t body_from, const Scope& scope) {
    Expression* function = make(Expression::Function, datum.line);
    Lambda* lambda = program_.new_lambda(name);
    function->lambda = lambda;
    Scope inner{.outer = &scope};
    const auto add = [&](const Datum& parameter) {
      require(parameter.is_symbol(), datum, "a parameter is a name");
      lambda->parameters.push_back(program_.new_variable(parameter.text));
      inner.names[parameter.text] = lambda->parameters.back();
    };
    if (parameters.kind == Datum::List) {
      for (const Datum* parameter : parameters.items) add(*parameter);
      if (parameters.tail != nullptr) add(*parameters.tail);
    } else {
      add(parameters);
    }
    lambda->rest = parameters.kind != Datum::List || parameters.tail != nullptr;
    require(lambda->parameters.size() <= kMostArguments, datum, "more than 8 parameters");
    lambda->body = expand_body(datum, body_from, inner);
    return function;
  }

  // Definitions, then expressions.
  Expression* expand_body(const Datum& datum, std::size_t from, const Scope& scope) {
    std::vector<Definition> definitions;
    while (from < datum.items.size() && is_form(*datum.items[from], "define", scope)) {
      definitions.push_back(definition(*datum.items[from++]));
    }
    require(from < datum.items.size(), datum, "a body without an expression");
    return expand_recursive(definitions, datum, from, scope);
  }

  Expression* expand_recursive(const std::vector<Definition>& definitions, const Datum& datum,
                               std::size_t from, const Scope& scope) {
    Scope inner{.outer = &scope};
    Variables variables;
    for (const Definition& each : definitions) {
      variables.push_back(program_.new_variable(each.name));
      inner.names[each.name] = variables.back();
    }
    Expressions values;
    for (const Definition& each : definitions) {
      values.push_back(expand_named(*each.value, inner, each.name));
    }
    Expression* body = make_sequence(expand_all(datum.items, from, inner), datum.line);
    // Values that use nothing of what comes later are bound one after another.
    std::size_t plain = 0;
    for (; plain < values.size() && values[plain]->kind != Expression::Function; ++plain) {
      bool uses_later = false;
      for (std::size_t i = plain; i < definitions.size(); ++i) {
        uses_later |= mentions(*definitions[plain].value, definitions[i].name);
      }
      if (uses_later) break;
    }
    const auto rest = static_cast<std::ptrdiff_t>(plain);
    body = make_recursive({variables.begin() + rest, variables.end()},
                          {values.begin() + rest, values.end()}, body);
    while (plain-- > 0) body = make_let({variables[plain]}, {values[plain]}, body);
    return body;
  }

  // ---- Special forms ----

  using Form = Expression* (Expander::*)(const Datum&, const Scope&);
  static const std::map<std::string, Form>& forms() {
    static const std::map<std::string, Form> all = {{"quote", &Expander::expand_quote},
                                                    {"if", &Expander::expand_if},
                                                    {"lambda", &Expander::expand_function},
                                                    {"set!", &Expander::expand_set},
                                                    {"begin", &Expander::expand_begin},
                                                    {"let", &Expander::expand_let},
                                                    {"let*", &Expander::expand_let_star},
                                                    {"letrec", &Expander::expand_letrec},
                                                    {"letrec*", &Expander::expand_letrec},
                                                    {"cond", &Expander::expand_cond},
                                                    {"case", &Expander::expand_case},
                                                    {"and", &Expander::expand_and},
                                                    {"or", &Expander::expand_or},
                                                    {"when", &Expander::expand_when},
                                                    {"unless", &Expander::expand_when},
                                                    {"do", &Expander::expand_do},
                                                    {"define", &Expander::expand_misplaced},
                                                    {"else", &Expander::expand_misplaced}};
    return all;
  }

  Expression* expand_misplaced(const Datum& datum, const Scope& /*scope*/) {
    throw Error(datum.line, datum.items[0]->text + " cannot stand here");
  }
  Expression* expand_quote(const Datum& datum, const Scope& /*scope*/) {
    require(datum.items.size() == 2, datum, "quote what?");
    return make_constant(datum.items[1], datum.line);
  }
  Expression* expand_function(const Datum& datum, const Scope& scope) {
    return expand_named(datum, scope, "lambda");
  }
  Expression* expand_begin(const Datum& datum, const Scope& scope) {
    return make_sequence(expand_all(datum.items, 1, scope), datum.line);
  }
  Expression* expand_if(const Datum& datum, const Scope& scope) {
    require(datum.items.size() == 3 || datum.items.size() == 4, datum, "if: two or three parts");
    Expression* made = make(Expression::If, datum.line, expand_all(datum.items, 1, scope));
    if (made->parts.size() == 2) made->parts.push_back(make_unspecified(datum.line));
    return made;
  }
  Expression* expand_when(const Datum& datum, const Scope& scope) {
    require(datum.items.size() >= 3, datum, "when, unless: a test and a body");
    Expression* made = make(Expression::If, datum.line, {expand(*datum.items[1], scope)});
    made->parts.push_back(make_sequence(expand_all(datum.items, 2, scope), datum.line));
    made->parts.push_back(make_unspecified(datum.line));
    if (datum.items[0]->text == "unless") std::swap(made->parts[1], made->parts[2]);
    return made;
  }
  Expression* expand_set(const Datum& datum, const Scope& scope) {
    require(datum.items.size() == 3 && datum.items[1]->is_symbol(), datum,
            "set!: a name and an expression");
    Variable* variable = scope.find(datum.items[1]->text);
    require(variable != nullptr, datum, "set! of what is no variable");
    variable->assigned = true;
    return make_assign(variable, expand(*datum.items[2], scope));
  }

  // ((name value) ...)
  static std::vector<Definition> bindings(const Datum& datum, const Datum& list,
                                          std::size_t most = 2) {
    std::vector<Definition> all;
    require(list.is_list(), datum, "a list of bindings was expected");
    for (const Datum* item : list.items) {
      require(item->is_list() && item->items.size() >= 2 && item->items.size() <= most &&
                  item->items[0]->is_symbol(),
              datum, "a binding has a name and a value");
      all.push_back({item->items[0]->text, item->items[1]});
    }
    return all;
  }

  Expression* expand_let(const Datum& datum, const Scope& scope) {
    require(datum.items.size() >= 3, datum, "let: bindings and a body");
    const bool named = datum.items[1]->is_symbol();
    const std::vector<Definition> all = bindings(datum, *datum.items[named ? 2 : 1]);
    Scope inner{.outer = &scope};
    Variables variables;
    Expressions values;
    for (const Definition& each : all) {
      values.push_back(expand_named(*each.value, scope, each.name));
      variables.push_back(program_.new_variable(each.name));
      inner.names[each.name] = variables.back();
    }
    if (!named) {
      Expression* body = expand_body(datum, 2, inner);
      return make_let(variables, values, body);
    }
    // The name is seen by the body, not by the values.
    const std::string& name = datum.items[1]->text;
    Variable* loop = program_.new_variable(name);
    const Scope naming{.names = {{name, loop}}, .outer = &scope};
    inner.outer = &naming;
    return make_loop(loop, variables, values, expand_body(datum, 3, inner));
  }
  Expression* make_loop(Variable* loop, const Variables& variables, Expressions values,
                        Expression* body) {
    Expression* function = make(Expression::Function, body->line);
    function->lambda = program_.new_lambda(loop->name);
    function->lambda->parameters = variables;
    function->lambda->body = body;
    values.insert(values.begin(), make_reference(loop, body->line));
    return make_recursive({loop}, {function},
                          make(Expression::Call, body->line, std::move(values)));
  }
  Expression* expand_let_star(const Datum& datum, const Scope& scope) {
    require(datum.items.size() >= 3, datum, "let*: bindings and a body");
    return expand_bindings_from(bindings(datum, *datum.items[1]), 0, datum, scope);
  }
  Expression* expand_bindings_from(const std::vector<Definition>& all, std::size_t i,
                                   const Datum& datum, const Scope& scope) {
    if (i == all.size()) return expand_body(datum, 2, scope);
    require(i < kMostNested, datum, kNested);
    Variable* variable = program_.new_variable(all[i].name);
    const Scope inner{.names = {{all[i].name, variable}}, .outer = &scope};
    Expression* value = expand_named(*all[i].value, scope, all[i].name);
    Expression* body = expand_bindings_from(all, i + 1, datum, inner);
    return make_let({variable}, {value}, body);
  }
  Expression* expand_letrec(const Datum& datum, const Scope& scope) {
    require(datum.items.size() >= 3, datum, "letrec: bindings and a body");
    return expand_recursive(bindings(datum, *datum.items[1]), datum, 2, scope);
  }

  // (do ((variable first next) ...) (test result ...) step ...)
  Expression* expand_do(const Datum& datum, const Scope& scope) {
    require(datum.items.size() >= 3 && datum.items[2]->is_list() && !datum.items[2]->items.empty(),
            datum, "do: bindings, a test and steps");
    Scope inner{.outer = &scope};
    Variables variables;
    Expressions values;
    Variable* loop = program_.new_variable("do");
    for (const Definition& each : bindings(datum, *datum.items[1], 3)) {
      values.push_back(expand(*each.value, scope));
      variables.push_back(program_.new_variable(each.name));
      inner.names[each.name] = variables.back();
    }
    Expression* again = make(Expression::Call, datum.line, {make_reference(loop, datum.line)});
    const std::vector<Datum*>& items = datum.items[1]->items;
    for (std::size_t i = 0; i < items.size(); ++i) {
      again->parts.push_back(items[i]->items.size() == 3
                                 ? expand(*items[i]->items[2], inner)
                                 : make_reference(variables[i], datum.line));
    }
    const std::vector<Datum*>& end = datum.items[2]->items;
    Expressions steps = expand_all(datum.items, 3, inner);
    steps.push_back(again);
    Expression* body = make(Expression::If, datum.line, {expand(*end[0], inner)});
    body->parts.push_back(make_sequence(expand_all(end, 1, inner), datum.line));
    body->parts.push_back(make_sequence(steps, datum.line));
    return make_loop(loop, variables, values, body);
  }

  Expression* expand_and(const Datum& datum, const Scope& scope) {
    Expressions parts = expand_all(datum.items, 1, scope);
    if (parts.empty()) return make_number(Datum::Boolean, 1, datum.line);
    Expression* result = parts.back();
    for (std::size_t i = parts.size() - 1; i-- > 0;) {
      result = make(Expression::If, datum.line,
                    {parts[i], result, make_number(Datum::Boolean, 0, datum.line)});
    }
    return result;
  }
  Expression* expand_or(const Datum& datum, const Scope& scope) {
    Expressions parts = expand_all(datum.items, 1, scope);
    if (parts.empty()) return make_number(Datum::Boolean, 0, datum.line);
    Expression* result = parts.back();
    for (std::size_t i = parts.size() - 1; i-- > 0;) result = make_or(parts[i], result);
    return result;
  }
  Expression* make_or(Expression* first, Expression* second) {
    const int line = first->line;
    if (first->kind == Expression::Apply && first->primitive->form == Primitive::Test) {
      return make(Expression::If, line, {first, make_number(Datum::Boolean, 1, line), second});
    }
    Variable* variable = program_.new_variable("or");
    return make_let({variable}, {first},
                    make(Expression::If, line,
                         {make_reference(variable, line), make_reference(variable, line), second}));
  }

  Expression* expand_cond(const Datum& datum, const Scope& scope) {
    Expression* result = make_unspecified(datum.line);
    for (std::size_t i = datum.items.size() - 1; i > 0; --i) {
      const Datum& clause = *datum.items[i];
      require(clause.is_list() && !clause.items.empty(), datum, "cond: a clause is a list");
      const Datum& test = *clause.items[0];
      if (test.is_symbol() && test.text == "else") {
        result = make_sequence(expand_all(clause.items, 1, scope), clause.line);
      } else if (clause.items.size() == 1) {
        result = make_or(expand(test, scope), result);
      } else {
        result = make(Expression::If, clause.line,
                      {expand(test, scope),
                       make_sequence(expand_all(clause.items, 1, scope), clause.line), result});
      }
    }
    return result;
  }

  Expression* expand_case(const Datum& datum, const Scope& scope) {
    require(datum.items.size() >= 3, datum, "case: a key and clauses");
    Variable* key = program_.new_variable("key");
    Expression* result = make_unspecified(datum.line);
    for (std::size_t i = datum.items.size() - 1; i > 1; --i) {
      const Datum& clause = *datum.items[i];
      require(clause.is_list() && clause.items.size() >= 2, datum, "case: a clause is a list");
      Expression* body = make_sequence(expand_all(clause.items, 1, scope), clause.line);
      if (clause.items[0]->is_symbol() && clause.items[0]->text == "else") {
        result = body;
        continue;
      }
      Expression* test = make_number(Datum::Boolean, 0, clause.line);
      for (const Datum* datum_of : clause.items[0]->items) {
        test = make_or(
            make_apply(find_primitive("eqv?"),
                       {make_reference(key, clause.line), make_constant(datum_of, clause.line)},
                       clause.line),
            test);
      }
      result = make(Expression::If, clause.line, {test, body, result});
    }
    return make_let({key}, {expand(*datum.items[1], scope)}, result);
  }

  Program& program_;
};

}  // namespace

void expand(const std::vector<Datum*>& prelude, const std::vector<Datum*>& text, Program* program) {
  Expander expander(program);
  Scope prelude_names;
  Scope names{.outer = &prelude_names};
  expander.expand_text(prelude, &prelude_names);
  expander.expand_text(text, &names);
  // A procedure that is defined once is known to all who call it.
  for (Expression* form : program->forms) {
    check_depth(*form, 1);
    if (form->kind == Expression::Assign && form->variable->global && !form->variable->assigned &&
        form->parts[0]->kind == Expression::Function) {
      form->variable->known = form->parts[0]->lambda;
    }
  }
}

}  // namespace scheme
