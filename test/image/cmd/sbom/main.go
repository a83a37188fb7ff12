// Command sbom writes a software bill of materials (CycloneDX, JSON) that lists the modules in Go
// binaries. The binaries contain this information. The output does not contain a time or a serial
// number, so the same binaries always result in the same bytes.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	to := flag.String("to", "dist/sbom.cdx.json", "file to write")
	version := flag.String("version", "", "version of the product; a binary that is built from a clone does not contain it")
	licence := flag.String("licence", "Apache-2.0", "license of the product")
	flag.Parse()
	if err := run(*to, *version, *licence, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(to, version, licence string, binaries []string) error {
	if len(binaries) == 0 {
		return fmt.Errorf("missing arguments: name the binaries to describe")
	}
	var infos []*debug.BuildInfo
	for _, path := range binaries {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the build information of %s: %w", path, err)
		}
		infos = append(infos, info)
	}
	bom, err := describe(infos, version, licence)
	if err != nil {
		return err
	}
	out, err := os.Create(to) //nolint:gosec // As asked for.
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	defer out.Close() //nolint:errcheck // Synced below.
	if err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	if err := out.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	fmt.Printf("sbom: %s, %d modules in %s\n", to, len(*bom.Components), strings.Join(bases(binaries), ", "))
	return nil
}

func bases(paths []string) []string {
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// describe lists every module in the binaries once. The binaries must have the same main module
// and Go version.
func describe(infos []*debug.BuildInfo, version, licence string) (*cdx.BOM, error) {
	main := infos[0].Main
	if version == "" {
		version = main.Version
	}
	product := component(cdx.ComponentTypeApplication, debug.Module{Path: main.Path, Version: version})
	product.Licenses = &cdx.Licenses{{License: &cdx.License{ID: licence}}}

	goVersion := strings.TrimPrefix(infos[0].GoVersion, "go")
	modules := map[string]cdx.Component{"std": component(cdx.ComponentTypeLibrary, debug.Module{Path: "std", Version: goVersion})}
	for _, info := range infos {
		if info.Main.Path != main.Path || strings.TrimPrefix(info.GoVersion, "go") != goVersion {
			return nil, fmt.Errorf("%s was built from %s with %s, and %s with %s: they are not the same product", info.Path, info.Main.Path, info.GoVersion, infos[0].Path, infos[0].GoVersion)
		}
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			c := component(cdx.ComponentTypeLibrary, *dep)
			if hash, err := sum(dep.Sum); err != nil {
				return nil, fmt.Errorf("read the checksum of %s: %w", dep.Path, err)
			} else if hash != "" {
				c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hash}}
			}
			modules[c.BOMRef] = c
		}
	}
	components := make([]cdx.Component, 0, len(modules))
	for _, c := range modules {
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	refs := make([]string, 0, len(components))
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &product}
	bom.Components = &components
	// A binary does not contain the dependencies between modules.
	bom.Dependencies = &[]cdx.Dependency{{Ref: product.BOMRef, Dependencies: &refs}}
	return bom, nil
}

func component(kind cdx.ComponentType, m debug.Module) cdx.Component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	return cdx.Component{Type: kind, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url, Scope: scope(kind)}
}

func scope(kind cdx.ComponentType) cdx.Scope {
	if kind == cdx.ComponentTypeLibrary {
		return cdx.ScopeRequired
	}
	return ""
}

// sum converts a checksum from go.sum's format to CycloneDX's.
func sum(h1 string) (string, error) {
	encoded, found := strings.CutPrefix(h1, "h1:")
	if !found {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(raw), nil
}
