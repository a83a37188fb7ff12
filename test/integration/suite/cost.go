package suite

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/xylem-io/xylem/test/machine"
)

// Costs are CPU time, because stories mostly wait. They are compared with the cost of starting the
// suite's clusters in the same run, so that the limits hold on any machine, at any load.
const (
	// storyLimit is the most that a quick story should cost. A dearer one should be Slow.
	storyLimit = 0.5
	// tierLimit is the most that a suite's quick stories may cost together, without the Core stories. They
	// cost 14 starts if three processes start their clusters at once, and up to 27 if one does it alone.
	tierLimit = 35
	// dearest is how many stories the report lists.
	dearest = 10
	// costEntry is the name of the report entry with a node's CPU seconds.
	costEntry = "CPU seconds"
)

// spent returns the CPU seconds that this process and its descendants have used, including those that
// have ended and were waited for.
func spent() float64 {
	all := machine.Processes()
	var total time.Duration
	for pid, process := range all {
		for p := pid; p > 1; p = all[p].Parent {
			if p == os.Getpid() {
				total += process.CPU
				break
			}
		}
	}
	return total.Seconds()
}

// measured adds the CPU seconds since the beginning to the current node's report.
func measured(beginning float64) {
	ginkgo.AddReportEntry(costEntry, strconv.FormatFloat(spent()-beginning, 'f', 2, 64), ginkgo.ReportEntryVisibilityNever)
}

func costOf(report types.SpecReport) float64 {
	total := 0.0
	for _, entry := range report.ReportEntries {
		if entry.Name == costEntry {
			seconds, _ := strconv.ParseFloat(entry.StringRepresentation(), 64)
			total += seconds
		}
	}
	return total
}

// costs prints what the tiers and the dearest stories cost, and returns an error if the quick stories
// exceed their budget.
func costs(report types.Report) error {
	var starts []float64
	for _, node := range report.SpecReports.WithLeafNodeType(types.NodeTypeBeforeSuite | types.NodeTypeSynchronizedBeforeSuite) {
		if cost := costOf(node); cost > 0 {
			starts = append(starts, cost)
		}
	}
	stories := slices.DeleteFunc(report.SpecReports.WithLeafNodeType(types.NodeTypeIt), func(s types.SpecReport) bool { return s.RunTime == 0 || costOf(s) == 0 })
	if len(starts) == 0 || len(stories) == 0 {
		return nil
	}
	start := slices.Min(starts)
	total, number := map[string]float64{}, map[string]int{}
	for _, s := range stories {
		total[tierOf(report, s)] += costOf(s)
		number[tierOf(report, s)]++
	}
	fmt.Printf("\n%s: the clusters of a process started with %.1f CPU s. Stories:", report.SuiteDescription, start)
	for _, tier := range slices.Sorted(slices.Values([]string{"quick", "core", "slow"})) {
		fmt.Printf(" %d %s, %.0f CPU s;", number[tier], tier, total[tier])
	}
	fmt.Println(" the dearest:")
	slices.SortStableFunc(stories, func(a, b types.SpecReport) int { return cmp.Compare(costOf(b), costOf(a)) })
	for _, s := range stories[:min(dearest, len(stories))] {
		note := ""
		if tierOf(report, s) == tierQuick && costOf(s) > storyLimit*start {
			note = fmt.Sprintf(" (over the limit of %.1f CPU s: make it cheaper, or label it suite.Slow)", storyLimit*start)
		}
		fmt.Printf("  %5.1f CPU s %5.1f s  %s  %s%s\n", costOf(s), s.RunTime.Seconds(), tierOf(report, s), s.FullText(), note)
	}
	if limit := tierLimit * start; total["quick"] > limit {
		return fmt.Errorf("the quick stories cost %.0f CPU s, but %.0f times the start of their clusters is the limit (%.0f CPU s): "+
			"make the dearest ones cheaper, or label them suite.Slow", total["quick"], float64(tierLimit), limit)
	}
	return nil
}

// tierOf returns why a story runs in `make test` (quick or core), or that it does not (slow).
func tierOf(report types.Report, s types.SpecReport) string {
	labels := slices.Concat(report.SuiteLabels, s.Labels())
	switch {
	case slices.Contains(labels, Core[0]):
		return Core[0]
	case slices.Contains(labels, Slow[0]):
		return Slow[0]
	default:
		return tierQuick
	}
}
