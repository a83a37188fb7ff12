package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

func info(path, goVersion string, deps ...*debug.Module) *debug.BuildInfo {
	return &debug.BuildInfo{
		GoVersion: goVersion, Path: path, Main: debug.Module{Path: "example.org/product", Version: "(devel)"}, Deps: deps,
	}
}

func TestDescribe(t *testing.T) {
	shared := &debug.Module{Path: "example.org/shared", Version: "v1.2.3", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}
	replaced := &debug.Module{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0"}}
	bom, err := describe([]*debug.BuildInfo{info("one", "go1.26.1", shared), info("two", "go1.26.1", replaced, shared)}, "v0.1.0", "Apache-2.0")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, c := range *bom.Components {
		found = append(found, c.PackageURL)
	}
	want := []string{"pkg:golang/example.org/new@v2.0.0", "pkg:golang/example.org/shared@v1.2.3", "pkg:golang/std@1.26.1"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	hashes := (*bom.Components)[1].Hashes
	if diff := cmp.Diff(&[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}}, hashes); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
	if got := bom.Metadata.Component.PackageURL; got != "pkg:golang/example.org/product@v0.1.0" {
		t.Errorf("the product is %s, want pkg:golang/example.org/product@v0.1.0", got)
	}
	if bom.SerialNumber != "" || bom.Metadata.Timestamp != "" {
		t.Errorf("the output has serial number %q and time %q, want neither", bom.SerialNumber, bom.Metadata.Timestamp)
	}
}

func TestDescribeRefuses(t *testing.T) {
	cases := map[string][]*debug.BuildInfo{
		"two versions of Go":  {info("one", "go1.26.1"), info("two", "go1.26.2")},
		"an invalid checksum": {info("one", "go1.26.1", &debug.Module{Path: "a", Version: "v1", Sum: "h1:?"})},
	}
	for name, infos := range cases {
		if _, err := describe(infos, "", ""); err == nil {
			t.Errorf("describe accepted %s", name)
		}
	}
}

func TestRunOnRealBinaries(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "sbom.json")
	if err := run(to, "v1", "Apache-2.0", []string{self}); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(first), "pkg:golang/github.com/CycloneDX/cyclonedx-go@") {
		t.Errorf("the output lacks a module that is linked into the binary:\n%s", first)
	}
	if err := run(to, "v1", "Apache-2.0", []string{self}); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(to); err != nil || string(second) != string(first) {
		t.Errorf("the second run wrote a different result (error %v)", err)
	}
	if err := run(to, "v1", "Apache-2.0", nil); err == nil {
		t.Error("an empty list of binaries was accepted")
	}
	if err := run(to, "v1", "Apache-2.0", []string{to}); err == nil {
		t.Error("a file that is not a binary was accepted")
	}
}
