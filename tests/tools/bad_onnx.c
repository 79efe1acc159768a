/* Writes ONNX models that are wrong, for tests/bad_files.sh:

     bad_onnx DIR     DIR/NAME.onnx, and DIR/cases with a line each: name, exit code that is
                      expected, what the message must hold

   A case (bad_onnx.def) is text, its items separated by semicolons:
     in NAME TYPE DIMS             out NAME [TYPE DIMS]         DIMS: 2,s,? or - for a scalar
     init NAME TYPE DIMS WHAT      zeros, bytes N, ints A,B, none, or ext LOCATION OFFSET LENGTH
     OP NODE IN,IN > OUT [axis=1] [perm=[0,1]] [alpha=1.5] [mode='x']     _: an operand left out
     opset N
   Written from the wire format and onnx.proto's field numbers. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes ---- */

typedef struct {
    unsigned char *at;
    size_t n, cap;
} bytes;

static void put(bytes *b, const void *data, size_t n)
{
    if (b->n + n >= b->cap) {
        b->cap = 2 * (b->n + n) + 64;
        b->at = realloc(b->at, b->cap);
        if (!b->at) {
            perror("bad_onnx");
            exit(1);
        }
    }
    if (n) {
        memcpy(b->at + b->n, data, n);
        b->n += n;
    }
}

static void varint(bytes *b, uint64_t v)
{
    do {
        unsigned char byte = (unsigned char)((v & 127) | (v > 127 ? 128 : 0));
        put(b, &byte, 1);
        v >>= 7;
    } while (v);
}

static void number(bytes *b, unsigned field, int64_t v)
{
    varint(b, field << 3);
    varint(b, (uint64_t)v);
}

static void block(bytes *b, unsigned field, const void *data, size_t n)
{
    varint(b, field << 3 | 2);
    varint(b, n);
    put(b, data, n);
}

static void text(bytes *b, unsigned field, const char *s)
{
    block(b, field, s, strlen(s));
}

/* A message as a field; it is freed. */
static void message(bytes *b, unsigned field, bytes *inner)
{
    block(b, field, inner->at, inner->n);
    free(inner->at);
    *inner = (bytes){0};
}

static void write_file(const char *dir, const char *name, const char *ending, const void *data,
                       size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", dir, name, ending);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

/* ---- items ---- */

static int64_t type_code(const char *t)
{
    static const struct {
        const char *name;
        int64_t code;
    } types[] = {{"f", 1},   {"u8", 2}, {"i8", 3}, {"i32", 6}, {"i64", 7},
                 {"str", 8}, {"b", 9},  {"h", 10}, {"d", 11}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, t) == 0) {
            return types[i].code;
        }
    }
    return strtoll(t, NULL, 10);
}

static bool is_number(const char *s)
{
    return *s && strspn(s + (*s == '-'), "0123456789") == strlen(s + (*s == '-'));
}

/* Splits in place at a separator. */
static int split(char *s, const char *separators, char **out, int cap)
{
    int n = 0;
    char *state;
    for (char *w = strtok_r(s, separators, &state); w && n < cap;
         w = strtok_r(NULL, separators, &state)) {
        out[n++] = w;
    }
    return n;
}

enum { MAX_WORDS = 64 };

static void value_info(bytes *graph, unsigned field, const char *name, const char *type, char *dims)
{
    bytes info = {0}, t = {0}, tensor = {0}, shape = {0};
    char *words[MAX_WORDS];
    text(&info, 1, name);
    if (type) {
        int n = strcmp(dims, "-") == 0 ? 0 : split(dims, ",", words, MAX_WORDS);
        for (int i = 0; i < n; i++) {
            bytes dim = {0};
            if (is_number(words[i])) {
                number(&dim, 1, strtoll(words[i], NULL, 10));
            } else if (strcmp(words[i], "?") != 0) {
                text(&dim, 2, words[i]);
            }
            message(&shape, 1, &dim);
        }
        number(&tensor, 1, type_code(type));
        message(&tensor, 2, &shape);
        message(&t, 1, &tensor);
        message(&info, 2, &t);
    }
    message(graph, field, &info);
}

static void external(bytes *tensor, const char *key, const char *value)
{
    bytes entry = {0};
    text(&entry, 1, key);
    text(&entry, 2, value);
    message(tensor, 13, &entry);
}

/* words: WHAT ..., the last of an initializer's */
static void initializer_data(bytes *t, char **words, int n, size_t zeros_bytes)
{
    static const unsigned char zeros[65536];
    if (strcmp(words[0], "zeros") == 0) {
        block(t, 9, zeros, zeros_bytes);
    } else if (strcmp(words[0], "bytes") == 0) {
        block(t, 9, zeros, (size_t)strtoll(words[1], NULL, 10));
    } else if (strcmp(words[0], "ints") == 0) {
        char *values[MAX_WORDS];
        int k = split(words[1], ",", values, MAX_WORDS);
        for (int i = 0; i < k; i++) {
            number(t, 7, strtoll(values[i], NULL, 10));
        }
    } else if (strcmp(words[0], "ext") == 0) {
        external(t, "location", words[1]);
        external(t, "offset", words[2]);
        if (n > 3) {
            external(t, "length", words[3]);
        }
        number(t, 14, 1);
    }
}

/* words: init NAME TYPE DIMS WHAT ... */
static void initializer(bytes *graph, char **words, int n)
{
    bytes t = {0};
    char *dims[MAX_WORDS];
    int rank = strcmp(words[3], "-") == 0 ? 0 : split(words[3], ",", dims, MAX_WORDS);
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        int64_t d = strtoll(dims[i], NULL, 10);
        number(&t, 1, d);
        count = d > 0 && d < 4096 && count < 4096 ? count * d : 0;
    }
    number(&t, 2, type_code(words[2]));
    text(&t, 8, words[1]);
    initializer_data(&t, words + 4, n - 4, (size_t)count * (type_code(words[2]) == 7 ? 8 : 4));
    message(graph, 5, &t);
}

static void attribute(bytes *node, char *word)
{
    bytes a = {0};
    char *value = strchr(word, '=');
    *value++ = '\0';
    text(&a, 1, word);
    if (*value == '[') {
        char *values[MAX_WORDS];
        int n = split(value, "[],", values, MAX_WORDS);
        for (int i = 0; i < n; i++) {
            number(&a, 8, strtoll(values[i], NULL, 10));
        }
        number(&a, 20, 7);
    } else if (*value == '\'') {
        block(&a, 4, value + 1, strlen(value) - 2);
        number(&a, 20, 3);
    } else if (strchr(value, '.')) {
        float f = strtof(value, NULL);
        varint(&a, 2 << 3 | 5);
        put(&a, &f, sizeof f);
        number(&a, 20, 1);
    } else {
        number(&a, 3, strtoll(value, NULL, 10));
        number(&a, 20, 2);
    }
    message(node, 5, &a);
}

/* words: OP NODE IN,IN > OUT,OUT attributes */
static void add_node(bytes *graph, char **words, int n)
{
    bytes node = {0};
    char *names[MAX_WORDS];
    int at = 2;
    for (unsigned side = 1; side <= 2; side++) {
        int k = at < n && strcmp(words[at], ">") != 0 && !strchr(words[at], '=')
                    ? split(words[at++], ",", names, MAX_WORDS)
                    : 0;
        for (int i = 0; i < k; i++) {
            text(&node, side, strcmp(names[i], "_") == 0 ? "" : names[i]);
        }
        at += at < n && strcmp(words[at], ">") == 0;
    }
    text(&node, 3, words[1]);
    text(&node, 4, words[0]);
    for (; at < n; at++) {
        attribute(&node, words[at]);
    }
    message(graph, 1, &node);
}

/* ---- models ---- */

static void wrap(bytes *model, bytes *graph, int64_t opset)
{
    bytes import = {0};
    number(model, 1, 8);
    message(model, 7, graph);
    number(&import, 2, opset);
    message(model, 8, &import);
}

/* False for an item that is about the model as a whole. */
static bool graph_item(bytes *graph, char **words, int n)
{
    if (strcmp(words[0], "in") == 0) {
        value_info(graph, 11, words[1], words[2], words[3]);
    } else if (strcmp(words[0], "out") == 0) {
        value_info(graph, 12, words[1], n > 2 ? words[2] : NULL, n > 2 ? words[3] : NULL);
    } else if (strcmp(words[0], "init") == 0) {
        initializer(graph, words, n);
    } else if (strcmp(words[0], "opset") != 0) {
        add_node(graph, words, n);
    } else {
        return false;
    }
    return true;
}

static void build(bytes *model, const char *items)
{
    bytes graph = {0};
    char *copy = strdup(items), *list[MAX_WORDS], *words[MAX_WORDS];
    int n = split(copy, ";", list, MAX_WORDS);
    int64_t opset = 17;
    text(&graph, 2, "bad");
    for (int i = 0; i < n; i++) {
        if (!graph_item(&graph, words, split(list[i], " ", words, MAX_WORDS))) {
            opset = strtoll(words[1], NULL, 10);
        }
    }
    free(copy);
    wrap(model, &graph, opset);
}

/* If in If in If ..., so deep. Each level is a prefix, whose length depends on what it holds. */
static void nested(bytes *model, int levels)
{
    bytes *prefixes = calloc((size_t)levels, sizeof *prefixes);
    size_t inner = 0; /* of the graph */
    for (int i = 0; i < levels; i++) {
        bytes attribute_head = {0}, node_head = {0}, graph_head = {0};
        text(&attribute_head, 1, "then_branch");
        varint(&attribute_head, 6 << 3 | 2);
        varint(&attribute_head, inner);
        text(&node_head, 4, "If");
        varint(&node_head, 5 << 3 | 2);
        varint(&node_head, attribute_head.n + inner);
        varint(&graph_head, 1 << 3 | 2);
        varint(&graph_head, node_head.n + attribute_head.n + inner);
        prefixes[i] = graph_head;
        put(&prefixes[i], node_head.at, node_head.n);
        put(&prefixes[i], attribute_head.at, attribute_head.n);
        inner += prefixes[i].n;
        free(attribute_head.at);
        free(node_head.at);
    }
    bytes graph = {0};
    for (int i = levels - 1; i >= 0; i--) {
        put(&graph, prefixes[i].at, prefixes[i].n);
        free(prefixes[i].at);
    }
    free(prefixes);
    wrap(model, &graph, 17);
}

/* c = callee(callee(a)) */
static void function(bytes *list, const char *name, const char *domain, const char *callee)
{
    bytes f = {0}, import = {0};
    text(&f, 1, name);
    text(&f, 4, "a");
    text(&f, 5, "c");
    for (int k = 0; k < 2; k++) {
        bytes node = {0};
        text(&node, 1, k ? "b" : "a");
        text(&node, 2, k ? "c" : "b");
        text(&node, 4, callee);
        text(&node, 7, domain);
        message(&f, 7, &node);
    }
    text(&f, 10, "own");
    number(&import, 2, 17);
    message(&f, 9, &import);
    message(list, 25, &f);
}

/* Functions f0 .. fn, each with two calls of the one before (`doubling`), or of itself. */
static void functions(bytes *model, int count, bool doubling)
{
    bytes graph = {0}, list = {0}, call = {0};
    char name[16], callee[16], dims1[] = "2", dims2[] = "2";
    for (int i = 0; i <= count; i++) {
        snprintf(name, sizeof name, "f%d", i);
        snprintf(callee, sizeof callee, i ? "f%d" : "Relu", doubling ? i - 1 : i);
        function(&list, name, i ? "own" : "", callee);
    }
    text(&call, 1, "x");
    text(&call, 2, "y");
    text(&call, 3, "the_call");
    text(&call, 4, name);
    text(&call, 7, "own");
    message(&graph, 1, &call);
    value_info(&graph, 11, "x", "f", dims1);
    value_info(&graph, 12, "y", "f", dims2);
    wrap(model, &graph, 17);
    put(model, list.at, list.n);
    free(list.at);
}

/* A chain of so many nodes; the last reads what nothing defines. */
static void chain(bytes *model, int count)
{
    bytes graph = {0};
    char dims[] = "2";
    value_info(&graph, 11, "t0", "f", dims);
    for (int i = 0; i <= count; i++) {
        bytes node = {0};
        char name[32];
        snprintf(name, sizeof name, i < count ? "t%d" : "nothing", i);
        text(&node, 1, name);
        snprintf(name, sizeof name, "t%d", i + 1);
        text(&node, 2, name);
        text(&node, 3, i < count ? "" : "the_last");
        text(&node, 4, "Relu");
        message(&graph, 1, &node);
    }
    value_info(&graph, 12, "t1", NULL, NULL);
    wrap(model, &graph, 17);
}

/* A dimension's text of so many brackets. */
static void brackets(bytes *model, int count)
{
    char *dims = malloc((size_t)count * 2 + 2), copy[] = "2";
    memset(dims, '(', (size_t)count);
    dims[count] = 's';
    memset(dims + count + 1, ')', (size_t)count);
    dims[2 * count + 1] = '\0';
    bytes graph = {0};
    value_info(&graph, 11, "x", "f", dims);
    value_info(&graph, 11, "z", "nothing", copy);
    value_info(&graph, 12, "x", NULL, NULL);
    wrap(model, &graph, 17);
    free(dims);
}

/* So many inputs, each of a size of its own. */
static void sizes(bytes *model, int count)
{
    bytes graph = {0};
    for (int i = 0; i < count; i++) {
        char name[16], dims[16];
        snprintf(name, sizeof name, "x%d", i);
        snprintf(dims, sizeof dims, "s%d", i);
        value_info(&graph, 11, name, "f", dims);
    }
    value_info(&graph, 12, "x0", NULL, NULL);
    wrap(model, &graph, 17);
}

/* A node of so many operands. */
static void operands(bytes *model, int count)
{
    bytes graph = {0}, node = {0};
    char dims[] = "2";
    value_info(&graph, 11, "x", "f", dims);
    for (int i = 0; i < count; i++) {
        text(&node, 1, "x");
    }
    text(&node, 2, "y");
    text(&node, 3, "the_sum");
    text(&node, 4, "Sum");
    message(&graph, 1, &node);
    value_info(&graph, 12, "y", NULL, NULL);
    wrap(model, &graph, 17);
}

/* ---- the cases ---- */

static const struct {
    const char *name;
    int exit;
    const char *holds; /* in the message */
    const char *items;
} cases[] = {
#define CASE(name, exit, holds, items) {#name, exit, holds, items},
#include "bad_onnx.def"
#undef CASE
};

static void write_case(FILE *list, const char *dir, const char *name, int status, const char *holds,
                       bytes *model)
{
    write_file(dir, name, ".onnx", model->at, model->n);
    fprintf(list, "%s\t%d\t%s\n", name, status, holds);
    free(model->at);
    *model = (bytes){0};
}

static void write_special(FILE *list, const char *dir)
{
    bytes m = {0};
    nested(&m, 100000);
    write_case(list, dir, "nested_100000", 4, "nested too deeply", &m);
    nested(&m, 60);
    write_case(list, dir, "nested_60", 4, "nested too deeply", &m);
    functions(&m, 30, true);
    write_case(list, dir, "doubling_functions", 4, "more than 50000 nodes", &m);
    functions(&m, 1, false);
    write_case(list, dir, "recursive_function", 4, "nested more than 32 deep", &m);
    chain(&m, 40000);
    write_case(list, dir, "long_chain", 4, "the_last", &m);
    brackets(&m, 100000);
    write_case(list, dir, "brackets", 3, "z", &m);
    sizes(&m, 20000);
    write_case(list, dir, "sizes", 3, "symbolic sizes", &m);
    operands(&m, 200000);
    write_case(list, dir, "operands", 3, "the_sum", &m);
    put(&m, "\x08\x08", 2);
    write_case(list, dir, "no_graph", 4, "no graph", &m);
    put(&m, "\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12);
    write_case(list, dir, "endless_field", 4, "reaches beyond", &m);
    put(&m, "", 0);
    write_case(list, dir, "empty", 4, "not a model", &m);
    put(&m, "\0\0\0\0\0\0\0\0", 8);
    write_case(list, dir, "zeros", 4, "not a model", &m);
}

static int write_cases(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/cases", dir);
    FILE *list = fopen(path, "w");
    if (!list) {
        perror(path);
        return 1;
    }
    write_file(dir, "weights", ".bin", "12345678", 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes model = {0};
        build(&model, cases[i].items);
        write_case(list, dir, cases[i].name, cases[i].exit, cases[i].holds, &model);
    }
    write_special(list, dir);
    return fclose(list) != 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: bad_onnx DIR\n", stderr);
        return 2;
    }
    return write_cases(argv[1]);
}
