// syntax: a translator from a small Pascal to C, which keeps the whole program as a tree.
//
// Models: a compiler, after the Pascal-to-C translator in Boehm's "Reducing Garbage Collector Cache
//   Misses". A source text of 14000 procedures (bench/support/pascal.hpp) is read into one tree:
//   nodes of 24 to 48 bytes, tables of names, strings as pointer-free objects. Names are
//   resolved, constants folded (new nodes in place of old ones), and C is written twice: every
//   expression's text is an object of its own, every procedure's a buffer that grows, and all of it
//   dies young while the tree stays.
// Live: the tree and the names, about 70 MB; the source text lies outside of the heap.
// Shows: the time of the whole; the part of it in collections and in marking.
#include "support/bench.hpp"
#include "support/pascal.hpp"

namespace {

using pascal::Symbol;
using pascal::Token;

// --- the tree -----------------------------------------------------------------------------------

enum class Kind : uint32_t {
  Number,
  Name,
  Text,
  Unary,
  Binary,
  Call,
  Assign,
  If,
  While,
  For,
  Block
};

struct Node {
  Kind kind;
  uint32_t line;
  Node* next;  // in a list of statements or of arguments
};

struct Declaration;

struct Number : Node {
  int64_t value;
};
struct Name : Node {
  Symbol* symbol;
  Declaration* declaration;  // found when names are resolved
};
struct Text : Node {
  pascal::String* string;
};
struct Unary : Node {
  Token sign;
  Node* operand;
};
struct Binary : Node {
  Token sign;
  Node* left;
  Node* right;
};
struct Call : Node {  // of a procedure, a function, or write
  Name* callee;
  Node* arguments;
};
struct Assign : Node {
  Name* target;
  Node* value;
};
struct If : Node {
  Node* condition;
  Node* consequent;
  Node* alternative;
};
struct While : Node {
  Node* condition;
  Node* body;
};
struct For : Node {
  Name* variable;
  Node* first;
  Node* last;
  Node* body;
};
struct Block : Node {
  Node* statements;
};

struct Declaration {
  Symbol* symbol;
  Declaration* hidden;      // of the same name in an outer scope
  Declaration* next;        // in the same list
  Node* value;              // of a constant
  Declaration* parameters;  // of a procedure, and so on
  Declaration* locals;
  Node* body;
  bool is_constant;
};

Declaration* program;  // a procedure; its locals are all that is declared outside of procedures
size_t live_bytes;

template <class T>
T* make(Kind kind, uint32_t line) {
  T* node = bench::must(static_cast<T*>(GC_MALLOC(sizeof(T))));
  node->kind = kind;
  node->line = line;
  live_bytes += sizeof(T);
  return node;
}

// --- from text to tree ---------------------------------------------------------------------------

class Parser {
 public:
  explicit Parser(pascal::Lexer* lexer) : lexer_(*lexer) {}

  Declaration* parse_program() {
    Declaration* whole = parse_heading();
    Declaration** last = &whole->locals;
    parse_constants(&last);
    parse_variables(&last);
    while (lexer_.token() == Token::Procedure) {
      lexer_.advance();
      Declaration* procedure = parse_heading();
      Declaration** last_local = &procedure->locals;
      parse_variables(&last_local);
      procedure->body = parse_statement();
      lexer_.expect(Token::Semicolon);
      add(&last, procedure);
    }
    whole->body = parse_statement();
    lexer_.expect(Token::Period);
    return whole;
  }

 private:
  static void add(Declaration*** last, Declaration* d) {
    **last = d;
    *last = &d->next;
  }

  Declaration* declare() {
    auto* d = bench::must(static_cast<Declaration*>(GC_MALLOC(sizeof(Declaration))));
    d->symbol = lexer_.take_name();
    live_bytes += sizeof(Declaration);
    return d;
  }

  // NAME ( NAMES ) ; after the word procedure or program.
  Declaration* parse_heading() {
    if (lexer_.token() == Token::Program) lexer_.advance();
    Declaration* d = declare();
    if (lexer_.accept(Token::Open)) {
      Declaration** last = &d->parameters;
      do add(&last, declare());
      while (lexer_.accept(Token::Comma));
      lexer_.expect(Token::Close);
    }
    lexer_.expect(Token::Semicolon);
    return d;
  }

  void parse_constants(Declaration*** last) {
    if (!lexer_.accept(Token::Const)) return;
    while (lexer_.token() == Token::Name) {
      Declaration* d = declare();
      d->is_constant = true;
      lexer_.expect(Token::Equal);
      d->value = parse_expression();
      lexer_.expect(Token::Semicolon);
      add(last, d);
    }
  }

  void parse_variables(Declaration*** last) {
    if (!lexer_.accept(Token::Var)) return;
    do add(last, declare());
    while (lexer_.accept(Token::Comma));
    lexer_.expect(Token::Semicolon);
  }

  Name* parse_name() {
    Name* name = make<Name>(Kind::Name, lexer_.line());
    name->symbol = lexer_.take_name();
    return name;
  }

  Node* parse_statement() {
    const uint32_t line = lexer_.line();
    if (lexer_.accept(Token::Begin)) {
      auto* block = make<Block>(Kind::Block, line);
      Node** last = &block->statements;
      while (!lexer_.accept(Token::End)) {
        *last = parse_statement();
        last = &(*last)->next;
        if (lexer_.token() != Token::End) lexer_.expect(Token::Semicolon);
      }
      return block;
    }
    if (lexer_.accept(Token::If)) {
      auto* choice = make<If>(Kind::If, line);
      choice->condition = parse_expression();
      lexer_.expect(Token::Then);
      choice->consequent = parse_statement();
      if (lexer_.accept(Token::Else)) choice->alternative = parse_statement();
      return choice;
    }
    if (lexer_.accept(Token::While)) {
      auto* loop = make<While>(Kind::While, line);
      loop->condition = parse_expression();
      lexer_.expect(Token::Do);
      loop->body = parse_statement();
      return loop;
    }
    if (lexer_.accept(Token::For)) {
      For* loop = make<For>(Kind::For, line);
      loop->variable = parse_name();
      lexer_.expect(Token::Assign);
      loop->first = parse_expression();
      lexer_.expect(Token::To);
      loop->last = parse_expression();
      lexer_.expect(Token::Do);
      loop->body = parse_statement();
      return loop;
    }
    Name* name = parse_name();
    if (lexer_.token() == Token::Open) return parse_call(name);
    lexer_.expect(Token::Assign);
    auto* assign = make<Assign>(Kind::Assign, line);
    assign->target = name;
    assign->value = parse_expression();
    return assign;
  }

  Call* parse_call(Name* callee) {
    Call* call = make<Call>(Kind::Call, callee->line);
    call->callee = callee;
    lexer_.expect(Token::Open);
    Node** last = &call->arguments;
    do {
      *last = parse_expression();
      last = &(*last)->next;
    } while (lexer_.accept(Token::Comma));
    lexer_.expect(Token::Close);
    return call;
  }

  // Operators of the lowest rank here; a higher rank binds closer.
  Node* parse_expression(int rank = 0) {
    if (rank == pascal::kRanks) return parse_factor();
    Node* left = parse_expression(rank + 1);
    while (pascal::rank_of(lexer_.token()) == rank) {
      auto* both = make<Binary>(Kind::Binary, lexer_.line());
      both->sign = lexer_.token();
      lexer_.advance();
      both->left = left;
      both->right = parse_expression(rank + 1);
      left = both;
    }
    return left;
  }

  Node* parse_factor() {
    const uint32_t line = lexer_.line();
    switch (lexer_.token()) {
      case Token::Number: {
        auto* number = make<Number>(Kind::Number, line);
        number->value = lexer_.number();
        lexer_.advance();
        return number;
      }
      case Token::String: {
        Text* text = make<Text>(Kind::Text, line);
        text->string = lexer_.take_string();
        live_bytes += text->string->bytes();
        return text;
      }
      case Token::Minus:
      case Token::Not: {
        auto* unary = make<Unary>(Kind::Unary, line);
        unary->sign = lexer_.token();
        lexer_.advance();
        unary->operand = parse_factor();
        return unary;
      }
      case Token::Open: {
        lexer_.advance();
        Node* inside = parse_expression();
        lexer_.expect(Token::Close);
        return inside;
      }
      default: {
        Name* name = parse_name();
        return lexer_.token() == Token::Open ? static_cast<Node*>(parse_call(name)) : name;
      }
    }
  }

  pascal::Lexer& lexer_;
};

// --- passes --------------------------------------------------------------------------------------

void open_scope(Declaration* list) {
  for (Declaration* d = list; d != nullptr; d = d->next) {
    d->hidden = static_cast<Declaration*>(d->symbol->innermost);
    d->symbol->innermost = d;
  }
}
void close_scope(Declaration* list) {
  for (Declaration* d = list; d != nullptr; d = d->next) d->symbol->innermost = d->hidden;
}

// Calls visit(Node**) for what hangs on a node: a place each for a child or a list's first. Names
// that are written to or called are not among them.
template <class Visit>
void for_each_child(Node* node, Visit visit) {
  switch (node->kind) {
    case Kind::Number:
    case Kind::Name:
    case Kind::Text:
      break;
    case Kind::Unary:
      visit(&static_cast<Unary*>(node)->operand);
      break;
    case Kind::Binary:
      visit(&static_cast<Binary*>(node)->left);
      visit(&static_cast<Binary*>(node)->right);
      break;
    case Kind::Call:
      visit(&static_cast<Call*>(node)->arguments);
      break;
    case Kind::Assign:
      visit(&static_cast<Assign*>(node)->value);
      break;
    case Kind::If:
      visit(&static_cast<If*>(node)->condition);
      visit(&static_cast<If*>(node)->consequent);
      visit(&static_cast<If*>(node)->alternative);
      break;
    case Kind::While:
      visit(&static_cast<While*>(node)->condition);
      visit(&static_cast<While*>(node)->body);
      break;
    case Kind::For:
      visit(&static_cast<For*>(node)->first);
      visit(&static_cast<For*>(node)->last);
      visit(&static_cast<For*>(node)->body);
      break;
    case Kind::Block:
      visit(&static_cast<Block*>(node)->statements);
      break;
  }
}

void resolve_name(Name* name) {
  name->declaration = static_cast<Declaration*>(name->symbol->innermost);
  if (name->declaration == nullptr) bench::die("a name is not declared");
}

void resolve(Node* list) {
  for (Node* node = list; node != nullptr; node = node->next) {
    if (node->kind == Kind::Name) resolve_name(static_cast<Name*>(node));
    if (node->kind == Kind::Call) resolve_name(static_cast<Call*>(node)->callee);
    if (node->kind == Kind::Assign) resolve_name(static_cast<Assign*>(node)->target);
    if (node->kind == Kind::For) resolve_name(static_cast<For*>(node)->variable);
    for_each_child(node, [](Node** child) { resolve(*child); });
  }
}

Node* make_number(const Node* where, int64_t value) {
  auto* number = make<Number>(Kind::Number, where->line);
  number->value = value;
  return number;
}

// What stands for the node from now on: itself, or a new number.
Node* folded(Node* node) {
  if (node->kind == Kind::Name) {
    const Declaration* d = static_cast<Name*>(node)->declaration;
    if (!d->is_constant) return node;
    live_bytes -= sizeof(Name);
    return make_number(node, static_cast<Number*>(d->value)->value);
  }
  if (node->kind == Kind::Unary) {
    const auto* unary = static_cast<Unary*>(node);
    if (unary->operand->kind != Kind::Number) return node;
    live_bytes -= sizeof(Unary) + sizeof(Number);
    return make_number(
        node, pascal::compute(unary->sign, 0, static_cast<Number*>(unary->operand)->value));
  }
  if (node->kind == Kind::Binary) {
    const auto* both = static_cast<Binary*>(node);
    if (both->left->kind != Kind::Number || both->right->kind != Kind::Number) return node;
    const int64_t right = static_cast<Number*>(both->right)->value;
    if (right == 0) return node;  // a division is left to the program
    live_bytes -= sizeof(Binary) + 2 * sizeof(Number);
    return make_number(node,
                       pascal::compute(both->sign, static_cast<Number*>(both->left)->value, right));
  }
  return node;
}

void fold(Node** list) {
  for (Node** place = list; *place != nullptr; place = &(*place)->next) {
    for_each_child(*place, fold);
    Node* const next = (*place)->next;
    *place = folded(*place);
    (*place)->next = next;
  }
}

// --- from tree to C ------------------------------------------------------------------------------

pascal::String* write_expression(const Node* node);

pascal::String* write_arguments(const Node* list) {
  pascal::String* all = write_expression(list);
  for (const Node* node = list->next; node != nullptr; node = node->next) {
    all = pascal::join({all->view(), ", ", write_expression(node)->view()});
  }
  return all;
}

pascal::String* write_expression(const Node* node) {
  switch (node->kind) {
    case Kind::Number:
      return pascal::decimal(static_cast<const Number*>(node)->value);
    case Kind::Name:
      return static_cast<const Name*>(node)->symbol->text;
    case Kind::Text:
      return pascal::join({"\"", static_cast<const Text*>(node)->string->view(), "\""});
    case Kind::Unary: {
      const auto* unary = static_cast<const Unary*>(node);
      return pascal::join({pascal::in_c(unary->sign), write_expression(unary->operand)->view()});
    }
    case Kind::Binary: {
      const auto* both = static_cast<const Binary*>(node);
      const pascal::String* left = write_expression(both->left);
      const pascal::String* right = write_expression(both->right);
      return pascal::join({"(", left->view(), pascal::in_c(both->sign), right->view(), ")"});
    }
    case Kind::Call: {
      const auto* call = static_cast<const Call*>(node);
      return pascal::join(
          {call->callee->symbol->text->view(), "(", write_arguments(call->arguments)->view(), ")"});
    }
    default:
      bench::die("the tree is damaged: a statement in an expression");
  }
}

void write_statements(pascal::Buffer* out, const Node* list);

void write_statement(pascal::Buffer* out, const Node* node) {
  switch (node->kind) {
    case Kind::Assign: {
      const auto* assign = static_cast<const Assign*>(node);
      out->add({assign->target->symbol->text->view(), " = ",
                write_expression(assign->value)->view(), ";\n"});
      break;
    }
    case Kind::If: {
      const auto* choice = static_cast<const If*>(node);
      out->add({"if (", write_expression(choice->condition)->view(), ") {\n"});
      write_statement(out, choice->consequent);
      if (choice->alternative != nullptr) {
        out->add({"} else {\n"});
        write_statement(out, choice->alternative);
      }
      out->add({"}\n"});
      break;
    }
    case Kind::While: {
      const auto* loop = static_cast<const While*>(node);
      out->add({"while (", write_expression(loop->condition)->view(), ")\n"});
      write_statement(out, loop->body);
      break;
    }
    case Kind::For: {
      const auto* loop = static_cast<const For*>(node);
      const pascal::View variable = loop->variable->symbol->text->view();
      out->add({"for (", variable, " = ", write_expression(loop->first)->view(), "; "});
      out->add({variable, " <= ", write_expression(loop->last)->view(), "; ++", variable, ")\n"});
      write_statement(out, loop->body);
      break;
    }
    case Kind::Block:
      out->add({"{\n"});
      write_statements(out, static_cast<const Block*>(node)->statements);
      out->add({"}\n"});
      break;
    default:
      out->add({write_expression(node)->view(), ";\n"});
  }
}

void write_statements(pascal::Buffer* out, const Node* list) {
  for (const Node* node = list; node != nullptr; node = node->next) write_statement(out, node);
}

// One procedure's text; the sum of what was written before is carried on.
uint64_t write_procedure(const Declaration* procedure, uint64_t sum) {
  pascal::Buffer out;
  out.add({"void ", procedure->symbol->text->view(), "("});
  for (const Declaration* d = procedure->parameters; d != nullptr; d = d->next) {
    out.add({"long ", d->symbol->text->view(), d->next != nullptr ? ", " : ""});
  }
  out.add({")\n{\n"});
  for (const Declaration* d = procedure->locals; d != nullptr; d = d->next) {
    if (d->body == nullptr) out.add({"long ", d->symbol->text->view(), ";\n"});
  }
  write_statement(&out, procedure->body);
  out.add({"}\n"});
  return out.hash(sum);
}

// All procedures of the program, then itself.
template <class Visit>
void for_each_procedure(Visit visit) {
  for (Declaration* d = program->locals; d != nullptr; d = d->next) {
    if (d->body != nullptr) visit(d);
  }
  visit(program);
}

uint64_t write_program() {
  uint64_t sum = pascal::kHashSeed;
  for_each_procedure([&](const Declaration* procedure) { sum = write_procedure(procedure, sum); });
  return sum;
}

void resolve_program() {
  open_scope(program->locals);
  for_each_procedure([](Declaration* procedure) {
    if (procedure == program) return resolve(program->body);
    open_scope(procedure->parameters);
    open_scope(procedure->locals);
    resolve(procedure->body);
    close_scope(procedure->locals);
    close_scope(procedure->parameters);
  });
  close_scope(program->locals);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 1) bench::die("usage: syntax [--quick]");
  const size_t procedures = quick ? 40 : 14000;
  // Of the C text; what any library must come to.
  const uint64_t expected = quick ? UINT64_C(0x8D7230A4D8528B15) : UINT64_C(0x2D53163D01CE3164);

  pascal::Source source(procedures);
  GC_INIT();
  bench::watch_collections();
  const double began = bench::now();
  pascal::Lexer lexer(source.begin(), source.end());
  program = Parser(&lexer).parse_program();
  resolve_program();
  for_each_procedure([](Declaration* procedure) { fold(&procedure->body); });
  const uint64_t first = write_program();
  const uint64_t second = write_program();
  const double took = bench::now() - began;
  if (first != expected || second != expected) {
    bench::die("the tree is damaged");
  }
  bench::report("syntax", live_bytes + lexer.live_bytes(),
                {{"time", "s", took},
                 {"in collections", "s", bench::collection_times.total},
                 {"in marking", "s", bench::collection_times.marking}});
}
