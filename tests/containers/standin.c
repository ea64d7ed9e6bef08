/* Stands for pyxis where its source is not there: the same option, the same folder that slurmd wants, the same name. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/spank.h>

#ifdef OTHER_RELEASE
#undef SLURM_VERSION_NUMBER
#define SLURM_VERSION_NUMBER SLURM_VERSION_NUM(20, 11, 9)
#endif

SPANK_PLUGIN(pyxis, 1);

static char image[4096];

static int remember(int value, const char *text, int remote)
{
        (void)value;
        (void)remote;
        snprintf(image, sizeof(image), "%s", text);
        return 0;
}

static struct spank_option option = {"container-image", "IMAGE", "[stand-in] the image", 1, 0, remember};

/* As pyxis: only the last part of the path is made, and slurmd does not start when that fails. */
static int make_runtime_folder(int count, char **words)
{
        for (int i = 0; i < count; i++) {
                if (strncmp(words[i], "runtime_path=", 13) != 0)
                        continue;
                if (mkdir(words[i] + 13, 0755) != 0 && access(words[i] + 13, F_OK) != 0)
                        return -1;
        }
        return 0;
}

int slurm_spank_init(spank_t spank, int count, char **words)
{
        spank_context_t context = spank_context();

        if (context == S_CTX_SLURMD)
                return make_runtime_folder(count, words);
        if (context != S_CTX_LOCAL && context != S_CTX_REMOTE && context != S_CTX_ALLOCATOR)
                return 0;
        return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

int slurm_spank_task_init(spank_t spank, int count, char **words)
{
        (void)spank;
        for (int i = 0; i < count; i++)
                if (image[0])
                        fprintf(stderr, "stand-in: %s with %s\n", image, words[i]);
        return 0;
}
