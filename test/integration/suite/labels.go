package suite

import (
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// Slow marks stories that `make test` omits because they cost more than a quick story may (cost.go).
// Core marks slow stories that it runs nevertheless, because they show a capability or an invariant that
// no quick story shows: .github/CONTRIBUTING.md lists them.
var (
	Slow = ginkgo.Label("slow")
	Core = ginkgo.Label("core")
)

// tierEnv is the environment variable with the tier of stories to run: tierQuick for `make test`,
// tierRest for what `make test-all` runs after that. If it is empty, all stories run.
const tierEnv = "XYLEM_TIER"

const (
	tierQuick = "quick"
	tierRest  = "rest"
)

// Rest reports whether this run continues one of `make test`.
func Rest() bool { return os.Getenv(tierEnv) == tierRest }

// filters are the label filters of the tiers. Together, they select each story once.
var filters = map[string]string{tierQuick: "!slow || core", tierRest: "slow && !core"}

// Whole reports whether the suite runs all stories or, after `make test`, all others.
func Whole(config types.SuiteConfig) bool {
	return os.Getenv(tierEnv) != tierQuick &&
		len(config.FocusStrings)+len(config.SkipStrings)+len(config.FocusFiles)+len(config.SkipFiles) == 0
}
