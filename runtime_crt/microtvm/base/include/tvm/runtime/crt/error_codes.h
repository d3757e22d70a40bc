/* error_codes.h: microTVM's error codes, a category in bits 8 to 15 and a number below. */
#ifndef TVM_RUNTIME_CRT_ERROR_CODES_H_
#define TVM_RUNTIME_CRT_ERROR_CODES_H_

#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TVM_CRT_ERROR_CATEGORY_Pos 8
#define TVM_CRT_ERROR_CATEGORY_Msk (0xff << TVM_CRT_ERROR_CATEGORY_Pos)
#define TVM_CRT_ERROR_CODE_Pos 0
#define TVM_CRT_ERROR_CODE_Msk (0xff << TVM_CRT_ERROR_CODE_Pos)
#define DEFINE_TVM_CRT_ERROR(category, code) \
    (((category) << TVM_CRT_ERROR_CATEGORY_Pos) | ((code) << TVM_CRT_ERROR_CODE_Pos))

typedef enum {
    kTvmErrorCategoryFunctionRegistry = 1,
    kTvmErrorCategoryFraming = 2,
    kTvmErrorCategoryWriteStream = 3,
    kTvmErrorCategorySession = 4,
    kTvmErrorCategoryPlatform = 5,
    kTvmErrorCategoryGenerated = 6,
    kTvmErrorCategoryExecutor = 7,
    kTvmErrorCategoryFunctionCall = 8,
    kTvmErrorCategoryTimeEvaluator = 9
} tvm_crt_error_category_t;

typedef enum {
    kTvmErrorNoError = 0,

    kTvmErrorFunctionNameNotFound = DEFINE_TVM_CRT_ERROR(1, 0),
    kTvmErrorFunctionIndexInvalid = DEFINE_TVM_CRT_ERROR(1, 1),
    kTvmErrorFunctionRegistryFull = DEFINE_TVM_CRT_ERROR(1, 2),
    kTvmErrorFunctionAlreadyDefined = DEFINE_TVM_CRT_ERROR(1, 3),
    kTvmErrorBufferTooSmall = DEFINE_TVM_CRT_ERROR(1, 4),

    kTvmErrorFramingInvalidState = DEFINE_TVM_CRT_ERROR(2, 0),
    kTvmErrorFramingShortPacket = DEFINE_TVM_CRT_ERROR(2, 1),
    kTvmErrorFramingInvalidEscape = DEFINE_TVM_CRT_ERROR(2, 2),
    kTvmErrorFramingPayloadOverflow = DEFINE_TVM_CRT_ERROR(2, 3),
    kTvmErrorFramingPayloadIncomplete = DEFINE_TVM_CRT_ERROR(2, 4),

    kTvmErrorWriteStreamShortWrite = DEFINE_TVM_CRT_ERROR(3, 0),
    kTvmErrorWriteStreamLongWrite = DEFINE_TVM_CRT_ERROR(3, 1),

    kTvmErrorSessionInvalidState = DEFINE_TVM_CRT_ERROR(4, 0),
    kTvmErrorSessionReceiveBufferBusy = DEFINE_TVM_CRT_ERROR(4, 1),
    kTvmErrorSessionReceiveBufferShortWrite = DEFINE_TVM_CRT_ERROR(4, 2),

    kTvmErrorPlatformCheckFailure = DEFINE_TVM_CRT_ERROR(5, 0),
    kTvmErrorPlatformMemoryManagerInitialized = DEFINE_TVM_CRT_ERROR(5, 1),
    kTvmErrorPlatformShutdown = DEFINE_TVM_CRT_ERROR(5, 2),
    kTvmErrorPlatformNoMemory = DEFINE_TVM_CRT_ERROR(5, 3),
    kTvmErrorPlatformTimerBadState = DEFINE_TVM_CRT_ERROR(5, 4),
    kTvmErrorPlatformStackAllocBadFree = DEFINE_TVM_CRT_ERROR(5, 5),

    kTvmErrorGeneratedInvalidStorageId = DEFINE_TVM_CRT_ERROR(6, 0),

    kTvmErrorExecutorModuleAlreadyCreated = DEFINE_TVM_CRT_ERROR(7, 0),
    kTvmErrorExecutorModuleBadContext = DEFINE_TVM_CRT_ERROR(7, 1),
    kTvmErrorExecutorModuleNoSuchInput = DEFINE_TVM_CRT_ERROR(7, 2),

    kTvmErrorFunctionCallNumArguments = DEFINE_TVM_CRT_ERROR(8, 0),
    kTvmErrorFunctionCallWrongArgType = DEFINE_TVM_CRT_ERROR(8, 1),
    kTvmErrorFunctionCallNotImplemented = DEFINE_TVM_CRT_ERROR(8, 2),
    kTvmErrorFunctionCallInvalidArg = DEFINE_TVM_CRT_ERROR(8, 3),

    kTvmErrorTimeEvaluatorBadHandle = DEFINE_TVM_CRT_ERROR(9, 0),

    kTvmErrorSystemErrorMask = INT_MIN
} tvm_crt_error_t;

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_ERROR_CODES_H_ */
