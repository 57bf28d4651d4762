// What a program needs at run time: which procedures are used at all, which calls are jumps, what a
// closure has to hold, which variables need a box, whose tail calls end soon.
#include <algorithm>

#include "program.hpp"

namespace scheme {
namespace {

// Calls visit(Expression*&) for what an expression ends with.
template <class Visit>
void for_each_tail(Expression*& expression, Visit visit) {
  switch (expression->kind) {
    case Expression::If:
      for_each_tail(expression->parts[1], visit);
      for_each_tail(expression->parts[2], visit);
      break;
    case Expression::Sequence:
    case Expression::Let:
    case Expression::Fix:
    case Expression::Loop:
      for_each_tail(expression->parts.back(), visit);
      break;
    default:
      visit(expression);
  }
}

// All of an expression but inner lambda expressions' bodies.
template <class Visit>
void for_each(Expression* expression, Visit visit) {
  visit(expression);
  for (Expression* part : expression->parts) for_each(part, visit);
}

bool contains(const std::vector<Variable*>& all, const Variable* one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

class Analyzer {
 public:
  explicit Analyzer(Program* program) : program_(*program) {}

  void run() {
    collect_forms();
    reach(program_.main);
    for (Lambda* lambda : program_.reached) find_owners(lambda);
    for (Lambda* lambda : program_.reached) find_captures(lambda);
    find_free_variables();
    find_tail_calls();
  }

 private:
  // ---- What is used ----

  // What the program does; a procedure that is known is there without being stored.
  void collect_forms() {
    program_.main = program_.new_lambda("main");
    program_.main->body = program_.new_expression(Expression::Sequence, 0);
    for (Expression* form : program_.forms) {
      make_loops(form);
      if (form->kind == Expression::Assign && form->variable->known != nullptr) {
        loop_itself(form->variable->known, form->variable);
      } else {
        program_.main->body->parts.push_back(form);
      }
    }
    program_.main->body->parts.push_back(program_.new_expression(Expression::Constant, 0));
  }

  void reach(Lambda* lambda) {
    if (lambda->reached) return;
    lambda->reached = true;
    program_.reached.push_back(lambda);
    for_each(lambda->body, [&](Expression* each) {
      if (each->kind == Expression::Call) check_call(*each);
      if (each->kind == Expression::Function) {
        lambda->inner.push_back(each->lambda);
        reach(each->lambda);
      }
      if (each->variable == nullptr || !each->variable->global) return;
      if (each->variable->known != nullptr) {
        reach(each->variable->known);
      } else if (!contains(program_.globals, each->variable)) {
        program_.globals.push_back(each->variable);
      }
    });
  }

  static void check_call(const Expression& call) {
    const Variable* variable = call.parts[0]->variable;
    if (variable == nullptr || variable->known == nullptr) return;
    const std::size_t given = call.parts.size() - 1;
    const std::size_t taken = variable->known->parameters.size();
    if (variable->known->rest ? given + 1 < taken : given != taken) {
      throw Error(call.line, "wrong number of arguments for " + variable->name);
    }
  }

  // ---- Loops ----

  static int uses(Expression* expression, const Variable* variable) {
    int count = 0;
    for_each(expression, [&](Expression* each) {
      count += each->kind == Expression::Reference && each->variable == variable ? 1 : 0;
      if (each->kind == Expression::Function) count += uses(each->lambda->body, variable);
    });
    return count;
  }

  // Tail calls of the procedure in its own body become jumps.
  void jump(Expression* loop, const Variable* procedure) {
    for_each_tail(loop->parts.back(), [&](Expression*& tail) {
      if (!is_tail_call_to(*tail, procedure)) return;
      check_call(*tail);
      if (loop->number == 0) loop->number = ++program_.numbers;
      Expression* made = program_.new_expression(Expression::Jump, tail->line);
      made->loop = loop;
      made->parts.assign(tail->parts.begin() + 1, tail->parts.end());
      tail = made;
    });
  }

  // A procedure that is called at one place, and apart from that by its own tail calls only, is a
  // loop: (let next ((i 0)) ... (next (+ i 1)) ...). From the inside outwards, so that an inner
  // loop may go on with the outer one.
  void make_loops(Expression*& expression) {
    for (Expression*& part : expression->parts) make_loops(part);
    if (expression->kind == Expression::Function) make_loops(expression->lambda->body);
    if (expression->kind != Expression::Fix || make_loop(expression)) return;
    for (std::size_t i = 0; i < expression->variables.size(); ++i) {
      loop_itself(expression->parts[i]->lambda, expression->variables[i]);
    }
  }

  bool make_loop(Expression*& fix) {
    if (fix->variables.size() != 1) return false;
    Variable* name = fix->variables[0];
    Lambda* procedure = fix->parts[0]->lambda;
    Expression* call = fix->body();
    if (!is_tail_call_to(*call, name) || procedure->rest || uses(call, name) != 1) return false;
    int tail_calls = 0;
    for_each_tail(procedure->body,
                  [&](Expression*& tail) { tail_calls += is_tail_call_to(*tail, name) ? 1 : 0; });
    if (tail_calls != uses(procedure->body, name)) return false;
    check_call(*call);
    Expression* loop = program_.new_expression(Expression::Loop, fix->line);
    loop->variables = procedure->parameters;
    loop->parts.assign(call->parts.begin() + 1, call->parts.end());
    loop->parts.push_back(procedure->body);
    jump(loop, name);
    fix = loop;
    return true;
  }

  // Other procedures' tail calls of themselves become a loop around the body.
  void loop_itself(Lambda* procedure, const Variable* name) {
    bool any = false;
    for_each_tail(procedure->body, [&](Expression*& tail) { any |= is_tail_call_to(*tail, name); });
    if (!any || procedure->rest) return;
    Expression* loop = program_.new_expression(Expression::Loop, procedure->body->line);
    loop->variables = procedure->parameters;
    for (Variable*& parameter : procedure->parameters) {
      parameter = program_.new_variable(parameter->name);
      loop->parts.push_back(program_.new_expression(Expression::Reference, loop->line));
      loop->parts.back()->variable = parameter;
    }
    loop->parts.push_back(procedure->body);
    procedure->body = loop;
    jump(loop, name);
  }

  // ---- Closures ----

  static void find_owners(Lambda* lambda) {
    for (Variable* parameter : lambda->parameters) parameter->owner = lambda;
    for_each(lambda->body, [lambda](Expression* each) {
      for (Variable* variable : each->variables) variable->owner = lambda;
    });
  }
  static bool is_foreign(const Variable* variable, const Lambda* lambda) {
    return variable != nullptr && !variable->global && variable->owner != lambda;
  }
  static void find_captures(Lambda* lambda) {
    for_each(lambda->body, [lambda](Expression* each) {
      if (is_foreign(each->variable, lambda)) each->variable->captured = true;
    });
  }

  // Begins with no closure holding anything, and goes on until nobody lacks a variable. What is in
  // static data needs not be held, nor the closure itself.
  void find_free_variables() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (Lambda* lambda : program_.reached) {
        const auto need = [&](Variable* variable) {
          if (!is_foreign(variable, lambda) || contains(lambda->free, variable)) return;
          if (variable->known != nullptr &&
              (variable->known == lambda || variable->known->is_static())) {
            return;
          }
          lambda->free.push_back(variable);
          changed = true;
        };
        for_each(lambda->body, [&](Expression* each) { need(each->variable); });
        for (const Lambda* inner : lambda->inner) {
          for (Variable* variable : inner->free) need(variable);
        }
      }
    }
  }

  // ---- Tail calls ----

  // A procedure that ends with no calls but of such procedures ends soon: it may be called as C
  // functions are. Nothing that can come back to itself gets here, except by jumps.
  void find_tail_calls() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (Lambda* lambda : program_.reached) {
        bool returns = true;
        for_each_tail(lambda->body, [&](Expression*& tail) {
          if (tail->kind != Expression::Call) return;
          const Variable* callee = tail->parts[0]->variable;
          returns &= callee != nullptr && callee->known != nullptr && callee->known->returns_values;
        });
        changed |= returns && !lambda->returns_values;
        lambda->returns_values = returns;
      }
    }
  }

  Program& program_;
};

}  // namespace

void analyze(Program* program) { Analyzer(program).run(); }

}  // namespace scheme
