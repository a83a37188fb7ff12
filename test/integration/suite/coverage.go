package suite

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/run/coverage"
)

// covers compares the table with the suite's stories: each row names one story of `make test`, and the
// table lists each Core story.
func covers(report types.Report) error {
	root, err := kubebin.Root()
	if err != nil {
		return err
	}
	rows, err := coverage.Read(root)
	if err != nil {
		return err
	}
	name := filepath.Base(report.SuitePath)
	rows = slices.DeleteFunc(rows, func(row coverage.Row) bool { return row.Suite != name })
	stories := report.SpecReports.WithLeafNodeType(types.NodeTypeIt)
	var wrong []error
	for _, row := range rows {
		found := slices.DeleteFunc(slices.Clone(stories), func(s types.SpecReport) bool { return !strings.Contains(s.FullText(), row.Story) })
		switch {
		case len(found) == 0:
			wrong = append(wrong, fmt.Errorf("%s: no story %q shows %q", coverage.Page, row.Story, row.What))
		case !slices.ContainsFunc(found, func(s types.SpecReport) bool { return tierOf(report, s) != Slow[0] }):
			wrong = append(wrong, fmt.Errorf("%s: story %q, which shows %q, is not in make test: label it suite.Core", coverage.Page, row.Story, row.What))
		}
	}
	for _, s := range stories {
		listed := slices.ContainsFunc(rows, func(row coverage.Row) bool { return strings.Contains(s.FullText(), row.Story) })
		if tierOf(report, s) == Core[0] && !listed {
			wrong = append(wrong, fmt.Errorf("%s: story %q is suite.Core, but the table does not say what it shows", coverage.Page, s.FullText()))
		}
	}
	return errors.Join(wrong...)
}
