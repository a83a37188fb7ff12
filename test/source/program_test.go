package source

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
)

// loaded type-checks the product once for all proofs, because this takes longer than the proofs.
var loaded = sync.OnceValues(func() (*program, error) {
	return load(context.Background(), "./api/...", "./cmd/...", "./internal/...")
})

// product returns the product's source.
func product(t *testing.T) *program {
	t.Helper()
	p, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// productWith returns the product's source and a package in testdata that violates a rule.
func productWith(t *testing.T, violation string) *program {
	t.Helper()
	p, err := product(t).with(filepath.Join("testdata", violation))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
