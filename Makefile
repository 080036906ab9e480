# `make demo` and `make test` are all that users need. Everything else is for developers of hopmap.

CARGO ?= cargo
# Foreign libraries: none, names of features, or `full` for all that this machine can build.
FEATURES ?=
install deb dist wheel release bench bench-predict bench-gains bench-mapping reproduce bench-papers gallery: FEATURES = full

HAS_OTF2 = $(shell pkg-config --exists otf2 2>/dev/null && echo yes)
HAS_LIBCLANG = $(shell ls $(LIBCLANG_PATH)/libclang.so /usr/lib/llvm-*/lib/libclang.so /usr/lib*/libclang.so 2>/dev/null | grep -q . && echo yes)
HAS_HIGHS = $(if $(HAS_LIBCLANG),$(shell command -v cmake >/dev/null 2>&1 && command -v c++ >/dev/null 2>&1 && echo yes))
HAS_MPI = $(if $(HAS_LIBCLANG),$(shell command -v mpicc >/dev/null 2>&1 && echo yes))
FULL = metis $(if $(HAS_OTF2),libotf2) $(if $(HAS_HIGHS),highs) $(if $(HAS_MPI),mpi)
WANTED = $(strip $(if $(filter full,$(FEATURES)),$(FULL),$(FEATURES)))
# `mpi` is no feature of cargo but the program `hopmap-ranks`, a package of its own.
FLAGS = $(if $(filter-out mpi,$(WANTED)),--features "$(filter-out mpi,$(WANTED))")
# What is under test: Polars (`hopmap-query`) takes minutes to build and is tested with `FEATURES=full`.
WORKSPACE = --workspace $(if $(filter libotf2,$(WANTED)),,--exclude otf2-sys) $(STALE:%=--exclude %)
# Programs beside hopmap that an earlier build with more features has left: hopmap would start them.
STALE = $(if $(filter full,$(FEATURES)),,hopmap-query) $(if $(filter mpi,$(WANTED)),,hopmap-ranks)
FORGET = @for program in $(STALE); do rm -f "$(TARGET)/$(1)/$$program"; done
TARGET = $$($(CARGO) metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')

.PHONY: demo test quick check soak bench bench-predict bench-gains bench-mapping reproduce bench-papers gallery release install uninstall deb dist wheel rpm tools try-packages check-commits check-aarch64 missing book reference

# Maps two sample traces: launch files and a report in out/. Needs Rust and a C compiler.
demo:
	$(CARGO) build --locked $(FLAGS) --bin hopmap
	"$(TARGET)/debug/hopmap" run pipelines/demo.toml -p out="$(CURDIR)/out" --report "$(CURDIR)/out/report.html"

# Everything a change has to pass, except `make check`.
test:
	$(call FORGET,debug)
	CARGO="$(CARGO)" sh ci/test.sh --locked $(WORKSPACE) $(FLAGS)

# Unit tests: done within a minute if everything is built.
quick:
	$(CARGO) test --locked $(WORKSPACE) $(FLAGS) --lib --bins

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked $(WORKSPACE) --all-targets $(FLAGS) -- -D warnings

# Every commit of BASE..HEAD: its message, `make quick` and `make check`, in a temporary worktree with this target folder.
check-commits:
	@CARGO_TARGET_DIR="$(TARGET)" sh ci/check-commits.sh "$(BASE)"

# That everything compiles for aarch64, as far as this machine can tell: as root with Debian's Rust if the installed one has not this target.
check-aarch64:
	sh ci/aarch64.sh

# The long loops: thousands of mutations of archives and of crashes, and, as root, packages in clean Debians (debootstrap, rpm, python3-venv).
# Further MPIs, from the wheels of PyPI.
MPIS = $(TARGET)/mpis
soak:
	$(call FORGET,debug)
	sh ci/mpi.sh "$(MPIS)"
	HOPMAP_SOAK=1 HOPMAP_MPIS="$(MPIS)" CARGO="$(CARGO)" sh ci/test.sh --locked $(WORKSPACE) $(FLAGS)

bench: release
	$(CARGO) bench --locked $(WORKSPACE) $(FLAGS)
	bash ci/bench-engine.sh
	bash ci/bench-trace.sh

# Predictions and metrics compared with run times on an emulated network, into docs/explanation/predictions.md: half an hour on a
# machine with nothing else to do. `ci/bench-predict.sh --only PATTERN` measures a part; what has been measured is kept.
bench-predict: release
	$(CARGO) build --release --locked -p hopmap-test-network
	bash ci/bench-predict.sh --hopmap "$(TARGET)/release/hopmap" --out "$(TARGET)/bench-predict" --page docs/explanation/predictions.md

# Measured and predicted gains on an emulated network, into docs/howto/tune.md: half an hour on a machine with nothing else to do.
bench-gains: release
	$(CARGO) build --release --locked -p hopmap-test-network
	bash ci/bench-gains.sh --hopmap "$(TARGET)/release/hopmap" --out "$(TARGET)/bench-gains" --page docs/howto/tune.md

# Mappings of hopmap and other programs, into the README and docs/explanation/results.md: two hours; costs do not depend on what else the
# machine does. VieM and SciPy take part if they are there; HOPMAP_DATA names a folder with Taillard's instances, QAPLIB and traces.
bench-mapping: release
	python3 ci/bench-mapping.py "$(TARGET)/release/hopmap" --out "$(TARGET)/bench-mapping" --page README.md --page docs/explanation/results.md

# Every published result of the papers beside hopmap's, into docs/reproduction.md: about an hour from nothing; what has been computed is
# kept. DATA is a folder with Taillard's tai27e01.dat … tai343e01.dat.
reproduce bench-papers: release
	python3 ci/reproduce.py "$(TARGET)/release/hopmap" --data "$(DATA)" --out "$(TARGET)/reproduce"

# Every pipeline with its output and picture, into docs/gallery.md: twenty minutes; ENTRIES='demo place' runs some of them. HOPMAP_DATA as
# for bench-mapping.
gallery: release
	python3 ci/gallery.py "$(TARGET)/release/hopmap" $(ENTRIES)

# Installation folder.
PREFIX ?= /usr/local
DESTDIR ?=

# The installed programs: hopmap, hopmap-query and, with an MPI, hopmap-ranks; without one, that of an earlier build is removed. One build for all, because
# Polars enables more features of shared dependencies, which separate builds would compile twice.
release: missing
	$(call FORGET,release)
	$(CARGO) build --release --locked $(FLAGS) -p hopmap -p hopmap-query --bin hopmap --bin hopmap-query $(if $(filter mpi,$(WANTED)),-p hopmap-ranks --bin hopmap-ranks)
	sh ci/no-crash-points.sh "$(TARGET)/release"

# Reports the foreign libraries that this machine lacks.
missing:
	@$(if $(HAS_OTF2),:,echo "built without libotf2: Debian has it as libopen-trace-format2-dev" >&2)
	@$(if $(HAS_HIGHS),:,echo "built without HiGHS: it needs cmake, g++ and libclang-dev" >&2)
	@$(if $(HAS_MPI),:,echo "built without MPI: it needs libopenmpi-dev and libclang-dev" >&2)

# Binaries, manual pages, completions and examples below $(DESTDIR)$(PREFIX).
install: release
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" sh ci/install.sh "$(TARGET)/release"

uninstall:
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" sh ci/install.sh --remove

# Packages for machines without Rust, in $(PACKAGES): Debian packages, a tarball, a wheel, RPM packages.
PACKAGES ?= packages

deb: release
	rm -f $(PACKAGES)/*.deb
	sh ci/deb.sh "$(TARGET)/release" $(PACKAGES)

# Tarball, wheel and RPM packages start on RHEL 8 and need no library that another machine may lack: no libotf2 (hopmap has its own
# reader), no MPI. Zig links them with old symbols of glibc and with its own C++ library; cmake and libclang build HiGHS. All are on PyPI.
GLIBC = 2.28
DIST ?= dist
TOOLS = $(TARGET)/tools
WITH_TOOLS = PATH="$(TOOLS)/bin:$$PATH" LIBCLANG_PATH="$$(ls -d "$(TOOLS)"/lib/python3*/site-packages/clang/native)"
HOST = $$(rustc -vV | sed -n 's/^host: //p')
PORTABLE = $(filter-out libotf2 mpi,$(if $(filter full,$(FEATURES)),metis highs,$(FEATURES)))
BUILT = $(TARGET)/$(HOST)/$(if $(filter dev,$(DIST)),debug,$(DIST))

tools:
	sh ci/python.sh "$(TOOLS)" cargo-zigbuild==0.24.1 ziglang==0.17.1 maturin==1.16.0 cmake==4.4.5 libclang==18.1.1

wheel: tools
	rm -f $(PACKAGES)/*.whl
	$(WITH_TOOLS) maturin build --zig --compatibility manylinux_$(subst .,_,$(GLIBC)) --auditwheel check --locked --profile $(DIST) \
	  $(if $(PORTABLE),--features "$(PORTABLE)") --target "$(HOST)" --out $(PACKAGES)
	GLIBC=$(GLIBC) sh ci/glibc.sh $(PACKAGES)/*.whl

# With the binary of the wheel.
dist: wheel
	$(WITH_TOOLS) $(CARGO) zigbuild --profile $(DIST) --locked --target "$(HOST).$(GLIBC)" -p hopmap-query
	$(if $(filter dev,$(DIST)),,sh ci/no-crash-points.sh "$(BUILT)")
	rm -f $(PACKAGES)/*.tar.gz
	GLIBC=$(GLIBC) sh ci/tarball.sh "$(BUILT)" $(PACKAGES)

rpm: dist
	rm -f $(PACKAGES)/*.rpm
	sh ci/rpm.sh $(PACKAGES)/*.tar.gz $(PACKAGES)

# Installs, uses and removes the packages in clean Debians; needs root and debootstrap.
try-packages: deb rpm
	sh ci/try-packages.sh $(PACKAGES)/*.deb $(PACKAGES)/*.rpm $(PACKAGES)/*.tar.gz $(PACKAGES)/*.whl

# The book in docs/ as web pages in target/book; needs mdbook.
book:
	@command -v mdbook >/dev/null 2>&1 || { echo "mdbook is missing: cargo install mdbook; docs/SUMMARY.md lists the pages" >&2; exit 1; }
	mdbook build

# The generated pages of the reference.
reference:
	$(CARGO) run --locked $(FLAGS) --bin hopmap -- docs docs/reference
	HOPMAP_WRITE_ERRORS=1 $(CARGO) test --locked $(FLAGS) --test cli errors::
