# CameraBus. `make help` lists what there is.

SWIFT ?= swift
# A Python with pyzmq; the one in the PATH may not have it.
PYTHON ?= $(shell deploy/find-python)

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
SYSCONFDIR ?= /etc
# An empty PREFIX, usually a variable that isn't set, would strew the programs over / itself.
with_prefix = $(if $(strip $(PREFIX)),,$(error PREFIX is empty; name where to install, as in: make $@ PREFIX=/usr/local))

PROGRAMS := camerabus camerabusd camerabus-worker camerabus-matcher camerabus-recorder camerabus-librarian
BASH_COMPLETIONS := $(DATADIR)/bash-completion/completions
# Debian's zsh leaves site-functions to /usr/local.
ZSH_COMPLETIONS := $(DATADIR)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISH_COMPLETIONS := $(DATADIR)/fish/vendor_completions.d

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build run test test-kernel bench format lint install install-python uninstall clean

help: ## List these verbs
	@echo "CameraBus: one service owns the cameras, many programs use them."
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

build: ## Build the programs, with all they need, into .build/release
	@deploy/install-dependencies --build
	@for program in $(PROGRAMS); do $(SWIFT) build -c release --product $$program || exit 1; done

run: build ## Start the bus here, with two virtual cameras when there is no other; Ctrl-C ends it (make run RUN="--runtime-dir /tmp/bus")
	@deploy/install-dependencies --run
	@deploy/run $(RUN)

test: ## Run all tests that this machine can run, and say which it can't (make test TEST="format swift")
	@deploy/install-dependencies --build --test
	@Tests/run $(TEST)

test-kernel: ## Run the kernel ring alone: our V4L2 code against real drivers in an emulated machine
	@deploy/install-dependencies --build --test
	Tests/Kernel/run --required

bench: build ## Measure the release build beside others (make bench BENCH="--json figures.json --plot figures.svg"; --help has more)
	@deploy/install-dependencies --run
	PYTHON=$(PYTHON) Tests/Benchmark/run $(BENCH)

format: ## Format the Swift sources
	$(SWIFT) format format --in-place --parallel --recursive Package.swift Sources Tests

lint: ## Check formatting, scripts and the service's unit
	@Tests/run format scripts deploy

install: ## Install what `make build` built, with unit, configuration, completions and the C header (DESTDIR, PREFIX)
	@:$(with_prefix)
	@for program in $(PROGRAMS); do [ -x .build/release/$$program ] || { echo "make install: first make build" >&2; exit 1; }; done
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SYSCONFDIR)/camerabus
	install -m 755 $(PROGRAMS:%=.build/release/%) $(DESTDIR)$(BINDIR)
	install -d $(DESTDIR)$(LIBDIR)/systemd/system $(DESTDIR)$(LIBDIR)/sysusers.d $(DESTDIR)$(LIBDIR)/tmpfiles.d $(DESTDIR)$(LIBDIR)/udev/rules.d
	umask 022; sed 's|@bindir@|$(BINDIR)|; s|@sysconfdir@|$(SYSCONFDIR)|' deploy/camerabusd.service >$(DESTDIR)$(LIBDIR)/systemd/system/camerabusd.service
	install -m 644 deploy/sysusers.conf $(DESTDIR)$(LIBDIR)/sysusers.d/camerabus.conf
	install -m 644 deploy/tmpfiles.conf $(DESTDIR)$(LIBDIR)/tmpfiles.d/camerabus.conf
	install -m 644 deploy/70-camerabus.rules $(DESTDIR)$(LIBDIR)/udev/rules.d/70-camerabus.rules
	[ -e $(DESTDIR)$(SYSCONFDIR)/camerabus/camerabus.toml ] || install -m 644 deploy/camerabus.toml $(DESTDIR)$(SYSCONFDIR)/camerabus/camerabus.toml
	install -d $(DESTDIR)$(BASH_COMPLETIONS) $(DESTDIR)$(ZSH_COMPLETIONS) $(DESTDIR)$(FISH_COMPLETIONS)
	umask 022; .build/release/camerabus completions bash >$(DESTDIR)$(BASH_COMPLETIONS)/camerabus
	umask 022; .build/release/camerabus completions zsh >$(DESTDIR)$(ZSH_COMPLETIONS)/_camerabus
	umask 022; .build/release/camerabus completions fish >$(DESTDIR)$(FISH_COMPLETIONS)/camerabus.fish
	install -d $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(DATADIR)/doc/camerabus
	install -m 644 Protocol/c/camerabus_ring.h $(DESTDIR)$(INCLUDEDIR)/camerabus_ring.h
	install -m 644 Protocol/c/example.c $(DESTDIR)$(DATADIR)/doc/camerabus/example.c
	@[ -n "$(DESTDIR)" ] || printf '%s\n' 'To start the service now and at each boot:' \
	    '    systemd-sysusers && systemctl daemon-reload && systemctl enable --now camerabusd' \
	    'To let somebody use it:' '    usermod -aG camerabus NAME'

# Where Debian's Python looks for it: below /usr in one place for all versions, elsewhere in one for each.
PYTHONDIR ?= $(shell $(PYTHON) -c 'import sys; print("$(PREFIX)/lib/python3" + ("" if "$(PREFIX)" == "/usr" else ".%d" % sys.version_info[1]) + "/dist-packages")')

install-python: ## Install the Python package for all users (DESTDIR, PREFIX)
	@:$(with_prefix)
	@[ -n "$(PYTHONDIR)" ] || exit 1
	install -d $(DESTDIR)$(PYTHONDIR)/camerabus
	install -m 644 Protocol/python/camerabus/*.py Protocol/python/camerabus/py.typed $(DESTDIR)$(PYTHONDIR)/camerabus

uninstall: ## Remove what install and install-python installed; the configuration stays
	@:$(with_prefix)
	rm -f $(PROGRAMS:%=$(DESTDIR)$(BINDIR)/%)
	rm -f $(DESTDIR)$(LIBDIR)/systemd/system/camerabusd.service $(DESTDIR)$(LIBDIR)/udev/rules.d/70-camerabus.rules
	rm -f $(DESTDIR)$(LIBDIR)/sysusers.d/camerabus.conf $(DESTDIR)$(LIBDIR)/tmpfiles.d/camerabus.conf
	rm -f $(DESTDIR)$(BASH_COMPLETIONS)/camerabus $(DESTDIR)$(ZSH_COMPLETIONS)/_camerabus $(DESTDIR)$(FISH_COMPLETIONS)/camerabus.fish
	rm -f $(DESTDIR)$(INCLUDEDIR)/camerabus_ring.h $(DESTDIR)$(DATADIR)/doc/camerabus/example.c
	[ ! -d $(DESTDIR)$(DATADIR)/doc/camerabus ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(DATADIR)/doc/camerabus
	[ -z "$(PYTHONDIR)" ] || rm -rf $(DESTDIR)$(PYTHONDIR)/camerabus

clean: ## Remove what was built
	$(SWIFT) package clean
	rm -rf .build/benchmark
	find Protocol Tests -name __pycache__ -type d -prune -exec rm -rf {} +
