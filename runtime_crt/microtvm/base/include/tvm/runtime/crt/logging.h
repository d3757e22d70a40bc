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

#if TVM_CRT_LOG_LEVEL >= TVM_CRT_LOG_LEVEL_ERROR
#define LOG_ERROR(...) TVMLogf(__VA_ARGS__)
#else
#define LOG_ERROR(...) ((void)0)
#endif
#if TVM_CRT_LOG_LEVEL >= TVM_CRT_LOG_LEVEL_WARN
#define LOG_WARN(...) TVMLogf(__VA_ARGS__)
#else
#define LOG_WARN(...) ((void)0)
#endif
#if TVM_CRT_LOG_LEVEL >= TVM_CRT_LOG_LEVEL_INFO
#define LOG_INFO(...) TVMLogf(__VA_ARGS__)
#else
#define LOG_INFO(...) ((void)0)
#endif
#if TVM_CRT_LOG_LEVEL >= TVM_CRT_LOG_LEVEL_DEBUG
#define LOG_DEBUG(...) TVMLogf(__VA_ARGS__)
#else
#define LOG_DEBUG(...) ((void)0)
#endif

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
