/* logging.h: the log that an application for microTVM defines, and macros that write to it. */
#ifndef TVM_RUNTIME_CRT_LOGGING_H_
#define TVM_RUNTIME_CRT_LOGGING_H_

#include "tvm/runtime/crt/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Defined by the application. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void TVMLogf(const char *fmt, ...);

#ifdef __cplusplus
}
#endif

#define TVM_CRT_LOG_LEVEL_DEBUG 3
#define TVM_CRT_LOG_LEVEL_INFO 2
#define TVM_CRT_LOG_LEVEL_WARN 1
#define TVM_CRT_LOG_LEVEL_ERROR 0

/* A crt_config.h may include this header before it says its level, so that the level is looked up
 * where a macro is used; this constant is the level of who says none. */
#ifndef TVM_CRT_LOG_LEVEL
enum { TVM_CRT_LOG_LEVEL = TVM_CRT_LOG_LEVEL_ERROR };
#endif
#define TVM_CRT_LOG_AT(level, ...) \
    ((void)((TVM_CRT_LOG_LEVEL) >= (level) ? (TVMLogf(__VA_ARGS__), 0) : 0))
#define LOG_ERROR(...) TVM_CRT_LOG_AT(TVM_CRT_LOG_LEVEL_ERROR, __VA_ARGS__)
#define LOG_WARN(...) TVM_CRT_LOG_AT(TVM_CRT_LOG_LEVEL_WARN, __VA_ARGS__)
#define LOG_INFO(...) TVM_CRT_LOG_AT(TVM_CRT_LOG_LEVEL_INFO, __VA_ARGS__)
#define LOG_DEBUG(...) TVM_CRT_LOG_AT(TVM_CRT_LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Stop the program where a condition does not hold. What follows the condition, in microTVM a
 * message, is not printed. */
#define TVM_CRT_FIRST(first, ...) (first)
#ifndef CHECK
#define CHECK(...)                                             \
    do {                                                       \
        if (!TVM_CRT_FIRST(__VA_ARGS__, 0)) {                  \
            TVMLogf("check failed: %s\n", #__VA_ARGS__);       \
            TVMPlatformAbort(kTvmErrorPlatformCheckFailure);   \
        }                                                      \
    } while (0)
#endif
#ifndef CHECK_EQ
#define CHECK_EQ(a, ...) CHECK((a) == TVM_CRT_FIRST(__VA_ARGS__, 0))
#endif
#ifndef CHECK_NE
#define CHECK_NE(a, ...) CHECK((a) != TVM_CRT_FIRST(__VA_ARGS__, 0))
#endif
#ifndef CHECK_LT
#define CHECK_LT(a, ...) CHECK((a) < TVM_CRT_FIRST(__VA_ARGS__, 0))
#endif
#ifndef CHECK_LE
#define CHECK_LE(a, ...) CHECK((a) <= TVM_CRT_FIRST(__VA_ARGS__, 0))
#endif
#ifndef CHECK_GT
#define CHECK_GT(a, ...) CHECK((a) > TVM_CRT_FIRST(__VA_ARGS__, 0))
#endif
#ifndef CHECK_GE
#define CHECK_GE(a, ...) CHECK((a) >= TVM_CRT_FIRST(__VA_ARGS__, 0))
#endif

#endif /* TVM_RUNTIME_CRT_LOGGING_H_ */
