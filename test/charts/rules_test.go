package charts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// rule is an alert rule in files/rules.yaml.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func rules() []rule {
	GinkgoHelper()
	content, err := os.ReadFile(path("charts", "xylem", "files", "rules.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var file struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	Expect(yaml.Unmarshal(content, &file)).To(Succeed())
	Expect(file.Groups).NotTo(BeEmpty())
	return file.Groups[0].Rules
}

var _ = Describe("The alert rules", func() {
	It("pass their promtool tests", func(ctx SpecContext) {
		_, err := run(ctx, "", promtoolPath, "test", "rules", path("test", "charts", "testdata", "rules_test.yaml"))
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(settle))

	It("each have a test and an action", func() {
		tested, err := os.ReadFile(path("test", "charts", "testdata", "rules_test.yaml"))
		Expect(err).NotTo(HaveOccurred())
		for _, r := range rules() {
			Expect(strings.Count(string(tested), "alertname: "+r.Alert+"\n")).To(BeNumerically(">=", 1), "no test makes alert %s fire", r.Alert)
			Expect(r.Labels).To(HaveKey("severity"), r.Alert)
			for _, annotation := range []string{"summary", "description", "action"} {
				Expect(r.Annotations[annotation]).NotTo(BeEmpty(), r.Alert+": "+annotation)
			}
		}
	})

	It("can be disabled individually", func(ctx SpecContext) {
		content, err := os.ReadFile(path("charts", "xylem", "values.schema.json"))
		Expect(err).NotTo(HaveOccurred())
		operations, err := os.ReadFile(path("charts", "xylem", "OPERATIONS.md"))
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, r := range rules() {
			names = append(names, r.Alert)
			Expect(string(operations)).To(ContainSubstring("| `"+r.Alert+"` |"), "the table of alerts must have a row for it")
			_, err := render(ctx, "xylem", restricted, fmt.Sprintf("metrics: {prometheusRule: {enabled: true, disabled: [%s]}}", r.Alert))
			Expect(err).NotTo(HaveOccurred(), r.Alert)
		}
		listed := regexp.MustCompile(`"(Xylem[A-Z]\w+)"`).FindAllStringSubmatch(string(content), -1)
		var known []string
		for _, match := range listed {
			known = append(known, match[1])
		}
		Expect(known).To(ConsistOf(names))
	}, SpecTimeout(settle))

	It("are all in the PrometheusRule, except the disabled ones", func(ctx SpecContext) {
		stream, err := render(ctx, "xylem", restricted, full)
		Expect(err).NotTo(HaveOccurred())
		rendered, err := json.Marshal(objects(stream)["PrometheusRule xylem-system xylem"].Object["spec"])
		Expect(err).NotTo(HaveOccurred())
		var spec struct {
			Groups []struct {
				Rules []rule `json:"rules"`
			} `json:"groups"`
		}
		Expect(json.Unmarshal(rendered, &spec)).To(Succeed())
		var got, want []string
		for _, r := range spec.Groups[0].Rules {
			got = append(got, r.Alert+" "+r.Expr+r.Annotations["action"])
			Expect(r.Labels).To(Equal(map[string]string{"severity": "page", "team": "storage"}), "configured labels override an alert's labels")
		}
		for _, r := range rules() {
			if r.Alert != "XylemQueueBacklog" {
				want = append(want, r.Alert+" "+r.Expr+r.Annotations["action"])
			}
		}
		Expect(got).To(Equal(want))
	}, SpecTimeout(settle))
})

var _ = Describe("The dashboard", func() {
	It("has queries that Prometheus can parse", func(ctx SpecContext) {
		content, err := os.ReadFile(path("charts", "xylem", "files", "dashboard.json"))
		Expect(err).NotTo(HaveOccurred())
		var dashboard struct {
			UID    string `json:"uid"`
			Panels []struct {
				Type    string `json:"type"`
				Title   string `json:"title"`
				Targets []struct {
					Expr string `json:"expr"`
				} `json:"targets"`
			} `json:"panels"`
		}
		Expect(json.Unmarshal(content, &dashboard)).To(Succeed())
		Expect(dashboard.UID).NotTo(BeEmpty())
		// promtool checks rules, not queries, so convert the queries to recording rules.
		var queries []map[string]any
		for _, panel := range dashboard.Panels {
			if panel.Type == "row" {
				continue
			}
			Expect(panel.Targets).NotTo(BeEmpty(), panel.Title)
			for _, target := range panel.Targets {
				queries = append(queries, map[string]any{"record": "query",
					"expr": strings.NewReplacer("$__rate_interval", "5m", "$cluster", ".*").Replace(target.Expr)})
			}
		}
		Expect(len(queries)).To(BeNumerically(">", 20))
		file, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": queries}}})
		Expect(err).NotTo(HaveOccurred())
		name := filepath.Join(GinkgoT().TempDir(), "queries.yaml")
		Expect(os.WriteFile(name, file, 0o600)).To(Succeed())
		_, err = run(ctx, "", promtoolPath, "check", "rules", "--lint=none", name)
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(settle))
})
