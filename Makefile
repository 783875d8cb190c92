# SPDX-License-Identifier: Apache-2.0
# The entry point for people and CI.  Each target calls a script in tools/, which can be read, checked and run
# separately.

PREFIX ?= /usr/local
PROCESSORS ?= x86_64

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-quick test-all test-spark coverage proof fuzz kills snapshots sanitize soak bench overhead peers study scale algorithms placement reorder hosts site-wide site page fmt lint test-aarch64 gen install dist wheels test-wheels packages first-report test-rust test-old-glibc uninstall clean
# Targets share build/ and .venv; each already uses all processors.
.NOTPARALLEL:

help:        ## this list
	@echo 'make TARGET, which installs what it needs first:'
	@sed -n 's/^\([a-z0-9-]*\):\( *\)## /  \1\2/p' $(MAKEFILE_LIST)

demo:        ## build, profile a real application, show the report
	@tools/demo.sh

test:        ## everything: lint, unit tests, sanitizers, reader, both MPIs
	@tools/test.sh

test-quick:  ## unit tests and the reader, without the longest: a minute and a half
	@tools/test.sh quick

test-all:    ## the same, and each test with both MPIs of which 'make test' deals out the cases
	@tools/test.sh all

test-spark:  ## the questions to a dataset with Spark, on a cluster of three workers: equal to DuckDB? minutes
	@tools/spark.sh

fuzz:        ## 10,000 random programs on each MPI against the model; continues a stopped run
	@tools/fuzz.sh

kills:       ## 500 jobs killed at random moments, recovered and compared; continues a stopped run
	@tools/kills.sh

snapshots:   ## 20 jobs of 512 ranks, killed with their recorder: is the last snapshot right? an hour on a quiet machine
	@tools/snapshots.sh

sanitize:    ## our library in MPI jobs, without optimisation and under the address, undefined and thread sanitizers
	@tools/sanitize.sh

soak:        ## resident memory over 10^8 calls and 10^5 communicators, with and without commlens
	@tools/soak.sh

site:        ## docs/ as a site with search, in build/site
	@tools/site.sh

page:        ## check page/src and bundle it for commlens html
	@tools/bundle.sh

setup:       ## install the missing packages for all of these
	@tools/setup.sh build reader dev demo mpi test

build:       ## the library for each binary interface of MPI, and commlens-run
	@tools/build.sh release

coverage:    ## docs/evidence/coverage.md: how every MPI procedure is measured and where it is tested
	@tools/test.sh coverage

proof:       ## public test programs without and with commlens: hours; writes docs/evidence/transparency.md
	@tools/proof.sh

bench:       ## added nanoseconds per call, against no tool
	@tools/bench.sh run.py

overhead:    ## cost of commlens for programs, calls and memory, with intervals: hours; docs/evidence/overhead.md
	@tools/bench.sh overhead.py

peers:       ## other profilers, built and compared: hours; PEERS=folder with clones, PARTS=some, BUDGET=minutes; docs/comparison.md
	@PEERS="$(PEERS)" PARTS="$(PARTS)" AGAIN="$(AGAIN)" BUDGET="$(BUDGET)" ROUNDS="$(ROUNDS)" RANKS="$(RANKS)" HOSTS="$(HOSTS)" SIZE="$(SIZE)" tools/peers.sh

study:       ## which algorithm of MPI_Alltoall is the fastest for an FFT: minutes; writes docs/cases/fft.md
	@tools/bench.sh study.py

scale:       ## cost of MPI_Finalize with up to 4,096 virtual ranks; docs/evidence/scale.md
	@tools/scale.sh

algorithms:  ## messages of Open MPI inside each collective, by algorithm; docs/evidence/algorithms.md
	@tools/algorithms.sh

placement:   ## jobs with three placements on hosts with slow links; docs/evidence/placement.md: a quarter of an hour, as root
	@tools/bench.sh shaped_placement.py --page

reorder:     ## a stencil that turns half-way, with and without commlens_reorder(); docs/evidence/reorder.md: ten minutes, as root
	@tools/mpis.sh
	@tools/bench.sh shaped_reorder.py --page

hosts:       ## jobs on several hosts in network namespaces, and under a real Slurm: minutes, as root
	@tools/hosts.sh
	@tools/slurm.sh

site-wide:   ## a hundred jobs under a real Slurm that measures every job; docs/evidence/site-wide.md: two minutes, as root
	@tools/site_wide.sh --page

test-aarch64: ## the library for aarch64, and others, in emulation; docs/evidence/processors.md: hours, as root
	@tools/processors.sh all

gen:         ## generated/ and docs/reference/ from spec/
	@tools/generate.sh

fmt:         ## format C++ and Python
	@tools/format.sh

lint:        ## static checks
	@tools/lint.sh

install:     ## library, launcher and reader below PREFIX=/usr/local
	@tools/install.sh "$(PREFIX)"

uninstall:   ## remove what make install put below PREFIX
	@tools/uninstall.sh "$(PREFIX)"

dist:        ## the sources of a release, from which all packages are built, and recipes with its checksum, in dist/ (ADDRESS=where it will be)
	@tools/dist.sh $(ADDRESS)

wheels:      ## Python packages in dist/: source, reader, and the library for each interface of MPI (PROCESSORS=x86_64)
	@tools/wheels.sh $(PROCESSORS)

test-wheels: ## build them twice, install them in empty environments, profile jobs: a quarter of an hour
	@tools/test_wheels.sh

test-rust:   ## programs in Rust with rsmpi; needs cargo: minutes the first time
	@tools/rust.sh

packages:    ## Debian, RPM, Spack, EasyBuild, conda, Docker, Apptainer: built, installed, jobs profiled; PARTS=some; an hour, as root
	@SPACK="$(SPACK)" tools/packages.sh $(PARTS)

first-report: ## from an empty Debian to the first report, each step timed; docs/evidence/install.md: an hour, as root
	@tools/first_report.sh

test-old-glibc: ## do they need a glibc newer than 2.28, or a compiler newer than GCC 9? ten minutes
	@tools/old_glibc.sh

clean:       ## remove build/, dist/ and .venv
	rm -rf build dist .venv
