/* Tasks of FreeRTOS 11: see FreeRTOS.h. */
#ifndef INC_TASK_H
#define INC_TASK_H

typedef struct tskTaskControlBlock *TaskHandle_t;
typedef void (*TaskFunction_t)(void *);

TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char *name, uint32_t words, void *argument,
        UBaseType_t priority, StackType_t *stack, StaticTask_t *task);
void vTaskDelay(TickType_t ticks);
void vTaskStartScheduler(void);
void vTaskSuspend(TaskHandle_t task);
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task);
BaseType_t xTaskNotifyGive(TaskHandle_t task);
uint32_t ulTaskNotifyTake(BaseType_t clears, TickType_t ticks);
void vApplicationStackOverflowHook(TaskHandle_t task, char *name);

#endif
