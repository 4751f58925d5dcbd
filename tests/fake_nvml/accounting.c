/* The driver's own book of processes, kept only where accounting is on. */
#include <string.h>
#include "fake.h"

EXPORT nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, unsigned *mode)
{
    BEGIN(CARDS, device, mode != NULL);
    if (at.gpu->numbers[ACCOUNTING].known)
        *mode = (unsigned)is_on(at.gpu, ACCOUNTING);
    else
        result = NVML_ERROR_NOT_SUPPORTED;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned *size)
{
    BEGIN(CARDS, device, size != NULL);
    if (at.gpu->numbers[ACCOUNTING].known)
        *size = 4000;
    else
        result = NVML_ERROR_NOT_SUPPORTED;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids)
{
    BEGIN(CARDS, device, count != NULL);
    unsigned room = *count;
    if (!at.gpu->numbers[ACCOUNTING].known) {
        result = NVML_ERROR_NOT_SUPPORTED;
    } else {
        *count = is_on(at.gpu, ACCOUNTING) ? at.gpu->process_count : 0;
        if (room < *count)
            result = NVML_ERROR_INSUFFICIENT_SIZE;
        else if (*count && !pids)
            result = NVML_ERROR_INVALID_ARGUMENT;
        for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
            pids[i] = at.gpu->processes[i].pid;
    }
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, struct accounting_stats *stats)
{
    BEGIN(CARDS, device, stats != NULL);
    result = is_on(at.gpu, ACCOUNTING) ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; result == NVML_ERROR_NOT_FOUND && i < at.gpu->process_count; i++) {
        const struct process *process = &at.gpu->processes[i];
        if (process->pid != pid)
            continue;
        memset(stats, 0, sizeof *stats);
        stats->gpuUtilization = process->sm.known ? (unsigned)value_now(&process->sm) : 0;
        stats->memoryUtilization = process->memory_share.known ? (unsigned)value_now(&process->memory_share) : 0;
        stats->maxMemoryUsage = process->memory_known ? (u64)value_now(&process->memory) : NOT_AVAILABLE_U64;
        stats->startTime = (u64)(at.all->since * 1e6);
        stats->isRunning = 1;
        result = NVML_SUCCESS;
    }
    END;
}
