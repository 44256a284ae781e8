# make tour      builds Gleaner, and shows in two to three minutes what it does; names a page
# make check     formatting, lints, unit tests, each verb once (90 s; five minutes the first time)
# make test      all that can be tested here; installs what is missing, names what it skips
# make test-long  all variants, real programs and files of this system (hours; can be resumed)
# make test-numa  memory placement, in an emulated guest with two NUMA nodes (a few minutes)
# make test-nofsgsbase  harvests without FSGSBASE, in emulated guests (a few minutes)
# make test-random  thousands of random programs, rewritten and compared (N=5000)
# make fuzz      damaged files for all readers; SECONDS_EACH=240 for each of 15 targets
# make test-harvest  'gleaner harvest' with real programs; RECORD=FILE (half an hour)
# make test-torture  random schedules of misbehaving scavengers, a hundred of them (some minutes)
# make soak      threads that come and go under scavengers for a long time (MINUTES=20)
# make static    a static binary for any Linux on x86-64, in target/packages (takes the musl target)
# make deb       a package for Debian and Ubuntu, in target/packages
# make test-packages  both, tried in a root of another release, and in an empty one (needs root)
# make regenerate  rewrites generated files: schemas, help texts
# make install   binary, man pages, completions, systemd unit below PREFIX (after make build)
# make uninstall  removes them again

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help build tour check test test-long test-numa test-nofsgsbase test-random fuzz test-harvest test-torture soak regenerate install uninstall static deb test-packages

TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
PREFIX ?= /usr/local

help:
	@sed -n 's/^# make /make /p' Makefile

build:
	@scripts/toolchain.sh
	cargo build --release --locked --package gleaner-cli

MUSL := x86_64-unknown-linux-musl
# What packages have beyond a plain build.
PACKAGED := parquet
static:
	@scripts/toolchain.sh
	@rustup target list --installed 2>/dev/null | grep -qx $(MUSL) || \
	  { echo "make static: rustc has no $(MUSL); run 'rustup target add $(MUSL)' first" >&2; exit 1; }
	cargo build --profile packaged --locked --package gleaner-cli --features $(PACKAGED) --target $(MUSL)
	@scripts/package.sh static

deb:
	@scripts/toolchain.sh
	cargo build --profile packaged --locked --package gleaner-cli --features $(PACKAGED)
	@scripts/package.sh deb

test-packages: deb static
	@scripts/test-packages.sh

tour:
	@if [ -x $(TARGET)/release/gleaner ]; then echo "make tour: two to three minutes"; \
	  else echo "make tour: three minutes to build Gleaner on two cores, then two to three for the tour"; fi
	@$(MAKE) --no-print-directory build
	$(TARGET)/release/gleaner tour

check:
	@scripts/toolchain.sh
	@scripts/check.sh

test:
	@scripts/toolchain.sh
	@scripts/test.sh

test-long: build
	@scripts/test-long.sh

test-numa:
	@scripts/toolchain.sh
	@scripts/test-numa.sh

test-nofsgsbase:
	@scripts/toolchain.sh
	@scripts/test-nofsgsbase.sh

N ?= 5000
test-random:
	GLEANER_RANDOM=$(N) cargo test --locked --package gleaner-cli --test rewriter -- random::

# A new number to begin with each time; it is told, and FUZZ_START repeats it.
SECONDS_EACH ?= 240
FUZZ_START ?= $(shell date +%s)000000
fuzz:
	GLEANER_FUZZ_SECONDS=$(SECONDS_EACH) GLEANER_FUZZ_START=$(FUZZ_START) cargo test --locked --package gleaner-cli --test fuzz

RECORD ?= $(TARGET)/harvest-real.md
test-harvest: build
	@scripts/harvest-real.sh --record $(RECORD)

test-torture:
	@scripts/toolchain.sh
	GLEANER_TORTURE=100 cargo test --locked --package gleaner-harvest --test runtime -- torture

MINUTES ?= 20
soak:
	@scripts/toolchain.sh
	GLEANER_SOAK=$$(($(MINUTES) * 60)) cargo test --locked --package gleaner-harvest --test runtime -- soak --nocapture

regenerate:
	for write in 1 0; do \
		GLEANER_REGENERATE=$$write cargo test --package gleaner-records --features schema --test schemas; \
		GLEANER_REGENERATE=$$write cargo test --package gleaner-cli --test cli -- generated::; \
		GLEANER_REGENERATE=$$write cargo test --package gleaner-testkit --test tidy; \
	done

# Installs what `make build` built, and builds nothing: root needs no toolchain, and leaves no files
# of its own in target/.
INSTALLED := bin/gleaner share/bash-completion/completions/gleaner share/zsh/site-functions/_gleaner \
	share/fish/vendor_completions.d/gleaner.fish share/man/man1/gleaner.1 share/man/man1/gleaner-*.1 \
	lib/systemd/system/gleaner.service

install:
	@test -x $(TARGET)/release/gleaner || { \
	  echo "make install: there is no $(TARGET)/release/gleaner; run 'make build' first, as the user who may use cargo" >&2; exit 1; }
	install -D -m 755 $(TARGET)/release/gleaner $(DESTDIR)$(PREFIX)/bin/gleaner
	@if command -v strip >/dev/null; then strip $(DESTDIR)$(PREFIX)/bin/gleaner; \
	  else echo "make install: no strip (binutils): gleaner keeps its debug information, 100 MB" >&2; fi
	@made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && mkdir "$$made/man" && \
	  $(TARGET)/release/gleaner generate man "$$made/man" && \
	  $(TARGET)/release/gleaner generate completions "$$made" && \
	  install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 "$$made"/man/*.1 && \
	  install -D -m 644 "$$made/gleaner.bash" $(DESTDIR)$(PREFIX)/share/bash-completion/completions/gleaner && \
	  install -D -m 644 "$$made/_gleaner" $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_gleaner && \
	  install -D -m 644 "$$made/gleaner.fish" $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/gleaner.fish && \
	  sed 's|@PREFIX@|$(PREFIX)|' docs/systemd/gleaner.service >"$$made/gleaner.service" && \
	  install -D -m 644 "$$made/gleaner.service" $(DESTDIR)$(PREFIX)/lib/systemd/system/gleaner.service

uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,$(INSTALLED))
