package charts_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/internal/manager"
)

var _ = Describe("Wrong values", func() {
	DescribeTable("are rejected with a message that names them", func(ctx context.Context, chart, values, names string) {
		_, err := render(ctx, chart, restricted, values)
		Expect(err).To(MatchError(ContainSubstring(names)))
	},
		Entry("an unknown key", "xylem", `{replica: 2}`, "replica"),
		Entry("an unknown nested key", "xylem", `{metrics: {serviceMonitor: {enable: true}}}`, "enable"),
		Entry("zero replicas", "xylem", `{replicas: 0}`, "/replicas"),
		Entry("replicas that are not a number", "xylem", `{replicas: two}`, "/replicas"),
		Entry("an invalid image", "xylem", `{image: {repository: "Not An Image"}}`, "/image/repository"),
		Entry("an image with a tag in its name", "xylem", `{image: {repository: "registry.example/xylem:v1"}}`, "/image/repository"),
		Entry("an image without a name", "xylem", `{image: {repository: ""}}`, "/image/repository"),
		Entry("an invalid tag", "xylem", `{image: {tag: "v 1"}}`, "/image/tag"),
		Entry("a tag that is a number", "xylem", `{image: {tag: 1.0}}`, "/image/tag"),
		Entry("an invalid digest", "xylem", `{image: {digest: "sha256:12"}}`, "/image/digest"),
		Entry("an invalid pull policy", "xylem", `{image: {pullPolicy: Sometimes}}`, "/image/pullPolicy"),
		Entry("pull secrets as plain names", "xylem", `{imagePullSecrets: [registry]}`, "/imagePullSecrets/0"),
		Entry("a duration without a unit", "xylem", `{fence: {duration: "30"}}`, "/fence/duration"),
		Entry("a duration that is a number", "xylem", `{nodeGrace: 40}`, "/nodeGrace"),
		Entry("a fence with a zero duration", "xylem", `{fence: {duration: 0s}}`, "/fence/duration"),
		Entry("a fence that is shorter than three probe intervals", "xylem", `{fence: {duration: 15s}}`,
			"fence.probeInterval (10s) is more than a third of fence.duration (15s). Set fence.probeInterval to 5s or less, or fence.duration to 30s or more"),
		Entry("a fence that is shorter than three probe intervals, in other units", "xylem", `{fence: {duration: 1m1.5s, probeInterval: 20501ms}}`, "is more than a third of fence.duration"),
		Entry("a fence that is too short for any manager", "xylem", `{fence: {duration: 900ms, probeInterval: 100ms}}`, "fence.duration 900ms: must be at least 1s"),
		Entry("a zero interval between probes", "xylem", `{fence: {probeInterval: "0.0s"}}`, "/fence/probeInterval"),
		Entry("a zero interval between epochs", "xylem", `{fence: {epochInterval: 0h0m}}`, "/fence/epochInterval"),
		Entry("a response limit without a unit", "xylem", `{members: {answerLimit: 128}}`, "/members/answerLimit"),
		Entry("a zero grace period for nodes", "xylem", `{nodeGrace: 0s}`, "/nodeGrace"),
		Entry("deletions that count as stuck immediately", "xylem", `{stuckAfter: 0s}`, "/stuckAfter"),
		Entry("an interval of less than a second between checks for orphans", "xylem", `{orphanInterval: 500ms}`, "orphanInterval 500ms: must be at least 1s"),
		Entry("no claims in progress", "xylem", `{claimsInProgress: 0}`, "/claimsInProgress"),
		Entry("an interval of less than a second between attempts to connect", "xylem", `{recheckInterval: 500ms}`, "recheckInterval 500ms: must be at least 1s"),
		Entry("tokens that are renewed too late", "xylem", `{renewTokensAfter: 0.7}`, "/renewTokensAfter"),
		Entry("tokens that are renewed too late, as a string from --set", "xylem", `{renewTokensAfter: "0.7"}`, "renewTokensAfter 0.7: the maximum is 0.6"),
		Entry("tokens that are renewed immediately", "xylem", `{renewTokensAfter: "0.0"}`, "/renewTokensAfter"),
		Entry("a test with a zero timeout", "xylem", `{test: {timeout: 0s}}`, "/test/timeout"),
		Entry("an uninstall check with a zero timeout", "xylem", `{uninstall: {timeoutSeconds: 0}}`, "/uninstall/timeoutSeconds"),
		Entry("a string instead of a boolean", "xylem", `{namespaces: {steer: auto}}`, "/namespaces/steer"),
		Entry("an invalid log level", "xylem", `{log: {level: loud}}`, "/log/level"),
		Entry("a log level that is too low", "xylem", `{log: {level: 0}}`, "/log/level"),
		Entry("an argument that is not a flag", "xylem", `{extraArgs: [check]}`, "/extraArgs/0"),
		Entry("an environment variable without a name", "xylem", `{extraEnv: [{value: a}]}`, "name"),
		Entry("an invalid memory limit", "xylem", `{resources: {limits: {memory: lots}}}`, "/resources/limits/memory"),
		Entry("an invalid toleration effect", "xylem", `{tolerations: [{key: a, effect: Never}]}`, "/tolerations/0/effect"),
		Entry("an unknown kind of affinity", "xylem", `{affinity: {nodeafinity: {}}}`, "nodeafinity"),
		Entry("a spread constraint without a topology key", "xylem", `{topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]}`, "topologyKey"),
		Entry("a disruption budget above 100%", "xylem", `{podDisruptionBudget: {maxUnavailable: 200%}}`, "/podDisruptionBudget/maxUnavailable"),
		Entry("an invalid label", "xylem", `{commonLabels: {team: "a b"}}`, "/commonLabels/team"),
		Entry("an annotation that is not a string", "xylem", `{podAnnotations: {a: true}}`, "/podAnnotations/a"),
		Entry("an invalid port", "xylem", `{metrics: {port: 70000}}`, "/metrics/port"),
		Entry("a metrics reader without a namespace", "xylem", `{metrics: {readers: [{name: prometheus}]}}`, "namespace"),
		Entry("an unknown alert", "xylem", `{metrics: {prometheusRule: {disabled: [XylemNoLeder]}}}`, "/metrics/prometheusRule/disabled/0"),
		Entry("\"yes\" instead of true", "xylem", `{crds: {keep: "yes"}}`, "/crds/keep"),
		Entry("a class without a name", "xylem", `{storageClasses: [{reclaimPolicy: Retain}]}`, "name"),
		Entry("a class with another provisioner", "xylem", `{storageClasses: [{name: a, provisioner: b}]}`, "provisioner"),
		Entry("an invalid reclaim policy", "xylem", `{storageClasses: [{name: a, reclaimPolicy: Recycle}]}`, "/storageClasses/0/reclaimPolicy"),
		Entry("a parameter that is not a string", "xylem", `{storageClasses: [{name: a, parameters: {xylem.io/member-class: 3}}]}`, "/storageClasses/0/parameters"),
		Entry("an invalid account name", "xylem-member", `{serviceAccount: {name: "system:admin"}}`, "/serviceAccount/name"),
		Entry("a wildcard instead of a PriorityClass", "xylem-member", `{priorityClasses: ["*"]}`, "/priorityClasses/0"),
		Entry("a wildcard instead of a shared driver", "xylem-member", `{shared: {drivers: ["*"]}}`, "/shared/drivers/0"),
		Entry("a shared Secret without a namespace", "xylem-member", `{shared: {secrets: [credentials]}}`, "/shared/secrets/0"),
		Entry("an unknown key in the member's chart", "xylem-member", `{rbac: {create: false}}`, "rbac"),
	)

	DescribeTable("do not include values that the manager accepts", func(ctx context.Context, values string) {
		_, err := render(ctx, "xylem", restricted, values)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("a fence of three probe intervals", `{fence: {duration: 15s, probeInterval: 5s}}`),
		Entry("a fence of three probe intervals, in other units", `{fence: {duration: 1m1.5s, probeInterval: 20500ms}}`),
		Entry("a fraction as a string from --set", `{renewTokensAfter: "0.1"}`),
		Entry("a second", `{fence: {duration: 1s, probeInterval: 300ms}, orphanInterval: 1000ms, recheckInterval: 1s}`),
	)

	It("are rejected at every level: no object in the charts' schemas accepts unknown keys", func() {
		for _, chart := range []string{"xylem", "xylem-member"} {
			content, err := os.ReadFile(path("charts", chart, "values.schema.json"))
			Expect(err).NotTo(HaveOccurred())
			var schema map[string]any
			Expect(yaml.Unmarshal(content, &schema)).To(Succeed())
			closed(schema, chart)
		}
	})
})

// closed fails for every schema that allows additional properties or lacks a type.
func closed(schema map[string]any, where string) {
	GinkgoHelper()
	if properties, ok := schema["properties"].(map[string]any); ok {
		Expect(schema).To(HaveKeyWithValue("additionalProperties", false), where)
		for name, property := range properties {
			inner, ok := property.(map[string]any)
			Expect(ok).To(BeTrue(), where)
			Expect(inner).To(Or(HaveKey("type"), HaveKey("enum")), where+"."+name)
			closed(inner, where+"."+name)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		closed(items, where+"[]")
	}
}

var _ = Describe("The manager's flags", func() {
	It("can all be set by values, except those that the chart sets itself", func(ctx SpecContext) {
		flags := flag.NewFlagSet("manager", flag.ContinueOnError)
		new(manager.Options).AddFlags(flags)
		new(zap.Options).BindFlags(flags)
		stream, err := render(ctx, "xylem", restricted, full)
		Expect(err).NotTo(HaveOccurred())
		// A release can use either a certificate from a Secret, as in full, or a requested one.
		requested, err := render(ctx, "xylem", restricted, `{nodeAPI: {certificate: {request: true}}}`)
		Expect(err).NotTo(HaveOccurred())
		stream += requested
		own := map[string]string{
			"namespace":                  "POD_NAMESPACE",
			"metrics-secure":             "metrics always require authorization",
			"node-api-advertise-address": "the Pod's own address, from POD_IP",
			"zap-devel":                  "log.* sets the same settings",
			"zap-stacktrace-level":       "for developers",
		}
		flags.VisitAll(func(f *flag.Flag) {
			if _, ok := own[f.Name]; !ok {
				Expect(stream).To(MatchRegexp(`- --%s(=|\n)`, f.Name), "no value sets flag --%s", f.Name)
			}
		})
		for name := range own {
			Expect(flags.Lookup(name)).NotTo(BeNil(), name)
		}
	}, SpecTimeout(settle))

	It("have the same defaults as the chart, unless a Pod needs other values", func(ctx SpecContext) {
		flags := flag.NewFlagSet("manager", flag.ContinueOnError)
		new(manager.Options).AddFlags(flags)
		stream, err := render(ctx, "xylem", restricted, `{}`)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"allow-insecure-members", "fence-duration", "probe-interval", "fence-epoch-interval", "node-grace", "orphan-interval", "recheck-interval", "claims-in-progress", "stuck-after", "silent-after", "nominated-node-name", "member-answer-limit", "member-cache-limit"} {
			want := flags.Lookup(name).DefValue
			_, rest, ok := strings.Cut(stream, "- --"+name+"=")
			Expect(ok).To(BeTrue(), name)
			got, _, _ := strings.Cut(rest, "\n")
			if duration, err := time.ParseDuration(want); err == nil {
				Expect(time.ParseDuration(got)).To(Equal(duration), name)
				continue
			}
			Expect(got).To(Equal(want), name)
		}
	}, SpecTimeout(settle))
})
