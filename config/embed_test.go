package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMemberIsWholeAndInOrder(t *testing.T) {
	objects, err := Member()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, obj := range objects {
		kinds = append(kinds, obj.GetKind())
		if obj.GetName() == "" || obj.GetAPIVersion() == "" {
			t.Errorf("not an object: %v", obj.Object)
		}
	}
	limited := slices.Index(kinds, "ServiceAccount")
	for i, kind := range kinds {
		limits := kind == "Namespace" || strings.HasPrefix(kind, "ValidatingAdmissionPolicy")
		if limits != (i < limited) {
			t.Errorf("the account has to come after what limits it, and before its rights: %v", kinds)
		}
	}
	if kinds[0] != "Namespace" {
		t.Errorf("the namespace has to come first: %v", kinds)
	}
	// Every document of every file of the directory.
	files, err := filepath.Glob("member/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if kind, ok := strings.CutPrefix(line, "kind: "); ok {
				want = append(want, strings.TrimSpace(kind))
			}
		}
	}
	slices.Sort(kinds)
	slices.Sort(want)
	if !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
}
