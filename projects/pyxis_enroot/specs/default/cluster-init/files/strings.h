/* Two functions of BSD that glibc has since 2.38 and enroot uses. Included before its sources when it is built on a node. */
#ifndef CYCLEFORGE_STRINGS_H
#define CYCLEFORGE_STRINGS_H

#include <string.h>

#if defined(__GLIBC__) && !__GLIBC_PREREQ(2, 38)
static inline __attribute__((unused)) size_t
strlcpy(char *to, const char *from, size_t size)
{
        const size_t length = strlen(from);

        if (size > 0) {
                const size_t copied = length < size ? length : size - 1;

                memcpy(to, from, copied);
                to[copied] = '\0';
        }
        return (length);
}

static inline __attribute__((unused)) size_t
strlcat(char *to, const char *from, size_t size)
{
        const size_t used = strnlen(to, size);

        return (used + strlcpy(to + used, from, size - used));
}
#endif

#endif
