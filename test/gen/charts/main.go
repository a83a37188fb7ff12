package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// chart defines how a chart is generated: its kustomization, and the objects that each template
// contains.
type chart struct {
	name, kustomization string
	// account is the ServiceAccount in the kustomization. accountValue is its name in the chart's
	// templates.
	account, accountValue string
	// accountPrefix is the prefix of the account's name in policies, if it differs from accountValue.
	accountPrefix string
	// values lists pairs: a literal in the kustomization, and the chart's value that replaces it.
	values    []string
	templates []template
	// rightsFile is the file for the account's permissions, if any.
	rightsFile string
	// narrowed is a rule that a value can restrict to some namespaces, or nil.
	narrowed *narrowed
}

var charts = []chart{
	{
		name: "xylem", kustomization: "config/default",
		account: "xylem-controller-manager", accountValue: "{{ .Values.serviceAccount.name }}",
		templates: []template{
			{file: "crds.yaml", kinds: []string{"CustomResourceDefinition"}, condition: ".Values.crds.enabled", keep: ".Values.crds.keep"},
			{file: "rbac.yaml", kinds: []string{"ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"}, condition: ".Values.rbac.create"},
			{file: "policies.yaml", kinds: []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}, without: "xylem-namespaces"},
			{file: "admitted-namespaces.yaml", kinds: []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}, only: "xylem-namespaces", condition: ".Values.namespaces.reject"},
			{
				file: "steering.yaml", from: "config/steering", kinds: []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
				condition: `and .Values.namespaces.steer (semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version)`,
			},
			{
				file: "keys.yaml", from: "config/keys", kinds: []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
				condition: `semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version`,
			},
			{file: "csidriver.yaml", kinds: []string{"CSIDriver"}},
		},
		rightsFile: "files/rights.yaml",
		narrowed: &narrowed{
			namespaces: ".Values.rbac.secretNamespaces",
			rule:       "- apiGroups:\n  - \"\"\n  resources:\n  - configmaps\n  - secrets\n  verbs:\n  - get\n",
			role:       "xylem-manager-secrets",
			line:       "  - secrets\n", condition: `eq $.Values.secrets.access "Cluster"`,
		},
	},
	{
		name: "xylem-member", kustomization: "config/member",
		account: "xylem", accountValue: `{{ include "xylem.account" . }}`, accountPrefix: "{{ .Values.serviceAccount.name }}",
		values: []string{
			`'["*"]'`, "{{ .Values.namespaces.allow | toJson | squote }}",
			`'["kube-*","*-system","openshift*","istio-*","cert-manager"]'`, "{{ .Values.namespaces.deny | toJson | squote }}",
		},
		templates: []template{
			{file: "rbac.yaml", kinds: []string{"ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"}},
			{file: "policies.yaml", kinds: []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}},
		},
	},
}

func main() {
	kustomize := flag.String("kustomize", "kustomize", "The kustomize binary that builds config/.")
	verify := flag.Bool("verify", false, "Write nothing; print differences from the generated files, and fail.")
	flag.Parse()
	if err := run(*kustomize, *verify); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

func run(kustomize string, verify bool) error {
	var stale []string
	for _, c := range charts {
		files, err := c.generate(kustomize)
		if err != nil {
			return fmt.Errorf("generate chart %s: %w", c.name, err)
		}
		for path, content := range files {
			before, err := os.ReadFile(path) //nolint:gosec // part of the repository
			if err == nil && bytes.Equal(before, content) {
				continue
			}
			stale = append(stale, path)
			if verify {
				continue
			}
			if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // part of the repository
				return err
			}
		}
	}
	slices.Sort(stale)
	if verify && len(stale) > 0 {
		return fmt.Errorf("out of date: %q; run make charts", stale)
	}
	return nil
}

// build returns the objects that a kustomization builds.
func build(kustomize, kustomization string) ([]map[string]any, error) {
	command := exec.Command(kustomize, "build", kustomization) //nolint:gosec // the caller's own choice
	command.Stderr = os.Stderr
	built, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", kustomization, err)
	}
	objects, err := split(built)
	if err != nil {
		return nil, fmt.Errorf("read the output of kustomize for %s: %w", kustomization, err)
	}
	return objects, nil
}

// generate returns the content of the chart's generated files, by path.
func (c chart) generate(kustomize string) (map[string][]byte, error) {
	objects, err := build(kustomize, c.kustomization)
	if err != nil {
		return nil, err
	}
	directory := filepath.Join("charts", c.name)
	files := map[string][]byte{}
	for _, t := range c.templates {
		from := objects
		if t.from != "" {
			if from, err = build(kustomize, t.from); err != nil {
				return nil, err
			}
		}
		if files[filepath.Join(directory, "templates", t.file)], err = c.render(t, from); err != nil {
			return nil, fmt.Errorf("%s: %w", t.file, err)
		}
	}
	rights, err := c.rights(objects)
	if err != nil {
		return nil, fmt.Errorf("find the permissions of %s: %w", c.account, err)
	}
	if c.rightsFile != "" {
		files[filepath.Join(directory, c.rightsFile)] = rights
	}
	for name, content := range map[string]func(string) ([]byte, error){"values.schema.json": schema, "README.md": readme} {
		if files[filepath.Join(directory, name)], err = content(directory); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}
