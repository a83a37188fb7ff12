package config_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Samples can run anywhere, because their images are in Docker's own library.
func TestSamplesNeedNoPrivateRegistry(t *testing.T) {
	files, err := filepath.Glob("samples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	images := 0
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			_, image, found := strings.Cut(strings.TrimLeft(lines.Text(), " -"), "image: ")
			if !found {
				continue
			}
			images++
			if image = strings.TrimPrefix(image, "docker.io/library/"); strings.Contains(image, "/") {
				t.Errorf("%s: image %q is not in Docker's library", name, image)
			}
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	if images == 0 {
		t.Error("no sample has an image")
	}
}
