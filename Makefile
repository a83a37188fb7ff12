# All programs are built from Go modules, which go.sum verifies. No prebuilt programs are downloaded. `make help` lists
# the targets.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The manager's image, and its base image, which is pulled from a registry. The base image scratch needs no registry.
IMG ?=
IMAGE := $(or $(IMG),xylem:dev)
BASE ?= scratch
CONTAINER_TOOL ?= docker
CHROMIUM ?= chromium
# The targets install, deploy and run use kubectl's current cluster.
KUBECTL ?= kubectl
# Architecture of the image's binary, and architectures of the images in a release.
ARCH ?= $(shell go env GOARCH)
ARCHS ?= amd64 arm64
# Version of the release, and platforms for its kubectl plugin.
VERSION ?= $(shell sed -n 's/^appVersion: //p' charts/xylem/Chart.yaml)
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# Duration of each fuzz target, and timeouts for the test runs, which a machine at half speed does not exceed.
FUZZTIME ?= 10s
UNIT_TIMEOUT ?= 30m
MODELS_TIMEOUT ?= 2h
MUTANTS_TIMEOUT ?= 5h
INTEGRATION_TIMEOUT ?= 90m
# Number of other suites that run at a time (test-all chooses it by the available memory).
INTEGRATION_PACKAGES ?= 2
# Number of processes that run the stories in parallel, each with its own clusters (test and test-all choose it by the
# available memory), and additional flags for ginkgo, such as STORIES_FLAGS='--focus promise'.
STORIES_PROCESSES ?= 2
STORIES_FLAGS ?=
# Stories to run: quick (those of make test), rest (all others) or empty (all).
TIER ?=
# Cluster provider for the end-to-end stories (kind or controlplane), and their timeout.
E2E_PROVIDER ?= kind
E2E_TIMEOUT ?= 90m
# Flags for go run ./test/fault enumerate, such as FAULT_FLAGS='--rigs 6 --scenario delete'.
FAULT_FLAGS ?=
# Flags for go run ./test/versions, such as VERSIONS_FLAGS='--only upgrade'.
VERSIONS_FLAGS ?=
# Flags and scenarios for go run ./test/bench, such as BENCH_FLAGS='--repeats 5 latency burst'.
BENCH_FLAGS ?=
# Additional flags for go test, such as TESTFLAGS='-run TestX -count=1'.
TESTFLAGS ?=

BIN := $(CURDIR)/bin
DIST := $(CURDIR)/dist
# Tests, tools and products are compiled with the same flags as the cluster programs (test/controlplane/kubebin), so that
# they share compiled packages in the build cache. Static and reproducible binaries also need these flags.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
GO_BUILD := go build -buildvcs=false -ldflags='-s -w -buildid= -X github.com/xylem-io/xylem/internal/cli/command.Version=$(VERSION)'

# The tools that test/tools/go.mod pins. They are built once for each version of this file and of Go. They are outside the
# clone, so that a new clone does not need to build them again.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/xylem
TOOLS_KEY := $(shell (go env GOVERSION; cat test/tools/go.mod test/tools/go.sum) | cksum | cut -d' ' -f1)
TOOLS := $(CACHE)/tools-$(TOOLS_KEY)
CONTROLLER_GEN := $(TOOLS)/controller-gen
GOLANGCI_LINT := $(TOOLS)/golangci-lint
KUSTOMIZE := $(TOOLS)/kustomize
GINKGO := $(TOOLS)/ginkgo
# Tools with conflicting dependencies have their own modules.
tool-key = $(shell (go env GOVERSION; cat test/tools/$(1)/go.mod test/tools/$(1)/go.sum) | cksum | cut -d' ' -f1)
HELM := $(CACHE)/helm-$(call tool-key,helm)/helm
PROMTOOL := $(CACHE)/promtool-$(call tool-key,promtool)/promtool
GOVULNCHECK := $(CACHE)/vuln-$(call tool-key,vuln)/govulncheck
VULNDB ?=

# Directories with Go code, directories with tests on real clusters, the stories, and the other suites of which make test
# runs some stories. fence runs only there.
GO_DIRS := $(wildcard api cmd internal test)
ON_CLUSTERS := test/integration test/controlplane test/fault test/charts test/docs
STORIES := test/integration/stories
FENCE := test/integration/fence
QUICK_SUITES := $(FENCE) $(foreach s,doctor move nodeapi register snapshots,test/integration/$(s))
# The other suites, the longest ones first.
LONG_SUITES := $(foreach s,integration/recovery charts integration/attacks integration/snapshots docs fault integration/move,test/$(s))
# Packages with unit tests: all other directories except nested modules, so that no test is omitted by accident.
UNIT := $(foreach d,$(wildcard api internal cmd) $(filter-out $(ON_CLUSTERS),$(patsubst %/,%,$(wildcard test/*/))),$(if $(wildcard $(d)/go.mod),,./$(d)/...))
RBAC_PATHS := $(foreach d,$(wildcard internal cmd),paths=./$(d)/...)
# The only directories that the repository's root may contain.
LAYOUT := api charts cmd config internal test bin dist
# All kustomizations.
KUSTOMIZATIONS := $(sort $(patsubst %/kustomization.yaml,%,$(wildcard config/*/kustomization.yaml)))

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z_-]+:.*?##/ {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Development

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Generate the CRD and the manager's RBAC from the markers in the code.
	@$(call generate-manifests,config/crd/bases,config/rbac)

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate the deepcopy code for the API types, and the pages that list reasons and metrics.
	@$(call generate-deepcopy,api/v1alpha1)
	@go run ./test/gen/docs

.PHONY: charts
charts: manifests $(KUSTOMIZE) ## Generate the charts' CRDs, RBAC, policies, schema descriptions and tables of values.
	@go run ./test/gen/charts --kustomize $(KUSTOMIZE)

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code: gofmt, and imports in three groups.
	$(GOLANGCI_LINT) fmt $(foreach d,$(GO_DIRS),./$(d)/...)

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) $(HELM) ## Run the linters that .golangci.yml enables, and lint the charts.
	$(GOLANGCI_LINT) run
	$(HELM) lint --strict --quiet charts/*

.PHONY: lint-fix
lint-fix: $(GOLANGCI_LINT) ## Run the linters, and fix the problems that they can fix.
	$(GOLANGCI_LINT) run --fix

.PHONY: verify
verify: verify-generated verify-format verify-modules verify-layout verify-kustomize verify-charts verify-docs ## Check generated files, formatting and layout, without changing files.

.PHONY: verify-generated
verify-generated: $(CONTROLLER_GEN)
	@echo 'verify: deepcopy code, CRD and RBAC are up to date'
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; mkdir "$$tmp/api" "$$tmp/crd" "$$tmp/rbac"; \
	$(call generate-deepcopy,"$$tmp/api"); \
	$(call generate-manifests,"$$tmp/crd","$$tmp/rbac"); \
	ok=true; \
	diff -u api/v1alpha1/zz_generated.deepcopy.go "$$tmp/api/zz_generated.deepcopy.go" || ok=false; \
	diff -ru config/crd/bases "$$tmp/crd" || ok=false; \
	if [[ -e $$tmp/rbac/role.yaml ]]; then diff -u config/rbac/role.yaml "$$tmp/rbac/role.yaml" || ok=false; fi; \
	$$ok || { echo 'verify: generated files are out of date: run make generate manifests' >&2; exit 1; }

.PHONY: verify-format
verify-format:
	@echo 'verify: Go files are formatted'
	@found=$$(gofmt -l $(GO_DIRS)); [[ -z $$found ]] || { printf 'verify: not formatted, run make fmt:\n%s\n' "$$found" >&2; exit 1; }

.PHONY: verify-modules
verify-modules:
	@echo 'verify: go.mod and go.sum are tidy'
	@go mod tidy -diff || { echo 'verify: run go mod tidy' >&2; exit 1; }

.PHONY: verify-layout
verify-layout:
	@echo 'verify: the root contains only known directories'
	@for d in */; do d=$${d%/}; \
		[[ " $(LAYOUT) " == *" $$d "* ]] || { echo "verify: $$d/ does not belong at the root; allowed are: $(LAYOUT)" >&2; exit 1; }; done

.PHONY: verify-kustomize
verify-kustomize: $(KUSTOMIZE)
	@echo 'verify: every kustomization builds'
	@for k in $(KUSTOMIZATIONS); do \
		$(KUSTOMIZE) build "$$k" >/dev/null || { echo "verify: $$k does not build" >&2; exit 1; }; done

.PHONY: verify-charts
verify-charts: $(KUSTOMIZE)
	@echo 'verify: charts are up to date'
	@go run ./test/gen/charts --kustomize $(KUSTOMIZE) --verify

.PHONY: verify-docs
verify-docs:
	@echo 'verify: the generated pages and pictures are up to date'
	@go run ./test/gen/docs --verify
	@go run ./test/gen/pictures --verify

##@ Tests

# $(call run-tiers,tiers): runs the steps of tiers (test/run), which are targets below.
define run-tiers
@mkdir -p $(BIN)
@go build -o $(BIN)/run-tests ./test/run
@exec $(BIN)/run-tests $(1)
endef

.PHONY: test
test: ## Check generated files, and run the unit tests, small models, quick stories and core stories. This builds the cluster programs if they are missing.
	$(call run-tiers,quick)

.PHONY: test-all
test-all: ## Run test, and then everything else: linters, all stories and suites.
	$(call run-tiers,quick rest)

.PHONY: test-rest
test-rest: # What test-all runs after test, for CI.
	$(call run-tiers,rest)

.PHONY: test-unit
test-unit: ## Run the unit tests, and the models with small bounds.
	go test -short -vet=off -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) $(UNIT)
	@go -C test/charts/dashboard test -vet=off -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) ./board

.PHONY: test-models
test-models: ## Run the models with all bounds: nightly, and before a release.
	go test -count=1 -timeout $(MODELS_TIMEOUT) $(TESTFLAGS) ./test/model/... ./internal/volume/lifecycle ./internal/snapshot

.PHONY: test-integration
test-integration: test-stories test-suites ## Run the tests on real control planes: the stories (STORIES_FLAGS), then the other suites (TESTFLAGS).

# Environment of the tests on real control planes.
ON_CLUSTERS_ENV = KUBE_CACHE_MUTATION_DETECTOR=true XYLEM_TIER=$(TIER)

.PHONY: test-stories
test-stories: kube build $(GINKGO)
	$(ON_CLUSTERS_ENV) $(GINKGO) run --procs=$(STORIES_PROCESSES) --vet=off --timeout=$(INTEGRATION_TIMEOUT) --no-color --show-node-events=false $(STORIES_FLAGS) ./$(STORIES)

.PHONY: test-suites
test-suites: kube build $(if $(filter quick,$(TIER)),,$(HELM) $(PROMTOOL))
	@export HELM=$(HELM) PROMTOOL=$(PROMTOOL) $(ON_CLUSTERS_ENV); \
	packages='$(foreach s,$(QUICK_SUITES),./$(s))'; \
	if [[ '$(TIER)' != quick ]]; then \
		first=$$(go list $(foreach s,$(LONG_SUITES),./$(s))); \
		others=$$(go list $(foreach d,$(wildcard $(ON_CLUSTERS)),./$(d)/...) | grep -v -e '/$(STORIES)$$' $(if $(TIER),-e '/$(FENCE)$$') | grep -vxF "$$first"); \
		packages="$$first $$others"; \
	fi; \
	go test -count=1 -vet=off -p $(INTEGRATION_PACKAGES) -timeout $(INTEGRATION_TIMEOUT) $(TESTFLAGS) $$packages

.PHONY: test-fault
test-fault: kube ## Kill the manager before and after every write in every scenario, and make every write fail; takes up to an hour (FAULT_FLAGS).
	go run ./test/fault enumerate $(FAULT_FLAGS)

.PHONY: test-mutants
test-mutants: kube ## Add known defects to the manager, one at a time, and check that the fault harness or the model finds each defect; takes hours.
	go run ./test/fault mutants
	go test ./test/model/... -run '^TestMutants$$' -timeout $(MUTANTS_TIMEOUT) -v -args -mutants

.PHONY: test-e2e
test-e2e: image build kube $(HELM) ## Run the end-to-end stories on kind or, with E2E_PROVIDER=controlplane, on loopback; see test/e2e/README.md.
	HELM='$(HELM)' KUBECTL="$$(go run ./test/controlplane/cmd/kubebuild --print-dir)/kubectl" IMG='$(IMAGE)' E2E_PROVIDER=$(E2E_PROVIDER) \
		go test -count=1 -v -timeout $(E2E_TIMEOUT) $(TESTFLAGS) ./test/e2e -ginkgo.v -ginkgo.no-color

.PHONY: setup-test-e2e
setup-test-e2e: image kube ## Start the end-to-end tests' kind clusters for manual use; KIND_NODE_IMAGE sets another node image.
	@go run ./test/e2e/cmd/clusters up

.PHONY: cleanup-test-e2e
cleanup-test-e2e: ## Delete the end-to-end tests' kind clusters.
	@go run ./test/e2e/cmd/clusters down

.PHONY: kind-node-image
kind-node-image: ## Build a kind node image without a registry, from Debian packages and Go modules; requires root, debootstrap and Docker.
	go run ./test/e2e/nodeimage

.PHONY: bench
bench: kube ## Measure Xylem and its baselines, and write the results to dist/bench; takes an hour or more (BENCH_FLAGS).
	go run ./test/bench --out '$(DIST)/bench' $(BENCH_FLAGS)
	go -C test/bench/plot run . '$(DIST)/bench'

.PHONY: bench-quick
bench-quick: kube ## Run the benchmark with small sizes, which takes less than three minutes; the results are not meaningful.
	go run ./test/bench --quick --out '$(DIST)/bench-quick'
	go -C test/bench/plot run . '$(DIST)/bench-quick'

# The flags are the same as for promtool, so that both share Prometheus' compiled packages.
.PHONY: dashboard
dashboard: kube ## Draw the chart's dashboard in charts/xylem, with metrics from managers under load and failures; takes about ten minutes.
	@mkdir -p $(DIST)
	go -C test/charts/dashboard test -tags remove_all_sd ./...
	go -C test/charts/dashboard build -tags remove_all_sd -o '$(DIST)/dashboard' .
	go run ./test/charts/workload '$(DIST)/dashboard' --out=charts/xylem/dashboard.png

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 10s).
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $(wildcard api internal cmd) | \
	while IFS=: read -r file func; do \
		echo "fuzz: $${func#func } in $$(dirname "$$file") for $(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")"; \
	done

.PHONY: kube
kube: ## Build the programs for loopback clusters, once, in the user's cache.
	go run ./test/controlplane/cmd/kubebuild

.PHONY: kube-versions
kube-versions: ## Build the control planes of the older Kubernetes versions that test/kube pins, for test-versions; takes 10 minutes or more.
	go run ./test/controlplane/cmd/kubebuild --kubernetes all

.PHONY: kube-demo
kube-demo: # Omits the programs for volume attachment, which the demo does not need.
	@go run ./test/controlplane/cmd/kubebuild --core snapshot-controller csi-snapshotter

.PHONY: demo
demo: kube-demo build ## Run seed 001's example on a host and two members on loopback; DEMO_EXIT=1 ends the demo after its checks.
	@echo 'demo: compiling (the first time, this takes a minute or two)'
	@go run ./test/demo

.PHONY: demo-recording
demo-recording: ## Run the demo, and draw the README's picture of a terminal from its output.
	@mkdir -p $(DIST)
	DEMO_EXIT=1 DEMO_RECORD='$(DIST)/demo.txt' $(MAKE) --no-print-directory demo
	@go run ./test/gen/pictures --recording '$(DIST)/demo.txt'

.PHONY: check-pictures
check-pictures: ## Render the pictures in Chromium, and check that their texts can be read.
	@go run ./test/gen/pictures --chromium '$(CHROMIUM)'

.PHONY: pictures
pictures: ## Draw the pictures in .github/images from their sources.
	@go run ./test/gen/pictures

##@ Build

.PHONY: build
build: ## Build all commands in bin/.
	@mkdir -p $(BIN)
	@for c in $(notdir $(wildcard cmd/*)); do echo "build: bin/$$c (the first time, this takes a minute or two)"; $(GO_BUILD) -o "$(BIN)/$$c" "./cmd/$$c"; done

.PHONY: run
run: manifests generate ## Run the manager on this machine, against kubectl's current cluster.
	go run ./cmd/manager

.PHONY: image
image: ## Pack the image IMG (default xylem:dev) in dist/image.tar, based on BASE if set. This needs no engine or registry. The same sources always result in the same digest.
	@mkdir -p $(BIN) $(DIST)
	GOOS=linux GOARCH=$(ARCH) $(GO_BUILD) -o $(BIN)/linux-$(ARCH)/manager ./cmd/manager
	@go run ./test/image/cmd/image --binary $(BIN)/linux-$(ARCH)/manager --licence LICENSE --tag '$(IMAGE)' --base '$(BASE)' --arch $(ARCH) --to $(DIST)/image.tar

# PUSH=true also pushes the index to IMG's registry, with the credentials from docker login.
.PHONY: image-index
image-index: ## Pack the image IMG for each of ARCHS in dist/image-ARCH.tar, and their index (OCI layout) in dist/image; PUSH=true pushes the index.
	@for arch in $(ARCHS); do \
		$(MAKE) --no-print-directory image ARCH=$$arch; mv '$(DIST)/image.tar' "$(DIST)/image-$$arch.tar"; done
	@go run ./test/image/cmd/index --to '$(DIST)/image' $(if $(PUSH),--push '$(IMAGE)') $(foreach a,$(ARCHS),'$(DIST)/image-$(a).tar') > '$(DIST)/image.digest'
	@echo "image-index: $(IMAGE)@$$(cat '$(DIST)/image.digest')$(if $(PUSH), pushed,, in dist/image)"

.PHONY: plugin
plugin: ## Pack the kubectl plugin for PLUGIN_PLATFORMS, with version VERSION and a krew manifest, in dist/plugin.
	@rm -rf '$(BIN)/plugin' '$(DIST)/plugin'; mkdir -p '$(DIST)/plugin'
	@for p in $(PLUGIN_PLATFORMS); do \
		os=$${p%/*}; arch=$${p#*/}; ext=; [[ $$os != windows ]] || ext=.exe; \
		echo "plugin: $$p"; GOOS=$$os GOARCH=$$arch $(GO_BUILD) -o "$(BIN)/plugin/$$os-$$arch/kubectl-xylem$$ext" ./cmd/kubectl-xylem; done
	@go run ./test/image/cmd/plugin --from '$(BIN)/plugin' --to '$(DIST)/plugin' --version '$(VERSION)'

.PHONY: docker-build
docker-build: image ## Pack the image and load it into CONTAINER_TOOL (default docker).
	@command -v $(CONTAINER_TOOL) >/dev/null || { echo 'docker-build: $(CONTAINER_TOOL) is not installed. The image is in dist/image.tar' >&2; exit 1; }
	@$(CONTAINER_TOOL) info >/dev/null 2>&1 || { echo 'docker-build: the engine for $(CONTAINER_TOOL) does not respond. Start it. The image is in dist/image.tar' >&2; exit 1; }
	$(CONTAINER_TOOL) load --input $(DIST)/image.tar

.PHONY: sbom
sbom: build ## Write a bill of materials (CycloneDX) for the modules in the commands to dist/sbom.cdx.json.
	@mkdir -p $(DIST)
	@go run ./test/image/cmd/sbom --to $(DIST)/sbom.cdx.json $(foreach c,$(notdir $(wildcard cmd/*)),$(BIN)/$(c))

# govulncheck exits with code 3 if it finds vulnerabilities, and with code 1 if it fails.
.PHONY: govulncheck
govulncheck: $(GOVULNCHECK) ## Check for known vulnerabilities that the code can reach, with the database VULNDB (default: the Go project's); the report is in dist/govulncheck.txt.
	@mkdir -p $(DIST)
	@rc=0; $(GOVULNCHECK) $(if $(VULNDB),-db '$(VULNDB)') -show version ./api/... ./cmd/... ./internal/... >$(DIST)/govulncheck.txt 2>&1 || rc=$$?; \
	cat $(DIST)/govulncheck.txt; \
	case $$rc in 0) ;; \
	3) echo 'govulncheck: the code can reach the known vulnerabilities above. Update the modules.' >&2 ;; \
	*) echo 'govulncheck: the check failed: see above. If the database $(or $(VULNDB),https://vuln.go.dev) is unreachable, use a copy: VULNDB=file:///path (https://go.dev/doc/security/vuln/database)' >&2; \
		rm -f $(DIST)/govulncheck.txt ;; esac; exit $$rc

# Packaged charts name the image of the release, and link to the release's files on GitHub: a chart's archive does not contain
# the other files of the repository.
.PHONY: release-charts
release-charts: ## Write the charts for IMG and VERSION, as a release packs them, to dist/charts.
	@[[ '$(IMG)' =~ ^(.+/[^:/@]+):([^:/@]+)$$ ]] || { echo 'release-charts: set the image with its registry and tag: IMG=registry.example/xylem:$(VERSION)' >&2; exit 1; }; \
	rm -rf '$(DIST)/charts'; mkdir -p '$(DIST)/charts'; cp -R charts/* '$(DIST)/charts/'; \
	sed -i.before -e "s|^  repository: xylem$$|  repository: $${BASH_REMATCH[1]}|" -e "s|^  tag: \"\"$$|  tag: \"$${BASH_REMATCH[2]}\"|" '$(DIST)/charts/xylem/values.yaml'; \
	sed -E -i.before -e 's#\]\(\.\./\.\./#](https://github.com/xylem-io/xylem/blob/$(VERSION)/#g' -e 's#\]\(\.\./#](https://github.com/xylem-io/xylem/blob/$(VERSION)/charts/#g' \
		-e "s#^(\| .image\.repository. \| .)\"xylem\"#\1\"$${BASH_REMATCH[1]}\"#" -e "s#^(\| .image\.tag. \| .)\"\"#\1\"$${BASH_REMATCH[2]}\"#" '$(DIST)'/charts/*/*.md; \
	rm '$(DIST)'/charts/*/*.before

.PHONY: release-notes
release-notes: ## Write the section of CHANGELOG.md about VERSION to dist/notes.md, and fail if there is none.
	@mkdir -p '$(DIST)'
	@awk -v heading='## [$(patsubst v%,%,$(VERSION))]' 'index($$0, heading) == 1 {on = 1; next} /^## \[/ {on = 0} on' CHANGELOG.md > '$(DIST)/notes.md'
	@grep -q '[^[:space:]]' '$(DIST)/notes.md' || { echo 'release-notes: CHANGELOG.md has no section "## [$(patsubst v%,%,$(VERSION))]" with text. Rename the section "## [Unreleased]"' >&2; exit 1; }

# The targets run one after another. release-charts checks IMG. govulncheck comes next, because it can fail for reasons outside
# the code: without the vulnerability database, there is no release.
.PHONY: release
release: $(HELM) ## Create all release files for IMG and VERSION in dist/release: images, charts, installer, plugin, SBOM, vulnerability check, checksums.
	@rm -rf '$(DIST)/release'
	@for target in release-charts govulncheck verify image-index sbom plugin build-installer; do \
		$(MAKE) --no-print-directory "$$target" || { echo "release: $$target failed, so no release was created" >&2; exit 1; }; done
	@mkdir -p '$(DIST)/release'
	@cp $(foreach f,$(foreach a,$(ARCHS),image-$(a).tar) image.digest sbom.cdx.json install.yaml govulncheck.txt,'$(DIST)/$(f)') '$(DIST)'/plugin/* '$(DIST)/release/'
	@$(HELM) package --version '$(patsubst v%,%,$(VERSION))' --app-version '$(VERSION)' --destination '$(DIST)/release' '$(DIST)'/charts/*
	@cd '$(DIST)/release' && sha256sum -- * > SHA256SUMS && cat SHA256SUMS

.PHONY: docker-push
docker-push: ## Push the image IMG to its registry.
	$(CONTAINER_TOOL) push $(IMAGE)

.PHONY: build-installer
build-installer: manifests $(KUSTOMIZE) ## Write all manifests for the host to dist/install.yaml.
	@mkdir -p $(DIST)
	@$(call kustomize-default) > $(DIST)/install.yaml
	@echo 'build-installer: dist/install.yaml, with image $(IMAGE)'

##@ Deployment

.PHONY: install
install: manifests $(KUSTOMIZE) ## Install the CRD.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: $(KUSTOMIZE) ## Remove the CRD. This fails while registrations exist.
	@$(call refuse-while-registered,uninstall)
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: manifests $(KUSTOMIZE) ## Install all manifests, with the manager's image IMG.
	@$(call kustomize-default) | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: $(KUSTOMIZE) ## Remove everything that deploy installed. This fails while registrations exist.
	@$(call refuse-while-registered,undeploy)
	@$(call kustomize-default) | $(KUBECTL) delete --ignore-not-found -f -

##@ Tools

.PHONY: tools
tools: $(CONTROLLER_GEN) $(GOLANGCI_LINT) $(KUSTOMIZE) $(GINKGO) $(HELM) $(PROMTOOL) ## Build the tools that the modules under test/tools pin.

.PHONY: tools-test
tools-test: $(CONTROLLER_GEN) $(KUSTOMIZE) $(GINKGO) # Those that make test needs.

$(CONTROLLER_GEN): PACKAGE = sigs.k8s.io/controller-tools/cmd/controller-gen
$(GOLANGCI_LINT): PACKAGE = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(KUSTOMIZE): PACKAGE = sigs.k8s.io/kustomize/kustomize/v5
$(GINKGO): PACKAGE = github.com/onsi/ginkgo/v2/ginkgo

$(CONTROLLER_GEN) $(GOLANGCI_LINT) $(KUSTOMIZE) $(GINKGO):
	@echo "tools: building $(@F) $(if $(filter golangci-lint,$(@F)),(the first time, this takes minutes))"
	@mkdir -p $(@D)
	@go -C test/tools build -o '$@.new' $(PACKAGE) && mv '$@.new' '$@'

$(HELM):
	@echo 'tools: building helm (the first time, this takes minutes)'
	@mkdir -p $(@D)
	@go -C test/tools/helm build -o '$@.new' helm.sh/helm/v4/cmd/helm && mv '$@.new' '$@'

$(GOVULNCHECK):
	@echo 'tools: building $(@F)'
	@mkdir -p $(@D)
	@go -C test/tools/vuln build -o '$@.new' golang.org/x/vuln/cmd/govulncheck && mv '$@.new' '$@'

# The tag excludes service discovery, whose many clients are not needed. This halves the build time.
$(PROMTOOL):
	@echo 'tools: building promtool (the first time, this takes minutes)'
	@mkdir -p $(@D)
	@go -C test/tools/promtool build -tags remove_all_sd -o '$@.new' github.com/prometheus/prometheus/cmd/promtool && mv '$@.new' '$@'

# $(call generate-deepcopy,directory)
define generate-deepcopy
$(CONTROLLER_GEN) object:headerFile=.boilerplate.go.txt paths=./api/... output:object:dir=$(1)
endef

# $(call generate-manifests,directory for the CRD,directory for the role)
define generate-manifests
$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=$(1); \
$(CONTROLLER_GEN) rbac:roleName=manager-role $(RBAC_PATHS) output:rbac:dir=$(2)
endef

# Builds config/default, with the image IMG if it is set, without writing to config/.
define kustomize-default
if [[ -n '$(IMG)' ]]; then \
	mkdir -p $(DIST)/overlay; \
	printf 'resources: [../../config/default]\nimages: [{name: "xylem", newName: "%s"%s}]\n' \
		"$$(sed -E 's/(@sha256:.*|:[^/:]*)$$//' <<<'$(IMG)')" \
		"$$(sed -nE 's/.*@(sha256:.*)$$/, digest: "\1"/p; t; s/.*:([^/:]*)$$/, newTag: "\1"/p' <<<'$(IMG)')" \
		> $(DIST)/overlay/kustomization.yaml; \
	$(KUSTOMIZE) build $(DIST)/overlay; \
else $(KUSTOMIZE) build config/default; fi
endef

# $(call refuse-while-registered,target): fails if registrations or volumes with Xylem's finalizer exist, because without
# a manager, nothing would deregister the clusters cleanly or remove the finalizer. It also fails if the API server does
# not respond or denies the request, because registrations may exist.
define refuse-while-registered
left=; crd=$$($(KUBECTL) get customresourcedefinitions clusterregistrations.cluster.xylem.io --ignore-not-found -o name); \
[[ -z $$crd ]] || left=$$($(KUBECTL) get clusterregistrations.cluster.xylem.io -o name); \
[[ -z $$left ]] || { printf '$(1): delete these registrations first, while the manager is still running to deregister their clusters:\n%s\n' "$$left" >&2; exit 1; }; \
waiting=$$($(KUBECTL) get persistentvolumes -o go-template='{{range .items}}{{$$name := .metadata.name}}{{range .metadata.finalizers}}{{if eq . "xylem.io/leaf-volume"}}{{$$name}}{{"\n"}}{{end}}{{end}}{{end}}'); \
[[ -z $$waiting ]] || { printf '$(1): these volumes still wait for Xylem; delete their claims, or annotate them xylem.io/abandon=true to keep their data:\n%s\n' "$$waiting" >&2; exit 1; }
endef
