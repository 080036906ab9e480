# Set-up is two commands: `make demo` and `make test`. Everything else is for people who work on hopmap.

CARGO ?= cargo
# Foreign libraries: none, names of features, or `full` for all that this machine can build.
FEATURES ?=
install deb dist release bench: FEATURES = full

HAS_OTF2 = $(shell pkg-config --exists otf2 2>/dev/null && echo yes)
HAS_LIBCLANG = $(shell ls $(LIBCLANG_PATH)/libclang.so /usr/lib/llvm-*/lib/libclang.so /usr/lib*/libclang.so 2>/dev/null | grep -q . && echo yes)
HAS_HIGHS = $(if $(HAS_LIBCLANG),$(shell command -v cmake >/dev/null 2>&1 && command -v c++ >/dev/null 2>&1 && echo yes))
HAS_MPI = $(if $(HAS_LIBCLANG),$(shell command -v mpicc >/dev/null 2>&1 && echo yes))
FULL = metis $(if $(HAS_OTF2),libotf2) $(if $(HAS_HIGHS),highs) $(if $(HAS_MPI),mpi)
WANTED = $(strip $(if $(filter full,$(FEATURES)),$(FULL),$(FEATURES)))
FLAGS = $(if $(WANTED),--features "$(WANTED)")
# What is tested: Polars (`hopmap-query`) takes minutes to build and is tested with `FEATURES=full`.
WORKSPACE = --workspace $(if $(filter libotf2,$(WANTED)),,--exclude otf2-sys) $(if $(filter full,$(FEATURES)),,--exclude hopmap-query)
TARGET = $$($(CARGO) metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')

.PHONY: demo test quick check soak bench release install uninstall deb dist wheel try-packages missing book reference

# The main job on two sample traces: launch files and a report in out/. Needs Rust and a C compiler.
demo:
	$(CARGO) build --locked $(FLAGS) --bin hopmap
	"$(TARGET)/debug/hopmap" run pipelines/demo.toml -p out="$(CURDIR)/out" --report "$(CURDIR)/out/report.html"

# Everything a change has to pass, but for `make check`.
test:
	$(CARGO) fmt --all --check
	sh ci/test.sh $(CARGO) test --locked $(WORKSPACE) $(FLAGS)

# Unit tests: the answer within a minute when everything is built.
quick:
	$(CARGO) test --locked $(WORKSPACE) $(FLAGS) --lib --bins

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked $(WORKSPACE) --all-targets $(FLAGS) -- -D warnings

# The long loops: mutations of archives and crashes by the thousand, packages in clean systems.
soak:
	HOPMAP_SOAK=1 sh ci/test.sh $(CARGO) test --locked $(WORKSPACE) $(FLAGS)

bench: release
	$(CARGO) bench --locked $(WORKSPACE) $(FLAGS)
	bash ci/bench-engine.sh
	bash ci/bench-trace.sh

# Where it is installed.
PREFIX ?= /usr/local
DESTDIR ?=

# What is installed: hopmap, hopmap-query and, where there is an MPI, hopmap-ranks; one of an earlier build goes. All at once: apart, what they share would be
# built twice, for Polars gives it more features.
release: missing
	$(if $(filter mpi,$(WANTED)),,rm -f "$(TARGET)/release/hopmap-ranks")
	$(CARGO) build --release --locked $(FLAGS) -p hopmap -p hopmap-query --bin hopmap --bin hopmap-query $(if $(filter mpi,$(WANTED)),--bin hopmap-ranks)
	sh ci/no-crash-points.sh "$(TARGET)/release"

# Names the foreign libraries that this machine does not have.
missing:
	@$(if $(HAS_OTF2),:,echo "built without libotf2: Debian has it as libopen-trace-format2-dev" >&2)
	@$(if $(HAS_HIGHS),:,echo "built without HiGHS: it needs cmake, g++ and libclang-dev" >&2)
	@$(if $(HAS_MPI),:,echo "built without MPI: it needs libopenmpi-dev and libclang-dev" >&2)

# Binaries, manual pages, completions and examples below $(DESTDIR)$(PREFIX).
install: release
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" sh ci/install.sh "$(TARGET)/release"

uninstall:
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" sh ci/install.sh --remove

# What runs on machines without Rust, in $(PACKAGES): Debian packages, a tarball, a wheel.
PACKAGES ?= packages

deb: release
	rm -f $(PACKAGES)/*.deb
	sh ci/deb.sh "$(TARGET)/release" $(PACKAGES)

# Nothing in it needs a library that the other machine may not have: no libotf2 (the reader is our own), no MPI, and HiGHS
# with a C++ library of its own, which is found first because the folder has no other.
dist: missing
	mkdir -p "$(TARGET)/static"
	$(if $(filter highs,$(WANTED)),ln -sf "$$(c++ -print-file-name=libstdc++.a)" "$(TARGET)/static")
	$(CARGO) rustc --profile dist --locked --features "$(filter-out libotf2 mpi,$(WANTED))" --bin hopmap -- -L "native=$(TARGET)/static"
	$(CARGO) build --profile dist --locked -p hopmap-query
	sh ci/no-crash-points.sh "$(TARGET)/dist"
	rm -f $(PACKAGES)/*.tar.gz
	sh ci/tarball.sh "$(TARGET)/dist" $(PACKAGES)

# Without foreign libraries, as `pip install .` builds it, and tagged with the C library that it needs.
WHEEL_FLAGS ?=
wheel:
	rm -f $(PACKAGES)/*.whl
	MATURIN_PEP517_ARGS="--compatibility pypi --auditwheel check $(WHEEL_FLAGS)" python3 -m pip wheel --no-deps --wheel-dir $(PACKAGES) .

# As root, with debootstrap: installs, uses and removes them in a clean Debian.
try-packages: deb dist wheel
	sh ci/try-packages.sh $(PACKAGES)/*.deb $(PACKAGES)/*.tar.gz $(PACKAGES)/*.whl

# The book in docs/ as web pages in target/book, where mdbook is installed.
book:
	@command -v mdbook >/dev/null 2>&1 || { echo "mdbook is missing: cargo install mdbook; docs/SUMMARY.md lists the pages" >&2; exit 1; }
	mdbook build

# The generated pages of the reference.
reference:
	$(CARGO) run --locked $(FLAGS) --bin hopmap -- docs docs/reference
	HOPMAP_WRITE_ERRORS=1 $(CARGO) test --locked $(FLAGS) --test cli errors::
