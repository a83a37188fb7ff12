package suite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/xylem-io/xylem/test/run/reports"
)

// reportLimit is the maximum length in bytes of a repeated failure, and logLimit of a story's log.
const (
	reportLimit = 4096
	logLimit    = 64 << 10
)

// Reported makes a suite report what it ran and what failed. Call it at the top level of the suite.
func Reported() bool {
	return ginkgo.ReportAfterSuite("report", func(report types.Report) {
		if report.PreRunStats.SpecsThatWillRun == 0 {
			return
		}
		failures(os.Stdout, report)
		gomega.Expect(toRun(report)).To(gomega.Succeed())
		gomega.Expect(costs(report)).To(gomega.Succeed())
		gomega.Expect(covers(report)).To(gomega.Succeed())
	})
}

// failures repeats all failures at the end of a suite, because their first report is thousands of
// lines earlier.
func failures(out io.Writer, report types.Report) {
	for _, spec := range report.SpecReports.WithState(types.SpecStateFailureStates) {
		failure(out, spec)
	}
}

func failure(out io.Writer, spec types.SpecReport) {
	why := spec.Failure.Message
	if len(why) > reportLimit {
		why = why[:reportLimit] + " …"
	}
	fmt.Fprintf(out, "\nFailed: %s\n  %s\n  %s\n", spec.FullText(), spec.Failure.Location, strings.ReplaceAll(why, "\n", "\n  "))
	for _, more := range spec.AdditionalFailures {
		fmt.Fprintf(out, "  besides: %s\n", strings.SplitN(more.Failure.Message, "\n", 2)[0])
	}
}

// toRun reports to test/run, if that runs the suite.
func toRun(report types.Report) error {
	name := filepath.Base(report.SuitePath)
	passed := report.SpecReports.WithLeafNodeType(types.NodeTypeIt).CountWithState(types.SpecStatePassed)
	errs := []error{reports.Passed(name, passed, report.PreRunStats.SpecsThatWillRun)}
	for i, spec := range report.SpecReports.WithState(types.SpecStateFailureStates) {
		var log strings.Builder
		failure(&log, spec)
		// The end of the log is what the story dumped when it failed.
		output := spec.CapturedGinkgoWriterOutput
		log.WriteString(output[max(0, len(output)-logLimit):])
		errs = append(errs, reports.Failed(name, i, log.String()))
	}
	for i, spec := range report.SpecReports.WithState(types.SpecStatePassed) {
		if spec.NumAttempts > 1 {
			first := spec
			if len(spec.AdditionalFailures) > 0 {
				first.Failure, first.AdditionalFailures = spec.AdditionalFailures[0].Failure, nil
			}
			var log strings.Builder
			failure(&log, first)
			output := spec.CapturedGinkgoWriterOutput
			log.WriteString(output[max(0, len(output)-logLimit):])
			errs = append(errs, reports.Repeated(name+os.Getenv(tierEnv), i, log.String()))
		}
	}
	return errors.Join(errs...)
}
