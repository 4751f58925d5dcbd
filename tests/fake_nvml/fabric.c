/* The NVSwitch fabric a card belongs to. */
#include <stdio.h>
#include <string.h>
#include "fake.h"

static const struct { const char *word; unsigned state; } STATES[] = {
    {"not_supported", 0}, {"not_started", 1}, {"in_progress", 2}, {"completed", 3},
};

static const char *parse_uuid(const char *word, unsigned char *uuid)
{
    int count = 0, used;
    unsigned byte;
    while (word && *word && count < 16) {
        if (*word == '-') {
            word++;
            continue;
        }
        if (sscanf(word, "%2x%n", &byte, &used) != 1 || used != 2)
            return "cluster wants 32 hexadecimal digits";
        uuid[count++] = (unsigned char)byte;
        word += 2;
    }
    return word && !*word && count == 16 ? NULL : "cluster wants 32 hexadecimal digits";
}

/* fabric STATE [status N] [clique N] [cluster UUID] [health MASK] */
const char *parse_fabric(char **words, struct fabric *fabric)
{
    size_t i = 0, count = sizeof STATES / sizeof *STATES;
    const char *wrong;
    double number;
    while (i < count && (!words[0] || strcmp(STATES[i].word, words[0]) != 0))
        i++;
    if (i == count)
        return "a fabric is not_supported, not_started, in_progress or completed";
    memset(fabric, 0, sizeof *fabric);
    fabric->known = 1;
    fabric->state = STATES[i].state;
    for (words++; words[0]; words += 2) {
        if (strcmp(words[0], "cluster") == 0) {
            if ((wrong = parse_uuid(words[1], fabric->cluster)))
                return wrong;
            continue;
        }
        if ((wrong = parse_number(words[1], &number)))
            return wrong;
        if (strcmp(words[0], "status") == 0)
            fabric->status = (nvmlReturn_t)number;
        else if (strcmp(words[0], "clique") == 0)
            fabric->clique = (unsigned)number;
        else if (strcmp(words[0], "health") == 0)
            fabric->health = (unsigned)number;
        else
            return "a fabric knows status, clique, cluster and health";
    }
    return NULL;
}

/* Each version has the fields of the one before; what is beyond a caller's structure must not be touched. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, struct fabric_info *out)
{
    BEGIN(CARDS, device, out != NULL);
    const struct fabric *fabric = &at.gpu->fabric;
    int third = out->version == VERSIONED(struct fabric_info, 3);
    if (!third && out->version != (unsigned)(offsetof(struct fabric_info, healthSummary) | 2u << 24)) {
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    } else if (!fabric->known) {
        result = NVML_ERROR_NOT_SUPPORTED;
    } else {
        memcpy(out->clusterUuid, fabric->cluster, sizeof out->clusterUuid);
        out->status = fabric->status;
        out->cliqueId = fabric->clique;
        out->state = (unsigned char)fabric->state;
        out->healthMask = fabric->health;
        if (third)
            out->healthSummary = fabric->health ? 1 : 0;
    }
    END;
}
