/* A card's numbers on their way to the caller. */
#include <math.h>
#include <string.h>
#include "fake.h"

nvmlReturn_t number_of(const struct gpu *gpu, enum number which, double scale, double *out)
{
    const struct value *value = &gpu->numbers[which];
    if (!value->known)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = floor(value_now(value) * scale + 0.5);
    return NVML_SUCCESS;
}

u64 counter_of(const struct gpu *gpu, enum number which)
{
    return (u64)value_now(&gpu->numbers[which]);
}

int is_on(const struct gpu *gpu, enum number which)
{
    return gpu->numbers[which].known && gpu->numbers[which].base != 0;
}

nvmlReturn_t copy_text(char *to, unsigned room, const char *text)
{
    size_t length = strlen(text);
    if (length + 1 > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, text, length + 1);
    return NVML_SUCCESS;
}
