package pods

import (
	"flag"
	"testing"

	"github.com/xylem-io/xylem/test/fault/mutation"
	"github.com/xylem-io/xylem/test/model/mutants"
)

var runMutants = flag.Bool("mutants", false, "add each of the model's mutants to root_pod, and check that the model finds it")

func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("takes half a minute for each mutant; run with -args -mutants")
	}
	mutants.Check(t, "../../..", mutation.Pods())
}
