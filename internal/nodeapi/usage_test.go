package nodeapi

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"
)

var began = time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

func leaves(uid types.UID, containers ...string) map[types.NamespacedName]MeasuredLeaf {
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	leaf := MeasuredLeaf{Pod: key, UID: uid, Created: began, Containers: map[string]bool{}}
	for _, c := range containers {
		leaf.Containers[c] = true
	}
	return map[types.NamespacedName]MeasuredLeaf{key: leaf}
}

func sample(taken int, containers ...ContainerUsage) UsageSample {
	return UsageSample{Pod: types.NamespacedName{Namespace: "shop", Name: "web"}, Taken: at(taken), Containers: containers}
}

func app(cpu, memory float64) ContainerUsage { return ContainerUsage{"app", cpu, memory} }

// point contains the values that metrics-server stores for a container or node
// (sigs.k8s.io/metrics-server/pkg/storage), in its units.
type point struct {
	cpu, memory uint64
	taken       time.Time
	started     time.Time
}

// points decodes metrics as metrics-server does. The node's point has an empty name.
func points(t *testing.T, text []byte) map[string]point {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]point{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var namespace, pod, container string
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "namespace":
					namespace = l.GetValue()
				case "pod":
					pod = l.GetValue()
				case "container":
					container = l.GetValue()
				}
			}
			key := strings.Trim(namespace+"/"+pod+"/"+container, "/")
			p := all[key]
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
			switch name {
			case "node_cpu_usage_seconds_total", "container_cpu_usage_seconds_total":
				p.cpu, p.taken = uint64(v*1e9), time.UnixMilli(m.GetTimestampMs())
			case "node_memory_working_set_bytes", "container_memory_working_set_bytes":
				p.memory = uint64(v)
			case "container_start_time_seconds":
				p.started = time.Unix(0, int64(v*1e9))
			default:
				t.Errorf("metric %s is not one of a kubelet's", name)
			}
			all[key] = p
		}
	}
	return all
}

// usageRate returns the rate in cores between two points as metrics-server computes it, or false
// if the container restarted in between.
func usageRate(t *testing.T, last, prev point) (float64, bool) {
	t.Helper()
	if last.cpu == 0 || last.memory == 0 || !last.taken.After(prev.taken) || !last.started.Before(prev.taken) && !last.started.IsZero() && !last.started.Equal(prev.taken) {
		return 0, false
	}
	if last.cpu < prev.cpu || last.started.Before(prev.started) {
		t.Errorf("metrics-server logs an error: %v after %v", last, prev)
	}
	return math.Round(float64(last.cpu-prev.cpu)/last.taken.Sub(prev.taken).Seconds()) / 1e9, true
}

func TestMeter(t *testing.T) {
	type step struct {
		leaves  map[types.NamespacedName]MeasuredLeaf
		samples []UsageSample
		// rates are the expected rates by container, as metrics-server computes them. The node has
		// an empty name.
		rates map[string]float64
	}
	const key = "shop/web/app"
	one := leaves("one", "app", "side")
	for name, steps := range map[string][]step{
		"metrics-server computes the member's rate": {
			{one, []UsageSample{sample(15, app(0.25, 100))}, nil},
			{one, []UsageSample{sample(30, app(0.25, 100))}, map[string]float64{"": 0.25, key: 0.25}},
			{one, []UsageSample{sample(50, app(1.5, 100))}, map[string]float64{"": 1.5, key: 1.5}},
		},
		"an idle container": {
			{one, []UsageSample{sample(15, app(0, 100))}, nil},
			{one, []UsageSample{sample(30, app(0, 100))}, map[string]float64{"": 0, key: 0}},
		},
		"a repeated sample": {
			{one, []UsageSample{sample(15, app(1, 100))}, nil},
			{one, []UsageSample{sample(15, app(1, 100))}, nil},
			{one, []UsageSample{sample(30, app(1, 100))}, map[string]float64{"": 1, key: 1}},
		},
		"an older sample from another metrics-server replica": {
			{one, []UsageSample{sample(30, app(1, 100))}, nil},
			{one, []UsageSample{sample(15, app(9, 100))}, nil},
			{one, []UsageSample{sample(45, app(1, 100))}, map[string]float64{"": 1, key: 1}},
		},
		"the Pod was replaced": {
			{one, []UsageSample{sample(15, app(1, 100))}, nil},
			{leaves("two", "app"), []UsageSample{sample(30, app(1, 100))}, map[string]float64{"": 1}},
			{leaves("two", "app"), []UsageSample{sample(45, app(1, 100))}, map[string]float64{"": 1, key: 1}},
		},
		"an unknown container and a duplicate": {
			{one, []UsageSample{sample(15, app(1, 100), ContainerUsage{"proxy", 9, 9}, app(5, 5))}, nil},
			{one, []UsageSample{sample(30, app(1, 100), ContainerUsage{"proxy", 9, 9}, app(5, 5))}, map[string]float64{"": 1, key: 1}},
		},
		"two containers": {
			{one, []UsageSample{sample(15, app(1, 100), ContainerUsage{"side", 0.5, 1})}, nil},
			{one, []UsageSample{sample(30, app(1, 100), ContainerUsage{"side", 0.5, 1})}, map[string]float64{"": 1.5, key: 1, "shop/web/side": 0.5}},
		},
		"invalid values": {
			{one, []UsageSample{sample(15, app(math.NaN(), math.Inf(1)))}, nil},
			{one, []UsageSample{sample(30, app(-1, 100))}, map[string]float64{"": 0, key: 0}},
			{one, []UsageSample{sample(45, app(math.Inf(1), 100))}, map[string]float64{"": maxCores, key: maxCores}},
		},
		"an unknown Pod, a sample older than the leaf, and a sample from the future (I8)": {
			{one, []UsageSample{{Pod: types.NamespacedName{Namespace: "kube-system", Name: "dns"}, Taken: at(15), Containers: []ContainerUsage{app(1, 1)}}, sample(-1, app(1, 100)), sample(1e6, app(1, 100))}, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var meter UsageMeter
			var before map[string]point
			for i, step := range steps {
				var text bytes.Buffer
				if err := meter.AddSamples(at(60), step.leaves, step.samples).WriteMetrics(&text); err != nil {
					t.Fatal(err)
				}
				now := points(t, text.Bytes())
				got := map[string]float64{}
				for key, last := range now {
					if prev, known := before[key]; known {
						if v, ok := usageRate(t, last, prev); ok {
							got[key] = v
						}
					}
				}
				if len(step.rates) == 0 {
					step.rates = map[string]float64{}
				}
				if diff := cmp.Diff(step.rates, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })); diff != "" {
					t.Errorf("step %d (-want +got):\n%s\n%s", i, diff, text.String())
				}
				before = now
			}
		})
	}
}

// memberCluster is a member with a metrics API.
type memberCluster struct{ *httptest.Server }

func (m memberCluster) URLForPath(path ...string) *url.URL {
	u, _ := url.Parse(m.URL)
	return u.JoinPath(path...)
}
func (m memberCluster) RequestTransport() http.RoundTripper { return m.Client().Transport }
func (memberCluster) CurrentToken() string                  { return "secret-token" }

func TestRead(t *testing.T) {
	list := func(items string) string {
		return `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":` + items + `}`
	}
	web := `{"metadata":{"name":"web","namespace":"shop","labels":{"a":"b"}},"timestamp":"2026-11-25T00:00:15Z","window":"15s","containers":[{"name":"app","usage":{"cpu":"250m","memory":"1Ki"}}]}`
	many := strings.Repeat(`{},`, containersLimit+1)
	for name, tc := range map[string]struct {
		code int
		body string
		want []UsageSample
		fail int
		says string
	}{
		"a Pod":                       {200, list(`[` + web + `]`), []UsageSample{sample(15, app(0.25, 1024))}, 0, ""},
		"none":                        {200, list(`null`), nil, 0, ""},
		"unknown fields":              {200, `{"items":[],"more":{"a":[1,{"b":null}],"c":"d"},"x":1}`, nil, 0, ""},
		"a different order of fields": {200, `{"items":[` + web + `],"kind":"PodMetricsList"}`, []UsageSample{sample(15, app(0.25, 1024))}, 0, ""},
		"no metrics API":              {404, `404 page not found`, nil, 404, "install metrics-server"},
		"permission is missing":       {403, `{"kind":"Status","message":"forbidden"}`, nil, 403, "--with-metrics"},
		"the metrics API is down":     {503, `{"kind":"Status","message":"the server is currently unable to handle the request secret-token"}`, nil, 503, "unable to handle the request ********"},
		"a redirect":                  {302, ``, nil, 502, "unexpected status"},
		"not JSON":                    {200, `<html>`, nil, 502, "cannot be read"},
		"a list":                      {200, `[]`, nil, 502, "cannot be read"},
		"truncated JSON":              {200, list(`[` + web)[:120], nil, 502, "cannot be read"},
		"an invalid quantity":         {200, list(`[{"containers":[{"usage":{"cpu":"much"}}]}]`), nil, 502, "cannot be read"},
		"an endless quantity":         {200, list(`[{"containers":[{"usage":{"cpu":"1e-2147483647"}}]}]`), nil, 502, "out of range"},
		"an endless number":           {200, list(`[{"containers":[{"usage":{"memory":1000000000000000000000e900000000}}]}]`), nil, 502, "out of range"},
		"a huge quantity":             {200, list(`[{"containers":[{"usage":{"cpu":"1e2000000001"}}]}]`), nil, 502, "out of range"},
		"a number and null":           {200, list(strings.NewReplacer(`"250m"`, `0.25`, `"1Ki"`, `null`).Replace(`[` + web + `]`)), []UsageSample{sample(15, app(0.25, 0))}, 0, ""},
		"nested lists":                {200, `{"more":` + strings.Repeat("[", 1<<20), nil, 502, "nested more than 100 levels"},
		"nested objects in a Pod":     {200, list(`[{"more":` + strings.Repeat(`{"a":`, 1<<18)), nil, 502, "nested more than 100 levels"},
		"too many containers":         {200, list(`[{"containers":[` + many + `{}]}]`), nil, 502, "too many containers"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.String()
				w.WriteHeader(tc.code)
				fmt.Fprint(w, tc.body)
			}))
			defer server.Close()
			var got []UsageSample
			read := make(chan *Failure, 1)
			go func() {
				read <- ReadUsage(t.Context(), memberCluster{server}, "host-1", "one", func(s UsageSample) { got = append(got, s) })
			}()
			var failed *Failure
			select {
			case failed = <-read:
			case <-time.After(10 * time.Second): // decoding cannot be canceled
				t.Fatal("Read still decodes the response")
			}
			code := 0
			if failed != nil {
				code = failed.Code
				if !strings.Contains(failed.MessageLine(), tc.says) || strings.Contains(failed.MessageLine(), "secret-token") || !failed.Exact {
					t.Errorf("%q, want %q", failed.MessageLine(), tc.says)
				}
			}
			if code != tc.fail {
				t.Fatalf("%d (%v), want %d", code, failed, tc.fail)
			}
			if asked != "/apis/metrics.k8s.io/v1beta1/pods?labelSelector=xylem.io%2Fhost%3Dhost-1" {
				t.Errorf("asked %s", asked)
			}
			if tc.fail == 0 {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}
