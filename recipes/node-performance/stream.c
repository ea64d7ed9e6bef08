/* Bandwidth of the host's memory: the four loops that everybody calls STREAM (copy, scale, add, triad), each several
 * times, the best time counting. Prints `Name: MB/s` (10^6 bytes), and ends with 1 where a result is wrong.
 * usage: stream ELEMENTS TIMES */
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static const double scale = 3.0;

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s ELEMENTS TIMES\n", argv[0]);
        return 2;
    }
    const long n = atol(argv[1]);
    const int times = atoi(argv[2]);
    if (n < 1000 || times < 2) {
        fprintf(stderr, "at least 1000 elements and 2 times\n");
        return 2;
    }
    double *a = aligned_alloc(64, (n * sizeof(double) + 63) / 64 * 64);
    double *b = aligned_alloc(64, (n * sizeof(double) + 63) / 64 * 64);
    double *c = aligned_alloc(64, (n * sizeof(double) + 63) / 64 * 64);
    if (a == NULL || b == NULL || c == NULL) {
        fprintf(stderr, "no memory for three arrays of %ld elements\n", n);
        return 2;
    }
    /* The thread that first writes a page has it in its own memory. */
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }
    double best[4] = {DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX};
    double wanted_a = 1.0, wanted_b = 2.0, wanted_c = 0.0;
    for (int round = 0; round < times; round++) {
        double start[5];
        start[0] = omp_get_wtime();
#pragma omp parallel for schedule(static)
        for (long i = 0; i < n; i++)
            c[i] = a[i];
        start[1] = omp_get_wtime();
#pragma omp parallel for schedule(static)
        for (long i = 0; i < n; i++)
            b[i] = scale * c[i];
        start[2] = omp_get_wtime();
#pragma omp parallel for schedule(static)
        for (long i = 0; i < n; i++)
            c[i] = a[i] + b[i];
        start[3] = omp_get_wtime();
#pragma omp parallel for schedule(static)
        for (long i = 0; i < n; i++)
            a[i] = b[i] + scale * c[i];
        start[4] = omp_get_wtime();
        wanted_c = wanted_a;
        wanted_b = scale * wanted_c;
        wanted_c = wanted_a + wanted_b;
        wanted_a = wanted_b + scale * wanted_c;
        /* The first round fills caches and page tables. */
        for (int k = 0; k < 4 && round > 0; k++)
            if (start[k + 1] - start[k] < best[k])
                best[k] = start[k + 1] - start[k];
    }
    long wrong = 0;
#pragma omp parallel for schedule(static) reduction(+ : wrong)
    for (long i = 0; i < n; i++)
        wrong += !(fabs(a[i] / wanted_a - 1) < 1e-12 && fabs(b[i] / wanted_b - 1) < 1e-12 && fabs(c[i] / wanted_c - 1) < 1e-12);
    static const char *const name[4] = {"Copy", "Scale", "Add", "Triad"};
    static const double arrays[4] = {2, 2, 3, 3};
    for (int k = 0; k < 4; k++)
        printf("%s: %.1f\n", name[k], arrays[k] * sizeof(double) * n / best[k] / 1e6);
    if (wrong) {
        printf("Failed Validation: %ld of %ld elements are wrong\n", wrong, n);
        return 1;
    }
    printf("Solution Validates\n");
    return 0;
}
