# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # some names are set by the sourcing script
# Sourced after tools/namespaces.sh.  Starts a real Slurm on the hosts: munged, slurmctld on h1, and a slurmd on each.
# `place` is the folder of the sourcing script.  It may set `more_of_slurm_conf` to further lines of slurm.conf.

export SLURM_CONF=$place/etc/slurm.conf
cpus_of_host=${cpus_of_host:-16}

configure_slurm() {
  mkdir -p "$place"/{etc,state,run,log}
  chmod 755 "$place" "$place/run"
  (umask 077 && head -c 1024 /dev/urandom >"$place/etc/munge.key")
  cat >"$SLURM_CONF" <<CONF
ClusterName=commlens
SlurmctldHost=h1
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$place/run/munge.socket
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/run/%n
SlurmdPidFile=$place/run/%n.pid
SlurmctldPidFile=$place/run/slurmctld.pid
SlurmctldLogFile=$place/log/slurmctld
SlurmdLogFile=$place/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# Takes the number of processors from this file.
SlurmdParameters=config_overrides
ReturnToService=2
# Seconds between SIGTERM and SIGKILL.
KillWait=5
NodeName=h[1-4] CPUs=$cpus_of_host RealMemory=1000
PartitionName=all Nodes=ALL Default=YES
${more_of_slurm_conf:-}
CONF
  # A plugin that needs neither rights nor systemd; no job uses it.
  echo "CgroupPlugin=cgroup/v1" >"$place/etc/cgroup.conf"
  # The folder for PMIx' sockets.  All nodes are on one machine, and would share the default folder.
  echo "PMIxCliTmpDirBase=/dev/shm" >"$place/etc/mpi.conf"
}

start_slurm() {
  local name tries
  munged --force --key-file="$place/etc/munge.key" --socket="$place/run/munge.socket" --pid-file="$place/run/munged.pid" \
    --log-file="$place/log/munged" --seed-file="$place/run/munged.seed"
  on h1 slurmctld
  for name in "${hosts[@]}"; do
    mkdir -p "$place/run/$name"
    on "$name" slurmd -N "$name"
  done
  for ((tries = 0; tries < 60; ++tries)); do
    [ "$(on h1 sinfo --noheader --Node --states=idle | wc -l)" = 4 ] && return
    sleep 1
  done
  echo "  FAILED  the nodes do not come up; see ${place#"$ROOT"/}/log"
  return 1
}

interface() {
  case $1 in openmpi) echo pmix ;; *) echo pmi2 ;; esac
}
