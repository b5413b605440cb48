/* Checks of a program with one thread of checks: they are counted, and a failure names the line and the last error. */
#include <stdio.h>

#include <rackloom.h>

static int failures = 0, checks = 0;

static void expect(int is_right, const char *what, int line) {
    checks++;
    if (!is_right) {
        char text[512] = "";
        rackloom_last_error(text, sizeof text, NULL);
        fprintf(stderr, "line %d: %s; last error: %s\n", line, what, text);
        failures++;
    }
}

#define TRUE(condition) expect((condition), #condition, __LINE__)
#define CODE(code, call) expect((call) == RACKLOOM_ERROR_##code, #call " is not " #code, __LINE__)
#define OK(call) CODE(OK, call)
