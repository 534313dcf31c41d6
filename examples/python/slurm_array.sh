#!/bin/sh
# A sweep on 16 nodes of a Slurm cluster, with a shard for each, on a shared file system:
#
#     jobs=$(sbatch --parsable --array=1-16 slurm_array.sh node.toml rows)
#     sbatch --dependency=afterok:$jobs --wrap 'pagetide sweep --merge rows --store all'
#
# Submit a failed or killed shard again (--array=7): it runs only what is missing. Python reads the
# rows with pagetide.read_rows("all").
#SBATCH --array=1-16
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
set -eu
exec pagetide sweep "$1" \
    --grid vm.swappiness=0,60,100,200 --grid vm.watermark_scale_factor=10,100,1000 \
    --repeats 8 --store "$2" --shard "$SLURM_ARRAY_TASK_ID/${SLURM_ARRAY_TASK_COUNT:-16}" --format csv >/dev/null
