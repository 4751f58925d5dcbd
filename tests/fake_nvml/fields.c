/* Field values: numbers asked for by id, many in one call, each with a result of its own. */
#include <string.h>
#include "fake.h"

enum { ALL_LINKS = 0xFFFFFFFF };

/* Fields that are one number of the card; scale goes from the description's unit to NVML's. */
static const struct { unsigned id; enum number which; double scale; unsigned type; } PLAIN[] = {
    {1, ECC, 1, TYPE_UINT}, {2, ECC, 1, TYPE_UINT},
    {3, ECC_CORRECTED_VOLATILE, 1, TYPE_U64}, {4, ECC_UNCORRECTED_VOLATILE, 1, TYPE_U64},
    {5, ECC_CORRECTED_AGGREGATE, 1, TYPE_U64}, {6, ECC_UNCORRECTED_AGGREGATE, 1, TYPE_U64},
    {29, RETIRED_CORRECTED, 1, TYPE_UINT}, {30, RETIRED_UNCORRECTED, 1, TYPE_UINT},
    {31, RETIRED_PENDING, 1, TYPE_UINT},
    {82, MEMORY_TEMPERATURE, 1, TYPE_UINT},
    {83, ENERGY, 1000, TYPE_U64},
    {91, NVLINK_LINKS, 1, TYPE_UINT},
    {94, PCIE_REPLAYS, 1, TYPE_UINT},
    {142, REMAPPED_CORRECTED, 1, TYPE_UINT}, {143, REMAPPED_UNCORRECTED, 1, TYPE_UINT},
    {144, REMAPPED_PENDING, 1, TYPE_UINT}, {145, REMAPPED_FAILED, 1, TYPE_UINT},
    {185, POWER, 1000, TYPE_UINT}, {186, POWER_INSTANT, 1000, TYPE_UINT},
    {187, POWER_LIMIT_MIN, 1000, TYPE_UINT}, {188, POWER_LIMIT_MAX, 1000, TYPE_UINT},
    {189, POWER_LIMIT_DEFAULT, 1000, TYPE_UINT}, {190, POWER_LIMIT_ENFORCED, 1000, TYPE_UINT},
    {192, POWER_LIMIT, 1000, TYPE_UINT},
    {197, PCIE_SENT, 1, TYPE_U64}, {198, PCIE_RECEIVED, 1, TYPE_U64},
};

/* Fields that are a counter of NVLink; `per_link`: the scope chooses the link, or all of them. */
static const struct { unsigned id; enum number which; unsigned divisor; int per_link; } LINKS[] = {
    {38, NVLINK_CRC_ERRORS, 1, 0}, {52, NVLINK_REPLAYS, 1, 0}, {59, NVLINK_RECOVERIES, 1, 0},
    {138, NVLINK_SENT, 1024, 1}, {139, NVLINK_RECEIVED, 1024, 1},
    {140, NVLINK_SENT, 1024, 1}, {141, NVLINK_RECEIVED, 1024, 1},
    {161, NVLINK_REPLAYS, 1, 1}, {162, NVLINK_RECOVERIES, 1, 1}, {163, NVLINK_CRC_ERRORS, 1, 1},
};

/* From Blackwell on, NVLink counts bytes, too. */
static const struct { unsigned id; enum number which; } BLACKWELL[] = {{202, NVLINK_SENT}, {204, NVLINK_RECEIVED}};

static nvmlReturn_t link_field(const struct gpu *gpu, struct field_value *field, enum number which, unsigned divisor,
                               int per_link)
{
    if (!gpu->numbers[NVLINK_LINKS].known || gpu->numbers[NVLINK_LINKS].base < 1)
        return NVML_ERROR_NOT_SUPPORTED;
    if (per_link && field->scopeId != ALL_LINKS && field->scopeId >= (unsigned)gpu->numbers[NVLINK_LINKS].base)
        return NVML_ERROR_INVALID_ARGUMENT;
    field->valueType = TYPE_U64;
    if (per_link && field->scopeId != ALL_LINKS)
        field->value.ullVal = link_share(gpu, which, field->scopeId) / divisor;
    else
        field->value.ullVal = counter_of(gpu, which) / divisor;
    return NVML_SUCCESS;
}

static nvmlReturn_t plain_field(const struct gpu *gpu, struct field_value *field, enum number which, double scale,
                                unsigned type)
{
    double number;
    nvmlReturn_t result = number_of(gpu, which, scale, &number);
    if (result == NVML_SUCCESS && field->fieldId >= 3 && field->fieldId <= 6 && !is_on(gpu, ECC))
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result != NVML_SUCCESS)
        return result;
    field->valueType = type;
    if (type == TYPE_UINT)
        field->value.uiVal = (unsigned)number;
    else
        field->value.ullVal = (u64)number;
    return NVML_SUCCESS;
}

static nvmlReturn_t fill(const struct gpu *gpu, struct field_value *field)
{
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++)
        if (PLAIN[i].id == field->fieldId)
            return plain_field(gpu, field, PLAIN[i].which, PLAIN[i].scale, PLAIN[i].type);
    for (size_t i = 0; i < sizeof LINKS / sizeof *LINKS; i++)
        if (LINKS[i].id == field->fieldId)
            return link_field(gpu, field, LINKS[i].which, LINKS[i].divisor, LINKS[i].per_link);
    for (size_t i = 0; i < sizeof BLACKWELL / sizeof *BLACKWELL && gpu->numbers[ARCHITECTURE].base >= 10; i++)
        if (BLACKWELL[i].id == field->fieldId)
            return link_field(gpu, field, BLACKWELL[i].which, 1, 1);
    return NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, struct field_value *fields)
{
    BEGIN(CARDS, device, fields != NULL && count > 0);
    int64_t now = (int64_t)(wall_clock() * 1e6);
    for (int i = 0; i < count; i++) {
        fields[i].timestamp = now;
        fields[i].latencyUsec = 1;
        memset(&fields[i].value, 0, sizeof fields[i].value);
        fields[i].nvmlReturn = fill(at.gpu, &fields[i]);
    }
    END;
}
