package model

import (
	"cmp"
	"flag"
	"testing"

	"github.com/xylem-io/xylem/test/fault/mutation"
	"github.com/xylem-io/xylem/test/model/mutants"
)

var runMutants = flag.Bool("mutants", false, "add each of the model's mutants to the controllers, and check that the model finds it (takes a minute each)")

func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("takes a minute for each mutant; run with -args -mutants")
	}
	var runs [][]string
	for _, n := range []string{"1", "2", "3", "4"} {
		runs = append(runs, []string{"-disruptions", n, "-fewer", n, "-promised", n, "-cloned", n, "-restores", n, "-spread", n})
	}
	mutants.Check(t, "../..", mutation.Model(), func(m mutation.Mutation) string { return cmp.Or(m.Check, "TestCheck") }, runs...)
}
