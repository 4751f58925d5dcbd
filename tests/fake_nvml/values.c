/* What a card does now: load, temperature, power, clocks and fans. */
#include "fake.h"

static nvmlReturn_t answer(const struct gpu *gpu, enum number which, double scale, double most, unsigned *out)
{
    double number;
    nvmlReturn_t result = number_of(gpu, which, scale, &number);
    if (result == NVML_SUCCESS)
        *out = (unsigned)(number < most ? number : most);
    return result;
}

enum { NO_LIMIT = 0x7FFFFFFF };

#define VALUE(function, which, scale)                                \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *out) \
    {                                                                \
        BEGIN(CARDS, device, out != NULL);                           \
        result = answer(at.gpu, which, scale, NO_LIMIT, out);        \
        END;                                                         \
    }

VALUE(nvmlDeviceGetPowerUsage, POWER, 1000)
VALUE(nvmlDeviceGetEnforcedPowerLimit, POWER_LIMIT_ENFORCED, 1000)
VALUE(nvmlDeviceGetPowerManagementLimit, POWER_LIMIT, 1000)
VALUE(nvmlDeviceGetPowerManagementDefaultLimit, POWER_LIMIT_DEFAULT, 1000)
VALUE(nvmlDeviceGetFanSpeed, FAN, 1)
VALUE(nvmlDeviceGetPerformanceState, PSTATE, 1)
VALUE(nvmlDeviceGetPowerState, PSTATE, 1)

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct utilization *rates)
{
    BEGIN(CARDS, device, rates != NULL);
    if (is_on(at.gpu, MIG_MODE))
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        result = answer(at.gpu, UTILISATION, 1, 100, &rates->gpu);
    if (result == NVML_SUCCESS)
        result = answer(at.gpu, MEMORY_UTILISATION, 1, 100, &rates->memory);
    END;
}

/* Engines beside the multiprocessors: a percentage and the period over which it was taken. */
#define ENGINE(function, which)                                                             \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *percent, unsigned *period)  \
    {                                                                                       \
        BEGIN(CARDS, device, percent != NULL && period != NULL);                            \
        result = is_on(at.gpu, MIG_MODE) ? NVML_ERROR_NOT_SUPPORTED                         \
                                         : answer(at.gpu, which, 1, 100, percent);          \
        *period = 167000;                                                                   \
        END;                                                                                \
    }

ENGINE(nvmlDeviceGetEncoderUtilization, ENCODER)
ENGINE(nvmlDeviceGetDecoderUtilization, DECODER)
ENGINE(nvmlDeviceGetJpgUtilization, JPEG)
ENGINE(nvmlDeviceGetOfaUtilization, OFA)

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *celsius)
{
    BEGIN(CARDS, device, celsius != NULL && sensor == 0);
    result = answer(at.gpu, TEMPERATURE, 1, NO_LIMIT, celsius);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, struct temperature_v1 *temperature)
{
    BEGIN(CARDS, device, temperature != NULL);
    unsigned celsius = 0;
    if (temperature->version != VERSIONED(struct temperature_v1, 1))
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    else if (temperature->sensorType != 0)
        result = NVML_ERROR_INVALID_ARGUMENT;
    else if ((result = answer(at.gpu, TEMPERATURE, 1, NO_LIMIT, &celsius)) == NVML_SUCCESS)
        temperature->temperature = (int)celsius;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, struct margin_temperature *margin)
{
    BEGIN(CARDS, device, margin != NULL);
    unsigned now = 0, most = 0;
    if (margin->version != VERSIONED(struct margin_temperature, 1))
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    else if ((result = answer(at.gpu, TEMPERATURE, 1, NO_LIMIT, &now)) == NVML_SUCCESS)
        result = answer(at.gpu, TEMPERATURE_GPU_MAX, 1, NO_LIMIT, &most);
    if (result == NVML_SUCCESS)
        margin->marginTemperature = (int)most - (int)now;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned which, unsigned *celsius)
{
    static const enum number THRESHOLDS[] = {TEMPERATURE_SHUTDOWN, TEMPERATURE_SLOWDOWN, TEMPERATURE_MEMORY_MAX,
                                             TEMPERATURE_GPU_MAX};
    BEGIN(CARDS, device, celsius != NULL && which < 8);
    result = which < 4 ? answer(at.gpu, THRESHOLDS[which], 1, NO_LIMIT, celsius) : NVML_ERROR_NOT_SUPPORTED;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, unsigned *mode)
{
    BEGIN(CARDS, device, mode != NULL);
    *mode = (unsigned)at.gpu->numbers[POWER_LIMIT].known;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned *least, unsigned *most)
{
    BEGIN(CARDS, device, least != NULL && most != NULL);
    result = answer(at.gpu, POWER_LIMIT_MIN, 1000, NO_LIMIT, least);
    if (result == NVML_SUCCESS)
        result = answer(at.gpu, POWER_LIMIT_MAX, 1000, NO_LIMIT, most);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, u64 *millijoules)
{
    BEGIN(CARDS, device, millijoules != NULL);
    double number;
    result = number_of(at.gpu, ENERGY, 1000, &number);
    if (result == NVML_SUCCESS)
        *millijoules = (u64)number;
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *megahertz)
{
    BEGIN(CARDS, device, megahertz != NULL && type < 4);
    result = answer(at.gpu, CLOCK_GRAPHICS + type, 1, NO_LIMIT, megahertz);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type, unsigned *megahertz)
{
    BEGIN(CARDS, device, megahertz != NULL && type < 4);
    result = answer(at.gpu, CLOCK_GRAPHICS_MAX + type, 1, NO_LIMIT, megahertz);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned type, unsigned which, unsigned *megahertz)
{
    BEGIN(CARDS, device, megahertz != NULL && type < 4 && which < 4);
    result = answer(at.gpu, (which == 0 ? CLOCK_GRAPHICS : CLOCK_GRAPHICS_MAX) + type, 1, NO_LIMIT, megahertz);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned type, unsigned *megahertz)
{
    BEGIN(CARDS, device, megahertz != NULL && type < 4);
    result = answer(at.gpu, CLOCK_GRAPHICS_MAX + type, 1, NO_LIMIT, megahertz);
    END;
}

static nvmlReturn_t list_clocks(unsigned most, unsigned step, unsigned *count, unsigned *clocks)
{
    unsigned needed = most / step ? most / step : 1, room = *count;
    *count = needed;
    if (room < needed)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (!clocks)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < needed; i++)
        clocks[i] = most - i * step;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned *count, unsigned *megahertz)
{
    BEGIN(CARDS, device, count != NULL);
    unsigned most;
    result = answer(at.gpu, CLOCK_MEMORY_MAX, 1, NO_LIMIT, &most);
    if (result == NVML_SUCCESS)
        result = list_clocks(most, most, count, megahertz);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned memory, unsigned *count,
                                                         unsigned *megahertz)
{
    BEGIN(CARDS, device, count != NULL);
    unsigned most, only;
    result = answer(at.gpu, CLOCK_MEMORY_MAX, 1, NO_LIMIT, &only);
    if (result == NVML_SUCCESS && memory != only)
        result = NVML_ERROR_NOT_FOUND;
    if (result == NVML_SUCCESS)
        result = answer(at.gpu, CLOCK_GRAPHICS_MAX, 1, NO_LIMIT, &most);
    if (result == NVML_SUCCESS)
        result = list_clocks(most, 15, count, megahertz);
    END;
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned fan, unsigned *percent)
{
    BEGIN(CARDS, device, percent != NULL);
    result = answer(at.gpu, FAN, 1, NO_LIMIT, percent);
    if (result == NVML_SUCCESS && fan >= (unsigned)at.gpu->numbers[FANS].base)
        result = NVML_ERROR_INVALID_ARGUMENT;
    END;
}

#define REASONS(function, mask)                                                 \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, u64 *reasons)             \
    {                                                                           \
        BEGIN(CARDS, device, reasons != NULL);                                  \
        double number = 0;                                                      \
        result = number_of(at.gpu, THROTTLE, 1, &number);                       \
        if (result == NVML_SUCCESS)                                             \
            *reasons = (mask) ? (u64)(mask) : (u64)number;                      \
        END;                                                                    \
    }

REASONS(nvmlDeviceGetCurrentClocksThrottleReasons, 0)
REASONS(nvmlDeviceGetCurrentClocksEventReasons, 0)
REASONS(nvmlDeviceGetSupportedClocksThrottleReasons, 0x1FF)
REASONS(nvmlDeviceGetSupportedClocksEventReasons, 0x1FF)
