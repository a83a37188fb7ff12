package suite

import (
	"fmt"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// reportLimit is the maximum length in bytes of a repeated failure.
const reportLimit = 4096

// failures repeats all failures at the end of a suite, because their first report is thousands of
// lines earlier.
func failures(report types.Report) {
	for _, spec := range report.SpecReports.WithState(types.SpecStateFailureStates) {
		why := spec.Failure.Message
		if len(why) > reportLimit {
			why = why[:reportLimit] + " …"
		}
		fmt.Fprintf(os.Stdout, "\nFailed: %s\n  %s\n  %s\n", spec.FullText(), spec.Failure.Location, strings.ReplaceAll(why, "\n", "\n  "))
		for _, more := range spec.AdditionalFailures {
			fmt.Fprintf(os.Stdout, "  besides: %s\n", strings.SplitN(more.Failure.Message, "\n", 2)[0])
		}
	}
}
