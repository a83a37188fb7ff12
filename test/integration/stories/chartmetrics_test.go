package stories_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var (
	// notMetrics matches the parts of an expression that are not metrics: strings, label
	// matchers, ranges, and the labels that operators take in parentheses.
	notMetrics = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	identifier = regexp.MustCompile(`\b[a-zA-Z_][a-zA-Z0-9_]*\b\s*\(?`)
	operators  = []string{"and", "or", "unless", "bool", "offset"}
	// labelValues matches how a dashboard's variables query the values of a label.
	labelValues = regexp.MustCompile(`label_values\((\w+)`)
	exposed     = regexp.MustCompile(`(?m)^([a-zA-Z_:][a-zA-Z0-9_:]*)[{ ]`)
)

// metricsIn returns the names of the metrics in a PromQL expression.
func metricsIn(expression string) []string {
	var names []string
	for _, name := range identifier.FindAllString(notMetrics.ReplaceAllString(expression, " "), -1) {
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "(") && !slices.Contains(operators, name) {
			names = append(names, name)
		}
	}
	return names
}

// asked returns the names of the metrics in all expressions and queries of a document.
func asked(document any) []string {
	var names []string
	switch d := document.(type) {
	case []any:
		for _, item := range d {
			names = append(names, asked(item)...)
		}
	case map[string]any:
		for key, value := range d {
			text, isText := value.(string)
			switch {
			case isText && key == "expr":
				names = append(names, metricsIn(text)...)
			case isText:
				for _, query := range labelValues.FindAllStringSubmatch(text, -1) {
					names = append(names, query[1])
				}
			default:
				names = append(names, asked(value)...)
			}
		}
	}
	return names
}

func TestMetricsIn(t *testing.T) {
	for expression, want := range map[string][]string{
		`max by (cluster) (xylem_member_connected) == 0`:                                                 {"xylem_member_connected"},
		`absent(leader_election_master_status{name="xylem-manager"} == 1)`:                               {"leader_election_master_status"},
		`sum by (le) (rate(a_bucket{cluster=~"$c", x!~"a|b\"}"}[$__rate_interval])) / on (x) b > 1e3`:    {"a_bucket", "b"},
		"a * on (instance, job) group_left () (0 * b{name=\"x\"} + 1)\n  and on (cluster) c unless d{}":  {"a", "b", "c", "d"},
		`histogram_quantile(0.99, sum by (le, cluster) (rate(a_bucket[10m]))) or min_over_time(b[15m:])`: {"a_bucket", "b"},
	} {
		if diff := cmp.Diff(want, metricsIn(expression)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
}

// ofSnapshots matches the metrics that a manager serves only if its host serves snapshots. The host
// of this suite does not; see test/integration/snapshots.
var ofSnapshots = regexp.MustCompile(`^xylem_(orphaned_)?snapshots$`)

var _ = Describe("The metrics that the chart uses", func() {
	It("are all served by the leading manager", suite.Slow, func(ctx SpecContext) {
		var wanted []string
		for _, file := range []string{"rules.yaml", "dashboard.json"} {
			content, err := os.ReadFile(x.Root("charts", "xylem", "files", file))
			Expect(err).NotTo(HaveOccurred())
			var document any
			Expect(yaml.Unmarshal(content, &document)).To(Succeed())
			names := asked(document)
			Expect(names).To(ContainElement("xylem_member_connected"), file)
			wanted = append(wanted, names...)
		}
		slices.Sort(wanted)
		wanted = slices.DeleteFunc(slices.Compact(wanted), ofSnapshots.MatchString)

		elected := electing(ctx)
		s := begin(ctx)
		rules(ctx, two, `{"deny":["kube-*"]}`)
		DeferCleanup(admitsAll, two, NodeTimeout(settle))
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)

		Eventually(ctx, func() ([]string, error) {
			body, err := harness.Served(ctx, elected.MetricsURL())
			var missing []string
			for _, name := range wanted {
				if !slices.ContainsFunc(exposed.FindAllStringSubmatch(body, -1), func(match []string) bool { return match[1] == name }) {
					missing = append(missing, name)
				}
			}
			return missing, err
		}).WithContext(ctx).Should(BeEmpty())
	}, SpecTimeout(storyTime))
})
