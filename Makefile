# Everything is built from Go modules, checked against go.sum: no prebuilt
# programs are downloaded. `make help` lists the targets.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Image of the manager, and the image that it is put on, which is pulled from its
# registry; scratch needs none.
IMG ?=
IMAGE := $(or $(IMG),xylem:dev)
BASE ?= scratch
CONTAINER_TOOL ?= docker
# The cluster that install, deploy and run work on is kubectl's current one.
KUBECTL ?= kubectl
# Architecture of the image's binary, and those of a release's images.
ARCH ?= $(shell go env GOARCH)
ARCHS ?= amd64 arm64
# Version of a release, and the platforms that its kubectl plugin is for.
VERSION ?= $(shell sed -n 's/^appVersion: //p' charts/xylem/Chart.yaml)
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# How long each fuzz target runs, and the limits of the test runs.
FUZZTIME ?= 10s
UNIT_TIMEOUT ?= 10m
INTEGRATION_TIMEOUT ?= 60m
INTEGRATION_PACKAGES ?= 2
# Where the end-to-end stories run: kind, or controlplane; and for how long at most.
E2E_PROVIDER ?= kind
E2E_TIMEOUT ?= 90m
# Flags of go run ./test/fault enumerate, such as FAULT_FLAGS='--rigs 6 --scenario delete'.
FAULT_FLAGS ?=
# Flags of go run ./test/versions, such as VERSIONS_FLAGS='--only upgrade'.
VERSIONS_FLAGS ?=
# Flags and scenarios of go run ./test/bench, such as BENCH_FLAGS='--repeats 5 latency burst'.
BENCH_FLAGS ?=
# More flags for go test, such as TESTFLAGS='-run TestX -count=1'.
TESTFLAGS ?=

BIN := $(CURDIR)/bin
DIST := $(CURDIR)/dist
# Static, and the same bytes wherever it is built.
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w -buildid= -X github.com/xylem-io/xylem/internal/cli/command.Version=$(VERSION)'

# The tools that test/tools/go.mod pins, built once per version of it and of Go,
# outside of the clone, so that a fresh clone does not build them again.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/xylem
TOOLS_KEY := $(shell (go env GOVERSION; cat test/tools/go.mod test/tools/go.sum) | cksum | cut -d' ' -f1)
TOOLS := $(CACHE)/tools-$(TOOLS_KEY)
CONTROLLER_GEN := $(TOOLS)/controller-gen
GOLANGCI_LINT := $(TOOLS)/golangci-lint
KUSTOMIZE := $(TOOLS)/kustomize
GINKGO := $(TOOLS)/ginkgo
# Tools whose dependencies do not go together with the others' have modules of their own.
tool-key = $(shell (go env GOVERSION; cat test/tools/$(1)/go.mod test/tools/$(1)/go.sum) | cksum | cut -d' ' -f1)
HELM := $(CACHE)/helm-$(call tool-key,helm)/helm
PROMTOOL := $(CACHE)/promtool-$(call tool-key,promtool)/promtool
GOVULNCHECK := $(CACHE)/vuln-$(call tool-key,vuln)/govulncheck
VULNDB ?=

# Directories with Go code of the product, and with tests on real clusters.
GO_DIRS := $(wildcard api cmd internal test)
# The longest first: two packages are tested at a time, which wait more than they
# compute.
ON_CLUSTERS := test/integration test/controlplane test/fault test/charts test/docs
INTEGRATION := $(foreach d,$(wildcard test/integration/stories $(ON_CLUSTERS)),./$(d)/...)
# Everything else but modules of their own: no test is left out because nobody named its
# directory.
UNIT := $(foreach d,$(wildcard api internal cmd) $(filter-out $(ON_CLUSTERS),$(patsubst %/,%,$(wildcard test/*/))),$(if $(wildcard $(d)/go.mod),,./$(d)/...))
RBAC_PATHS := $(foreach d,$(wildcard internal cmd),paths=./$(d)/...)
# The only directories that the root of the repository may hold.
LAYOUT := api charts cmd config internal test bin dist
# Every kustomization.
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
generate: $(CONTROLLER_GEN) ## Generate the deepcopy code of the API types, and the pages of reasons and metrics.
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
lint: $(GOLANGCI_LINT) ## Run the linters of .golangci.yml.
	$(GOLANGCI_LINT) run

.PHONY: lint-fix
lint-fix: $(GOLANGCI_LINT) ## Run the linters and fix what they can fix.
	$(GOLANGCI_LINT) run --fix

.PHONY: verify
verify: verify-generated verify-format verify-modules verify-layout verify-kustomize verify-charts verify-docs ## Check that what is generated, formatted and laid out is as it should be; changes nothing.

.PHONY: verify-generated
verify-generated: $(CONTROLLER_GEN)
	@echo 'verify: deepcopy code, CRD and RBAC are as generated'
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
	@echo 'verify: no directory at the root that does not belong there'
	@for d in */; do d=$${d%/}; \
		[[ " $(LAYOUT) " == *" $$d "* ]] || { echo "verify: $$d/ does not belong at the root; there may be: $(LAYOUT)" >&2; exit 1; }; done

.PHONY: verify-kustomize
verify-kustomize: $(KUSTOMIZE)
	@echo 'verify: every kustomization builds'
	@for k in $(KUSTOMIZATIONS); do \
		$(KUSTOMIZE) build "$$k" >/dev/null || { echo "verify: $$k does not build" >&2; exit 1; }; done

.PHONY: verify-charts
verify-charts: $(KUSTOMIZE) $(HELM)
	@echo 'verify: charts are as generated, and lint'
	@go run ./test/gen/charts --kustomize $(KUSTOMIZE) --verify
	@$(HELM) lint --strict --quiet charts/*

.PHONY: verify-docs
verify-docs:
	@echo 'verify: the pages of reasons and metrics, and the pictures, are as generated'
	@go run ./test/gen/docs --verify
	@go run ./test/gen/pictures --verify

##@ Tests

.PHONY: test
test: verify vet lint test-unit kube test-integration ## Run every check and test; builds the cluster programs if they are missing.

.PHONY: test-unit
test-unit: ## Run the unit tests.
	go test -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) $(UNIT)
	go -C test/charts/dashboard test -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) ./board

.PHONY: test-integration
test-integration: kube build $(HELM) $(PROMTOOL) ## Run the tests on real control planes.
	KUBE_CACHE_MUTATION_DETECTOR=true HELM=$(HELM) PROMTOOL=$(PROMTOOL) go test -p $(INTEGRATION_PACKAGES) -v -timeout $(INTEGRATION_TIMEOUT) $(TESTFLAGS) $(INTEGRATION)

# Not part of make test: the programs of the other versions take as long to build as those of make kube.
.PHONY: test-versions
test-versions: kube kube-versions ## Tell stories on older versions of Kubernetes in host and members, and upgrade them under load; not part of make test (VERSIONS_FLAGS).
	KUBE_CACHE_MUTATION_DETECTOR=true go run ./test/versions --out '$(DIST)/versions' $(VERSIONS_FLAGS)

.PHONY: test-fault
test-fault: kube ## Kill the manager at every write of every scenario, both ways, and let every write fail; at most an hour (FAULT_FLAGS).
	go run ./test/fault enumerate $(FAULT_FLAGS)

.PHONY: test-mutants
test-mutants: kube ## Put known defects into the manager, one at a time, and see that the fault harness or the model finds each; about 30 minutes.
	go run ./test/fault mutants
	go test ./test/model/... -run '^TestMutants$$' -timeout 60m -v -args -mutants

.PHONY: test-e2e
test-e2e: image build kube $(HELM) ## Tell the end-to-end stories on kind, or with E2E_PROVIDER=controlplane on loopback; see test/e2e/README.md.
	HELM='$(HELM)' KUBECTL="$$(go run ./test/controlplane/cmd/kubebuild --print-dir)/kubectl" IMG='$(IMAGE)' E2E_PROVIDER=$(E2E_PROVIDER) \
		go test -count=1 -v -timeout $(E2E_TIMEOUT) $(TESTFLAGS) ./test/e2e -ginkgo.v -ginkgo.no-color

.PHONY: setup-test-e2e
setup-test-e2e: image kube ## Start the kind clusters of the end-to-end tests, and leave them for work by hand; KIND_NODE_IMAGE names another node image.
	@go run ./test/e2e/cmd/clusters up

.PHONY: cleanup-test-e2e
cleanup-test-e2e: ## Remove the kind clusters of the end-to-end tests.
	@go run ./test/e2e/cmd/clusters down

.PHONY: kind-node-image
kind-node-image: ## Build a node image for kind with no registry, from Debian packages and Go modules; needs root, debootstrap and Docker.
	go run ./test/e2e/nodeimage

.PHONY: bench
bench: kube ## Measure Xylem beside its yardsticks, into dist/bench; an hour or more (BENCH_FLAGS).
	go run ./test/bench --out '$(DIST)/bench' $(BENCH_FLAGS)
	go -C test/bench/plot run . '$(DIST)/bench'

.PHONY: bench-quick
bench-quick: kube ## The same with small sizes, in less than three minutes; its figures say little.
	go run ./test/bench --quick --out '$(DIST)/bench-quick'
	go -C test/bench/plot run . '$(DIST)/bench-quick'

# Flags as for promtool, so that what is compiled of Prometheus serves both.
.PHONY: dashboard
dashboard: kube ## Draw the chart's dashboard from the metrics of managers that have work and troubles, into charts/xylem; about ten minutes.
	@mkdir -p $(DIST)
	CGO_ENABLED=0 go -C test/charts/dashboard test -trimpath -tags remove_all_sd ./...
	CGO_ENABLED=0 go -C test/charts/dashboard build -trimpath -tags remove_all_sd -o '$(DIST)/dashboard' .
	go run ./test/charts/workload '$(DIST)/dashboard' --out=charts/xylem/dashboard.png

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 10s).
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $(wildcard api internal cmd) | \
	while IFS=: read -r file func; do \
		echo "fuzz: $${func#func } in $$(dirname "$$file") for $(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")"; \
	done

.PHONY: kube
kube: ## Build the programs that loopback clusters are made of, once, into the user's cache.
	go run ./test/controlplane/cmd/kubebuild

.PHONY: kube-versions
kube-versions: ## Build the control planes of the older versions of Kubernetes that test/kube pins, for test-versions; 10 minutes or more.
	go run ./test/controlplane/cmd/kubebuild --kubernetes all

.PHONY: kube-demo
kube-demo: # Without what only attachment needs: the demo does not wait for it.
	@go run ./test/controlplane/cmd/kubebuild --core snapshot-controller csi-snapshotter

.PHONY: demo
demo: kube-demo build ## Host and two members on loopback, seed 001's example on them; DEMO_EXIT=1 ends it after its checks.
	@echo 'demo: compiling it (the first time this takes a minute or two)'
	@go run ./test/demo

.PHONY: demo-recording
demo-recording: ## Run the demo, and draw the README's picture of a terminal from what it prints.
	@mkdir -p $(DIST)
	DEMO_EXIT=1 DEMO_RECORD='$(DIST)/demo.txt' $(MAKE) --no-print-directory demo
	@go run ./test/gen/pictures --recording '$(DIST)/demo.txt'

.PHONY: pictures
pictures: ## Draw the pictures in .github/images from their sources.
	@go run ./test/gen/pictures

##@ Build

.PHONY: build
build: ## Build every command into bin/.
	@mkdir -p $(BIN)
	@for c in $(notdir $(wildcard cmd/*)); do echo "build: bin/$$c (the first time this takes a minute or two)"; $(GO_BUILD) -o "$(BIN)/$$c" "./cmd/$$c"; done

.PHONY: run
run: manifests generate ## Run the manager here, against kubectl's current cluster.
	go run ./cmd/manager

.PHONY: image
image: ## Pack the image IMG (default xylem:dev), on BASE if given, into dist/image.tar, with no engine or registry; the same sources, the same digest.
	@mkdir -p $(BIN) $(DIST)
	GOOS=linux GOARCH=$(ARCH) $(GO_BUILD) -o $(BIN)/linux-$(ARCH)/manager ./cmd/manager
	@go run ./test/image/cmd/image --binary $(BIN)/linux-$(ARCH)/manager --licence LICENSE --tag '$(IMAGE)' --base '$(BASE)' --arch $(ARCH) --to $(DIST)/image.tar

# PUSH=true pushes the index to IMG's registry as well, with the credentials of docker login.
.PHONY: image-index
image-index: ## Pack the image IMG for ARCHS into dist/image-ARCH.tar, and one index of them (OCI layout) into dist/image; PUSH=true pushes it.
	@for arch in $(ARCHS); do \
		$(MAKE) --no-print-directory image ARCH=$$arch; mv '$(DIST)/image.tar' "$(DIST)/image-$$arch.tar"; done
	@go run ./test/image/cmd/index --to '$(DIST)/image' $(if $(PUSH),--push '$(IMAGE)') $(foreach a,$(ARCHS),'$(DIST)/image-$(a).tar') > '$(DIST)/image.digest'
	@echo "image-index: $(IMAGE)@$$(cat '$(DIST)/image.digest')$(if $(PUSH), pushed,, in dist/image)"

.PHONY: plugin
plugin: ## Pack the kubectl plugin of VERSION for PLUGIN_PLATFORMS, and its krew manifest, into dist/plugin.
	@rm -rf '$(BIN)/plugin' '$(DIST)/plugin'; mkdir -p '$(DIST)/plugin'
	@for p in $(PLUGIN_PLATFORMS); do \
		os=$${p%/*}; arch=$${p#*/}; ext=; [[ $$os != windows ]] || ext=.exe; \
		echo "plugin: $$p"; GOOS=$$os GOARCH=$$arch $(GO_BUILD) -o "$(BIN)/plugin/$$os-$$arch/kubectl-xylem$$ext" ./cmd/kubectl-xylem; done
	@go run ./test/image/cmd/plugin --from '$(BIN)/plugin' --to '$(DIST)/plugin' --version '$(VERSION)'

.PHONY: docker-build
docker-build: image ## Pack the image and load it into CONTAINER_TOOL (default docker).
	@command -v $(CONTAINER_TOOL) >/dev/null || { echo 'docker-build: there is no $(CONTAINER_TOOL) here; the image is in dist/image.tar all the same' >&2; exit 1; }
	@$(CONTAINER_TOOL) info >/dev/null 2>&1 || { echo 'docker-build: $(CONTAINER_TOOL) is installed, but its engine does not answer: start it; the image is in dist/image.tar' >&2; exit 1; }
	$(CONTAINER_TOOL) load --input $(DIST)/image.tar

.PHONY: sbom
sbom: build ## Write a bill of materials (CycloneDX) of what was compiled into the commands, dist/sbom.cdx.json.
	@mkdir -p $(DIST)
	@go run ./test/image/cmd/sbom --to $(DIST)/sbom.cdx.json $(foreach c,$(notdir $(wildcard cmd/*)),$(BIN)/$(c))

# govulncheck ends with 3 if it found something, and with 1 if it could not look.
.PHONY: govulncheck
govulncheck: $(GOVULNCHECK) ## Look for known vulnerabilities that the code can reach, in the database VULNDB (default: the Go project's); writes dist/govulncheck.txt.
	@mkdir -p $(DIST)
	@rc=0; $(GOVULNCHECK) $(if $(VULNDB),-db '$(VULNDB)') -show version ./api/... ./cmd/... ./internal/... >$(DIST)/govulncheck.txt 2>&1 || rc=$$?; \
	cat $(DIST)/govulncheck.txt; \
	case $$rc in 0) ;; \
	3) echo 'govulncheck: the code can reach known vulnerabilities: see above. Update the modules' >&2 ;; \
	*) echo 'govulncheck: nothing was checked: see above. If the database $(or $(VULNDB),https://vuln.go.dev) cannot be reached, give a copy of it: VULNDB=file:///path (https://go.dev/doc/security/vuln/database)' >&2; \
		rm -f $(DIST)/govulncheck.txt ;; esac; exit $$rc

# One after another, and first what can fail for a reason outside of the code: without
# an answer from the vulnerability database there is no release.
.PHONY: release
release: $(HELM) ## Make everything that is published of IMG and VERSION, in dist/release: images, charts, installer, plugin, SBOM, vulnerability check, checksums.
	@[[ -n '$(IMG)' ]] || { echo 'release: name the image: IMG=registry.example/xylem:$(VERSION)' >&2; exit 1; }
	@rm -rf '$(DIST)/release'
	@for target in govulncheck verify image-index sbom plugin build-installer; do \
		$(MAKE) --no-print-directory "$$target" || { echo "release: $$target failed: there is no release" >&2; exit 1; }; done
	@mkdir -p '$(DIST)/release'
	@cp $(foreach f,$(foreach a,$(ARCHS),image-$(a).tar) image.digest sbom.cdx.json install.yaml govulncheck.txt,'$(DIST)/$(f)') '$(DIST)'/plugin/* '$(DIST)/release/'
	@$(HELM) package --version '$(patsubst v%,%,$(VERSION))' --app-version '$(VERSION)' --destination '$(DIST)/release' charts/*
	@cd '$(DIST)/release' && sha256sum -- * > SHA256SUMS && cat SHA256SUMS

.PHONY: docker-push
docker-push: ## Push the image IMG to its registry.
	$(CONTAINER_TOOL) push $(IMAGE)

.PHONY: build-installer
build-installer: manifests $(KUSTOMIZE) ## Write everything that the host needs into dist/install.yaml.
	@mkdir -p $(DIST)
	@$(call kustomize-default) > $(DIST)/install.yaml
	@echo 'build-installer: dist/install.yaml, with image $(IMAGE)'

##@ Deployment

.PHONY: install
install: manifests $(KUSTOMIZE) ## Install the CRD.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: $(KUSTOMIZE) ## Remove the CRD. Refuses while there are registrations.
	@$(call refuse-while-registered,uninstall)
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: manifests $(KUSTOMIZE) ## Install everything, with the manager's image IMG.
	@$(call kustomize-default) | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: $(KUSTOMIZE) ## Remove everything that deploy installed. Refuses while there are registrations.
	@$(call refuse-while-registered,undeploy)
	@$(call kustomize-default) | $(KUBECTL) delete --ignore-not-found -f -

##@ Tools

.PHONY: tools
tools: $(CONTROLLER_GEN) $(GOLANGCI_LINT) $(KUSTOMIZE) $(GINKGO) $(HELM) $(PROMTOOL) ## Build the tools that the modules under test/tools pin.

$(CONTROLLER_GEN): PACKAGE = sigs.k8s.io/controller-tools/cmd/controller-gen
$(GOLANGCI_LINT): PACKAGE = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(KUSTOMIZE): PACKAGE = sigs.k8s.io/kustomize/kustomize/v5
$(GINKGO): PACKAGE = github.com/onsi/ginkgo/v2/ginkgo

$(CONTROLLER_GEN) $(GOLANGCI_LINT) $(KUSTOMIZE) $(GINKGO):
	@echo "tools: building $(@F) (minutes for golangci-lint, the first time)"
	@mkdir -p $(@D)
	@CGO_ENABLED=0 go -C test/tools build -trimpath -o '$@.new' $(PACKAGE) && mv '$@.new' '$@'

$(HELM):
	@echo 'tools: building helm (minutes, the first time)'
	@mkdir -p $(@D)
	@CGO_ENABLED=0 go -C test/tools/helm build -trimpath -o '$@.new' helm.sh/helm/v4/cmd/helm && mv '$@.new' '$@'

$(GOVULNCHECK):
	@echo 'tools: building $(@F)'
	@mkdir -p $(@D)
	@CGO_ENABLED=0 go -C test/tools/vuln build -trimpath -o '$@.new' golang.org/x/vuln/cmd/govulncheck && mv '$@.new' '$@'

# Without service discovery, whose many clients nobody here needs, it is built in
# half the time.
$(PROMTOOL):
	@echo 'tools: building promtool (minutes, the first time)'
	@mkdir -p $(@D)
	@CGO_ENABLED=0 go -C test/tools/promtool build -trimpath -tags remove_all_sd -o '$@.new' github.com/prometheus/prometheus/cmd/promtool && mv '$@.new' '$@'

# $(call generate-deepcopy,directory)
define generate-deepcopy
$(CONTROLLER_GEN) object:headerFile=.boilerplate.go.txt paths=./api/... output:object:dir=$(1)
endef

# $(call generate-manifests,directory of the CRD,directory of the role)
define generate-manifests
$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=$(1); \
$(CONTROLLER_GEN) rbac:roleName=manager-role $(RBAC_PATHS) output:rbac:dir=$(2)
endef

# config/default with the image IMG if one was named, without writing to config/.
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

# $(call refuse-while-registered,target): without a manager nobody would leave the
# clusters in order, or take Xylem's finalizer off volumes. An API server that does
# not answer, or may not tell, has not said that there are none.
define refuse-while-registered
left=; crd=$$($(KUBECTL) get customresourcedefinitions clusterregistrations.cluster.xylem.io --ignore-not-found -o name); \
[[ -z $$crd ]] || left=$$($(KUBECTL) get clusterregistrations.cluster.xylem.io -o name); \
[[ -z $$left ]] || { printf '$(1): delete these first, while the manager can still leave their clusters in order:\n%s\n' "$$left" >&2; exit 1; }; \
waiting=$$($(KUBECTL) get persistentvolumes -o go-template='{{range .items}}{{$$name := .metadata.name}}{{range .metadata.finalizers}}{{if eq . "xylem.io/leaf-volume"}}{{$$name}}{{"\n"}}{{end}}{{end}}{{end}}'); \
[[ -z $$waiting ]] || { printf '$(1): these volumes still wait for Xylem; delete their claims, or annotate them xylem.io/abandon=true to have their data kept:\n%s\n' "$$waiting" >&2; exit 1; }
endef
