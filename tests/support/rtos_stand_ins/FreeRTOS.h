/* The part of FreeRTOS 11 that pages and examples use, by its documentation. */
#ifndef FREERTOS_H
#define FREERTOS_H

#include <stddef.h>
#include <stdint.h>

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t StackType_t;
typedef uint32_t TickType_t;
typedef struct { void *own[24]; } StaticTask_t;
typedef struct { void *own[20]; } StaticSemaphore_t;

#define configMINIMAL_STACK_SIZE 128
#define portMAX_DELAY 0xFFFFFFFFu
#define pdFALSE ((BaseType_t)0)
#define pdMS_TO_TICKS(milliseconds) ((TickType_t)(milliseconds))

#endif
