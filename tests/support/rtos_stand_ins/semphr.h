/* Mutexes of FreeRTOS 11: see FreeRTOS.h. */
#ifndef SEMAPHORE_H
#define SEMAPHORE_H

typedef struct QueueDefinition *SemaphoreHandle_t;

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *mutex);
BaseType_t xSemaphoreTake(SemaphoreHandle_t mutex, TickType_t ticks);
BaseType_t xSemaphoreGive(SemaphoreHandle_t mutex);

#endif
