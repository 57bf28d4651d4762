/*
 * library.h - what a benchmark's line of JSON says of the library that it really ran on: the
 * command compares that with the one which it was to run on. In C, with _GNU_SOURCE, and in C++.
 */
#pragma once

#include <dlfcn.h>
#include <stdio.h>

/* A path may have quotes. (What is no UTF-8 the command refuses.) */
static inline void print_json_text(FILE* out, const char* text) {
  fputc('"', out);
  for (; *text != '\0'; ++text) {
    const unsigned char byte = (unsigned char)*text;
    if (byte < ' ' || byte == '"' || byte == '\\') {
      fprintf(out, "\\u%04x", byte);
    } else {
      fputc(byte, out);
    }
  }
  fputc('"', out);
}

/* `, "library": "..."`: where that function is. */
static inline void print_library(FILE* out, const char* function) {
  const char* library = "unknown";
  Dl_info info;
  /* By the symbol's own address: a function pointer may lead to a stub in the program. */
  void* symbol = dlsym(RTLD_DEFAULT, function);
  if (symbol && dladdr(symbol, &info) != 0 && info.dli_fname) {
    library = info.dli_fname;
  }
  fprintf(out, ", \"library\": ");
  print_json_text(out, library);
}
