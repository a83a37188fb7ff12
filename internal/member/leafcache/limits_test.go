package leafcache

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/membertest"
)

// document wraps a raw object of a v1 kind into Kubernetes' protobuf envelope.
func document(kind string, raw []byte) []byte {
	typeMeta := append(field(1, []byte("v1")), field(2, []byte(kind))...)
	return append([]byte("k8s\x00"), append(field(1, typeMeta), field(2, raw)...)...)
}

const mebibyte = 1 << 20

// emptyItems returns a list's encoded items, with the given total length in bytes. All of them are
// empty objects.
func emptyItems(length int) []byte { return bytes.Repeat([]byte{0x12, 0}, length/2) }

// hostile serves the same response to every request.
func hostile(t *testing.T, contentType, encoding string, body []byte) *member.Connection {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return membertest.ConnectToServer(t, server)
}

func packed(body []byte) []byte {
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	_, _ = w.Write(body)
	_ = w.Close()
	return to.Bytes()
}

// allocated returns how many bytes a call allocates, including garbage.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// One MiB of empty objects takes 1.3 GiB once decoded, more than the manager's limit. Xylem rejects
// such a response before it decodes it, and ends the link with a message that contains a remedy
// (I7).
func TestHostileAnswers(t *testing.T) {
	jsonItems := []byte(`{"apiVersion":"v1","kind":"PersistentVolumeList","items":[` + strings.Repeat("{},", mebibyte/3) + `{}]}`)
	protobufItems := document("PersistentVolumeList", emptyItems(mebibyte))
	const asProtobuf, asJSON = budget.ProtobufType, budget.JSONType
	for name, tc := range map[string]struct {
		contentType, encoding string
		body                  []byte
		says                  string
	}{
		"empty objects":                         {asProtobuf, "", protobufItems, "--member-answer-limit"},
		"empty objects in JSON":                 {asJSON, "", jsonItems, "--member-answer-limit"},
		"empty objects, compressed":             {asProtobuf, "gzip", packed(protobufItems), "--member-answer-limit"},
		"a compressed response above the limit": {asJSON, "gzip", packed(bytes.Repeat([]byte(" "), budget.MaxResponseBytes+mebibyte)), "any API server"},
		"empty containers of one Pod":           {asProtobuf, "", document("PodList", field(2, field(2, emptyItems(mebibyte)))), "--member-answer-limit"},
		"empty conditions of a claim":           {asProtobuf, "", document("PersistentVolumeClaimList", field(2, field(3, bytes.Repeat([]byte{0x22, 0}, mebibyte)))), "--member-answer-limit"},
		"a kind other than the requested one":   {asProtobuf, "", document("EventList", emptyItems(mebibyte)), "--member-answer-limit"},
		"an unknown kind":                       {asProtobuf, "", document("Surprise", emptyItems(mebibyte)), "cannot be read"},
		"YAML, which was not requested":         {"application/yaml", "", []byte("a: &a [x]\nb: [*a, *a]"), "cannot be read"},
		"endlessly nested JSON":                 {asJSON, "", bytes.Repeat([]byte("["), 10_000), "cannot be read"},
		"invalid protobuf":                      {asProtobuf, "", []byte("k8s\x00\x12\x7f"), "cannot be read"},
		"an encoding that was not requested":    {"", "", protobufItems, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			c := hostile(t, tc.contentType, tc.encoding, tc.body)
			var err error
			took := allocated(func() {
				var list corev1.PersistentVolumeList
				err = c.Live.List(t.Context(), &list)
			})
			t.Logf("%d KiB on the wire, %d KiB allocated", len(tc.body)>>10, took>>10)
			p := access.AsConnectionProblem(err)
			if p == nil || p.Reason != v1alpha1.ReasonAnswersRefused || !strings.Contains(p.Message, tc.says) {
				t.Fatalf("error is %v, want a Problem with reason AnswersRefused that contains %q", err, tc.says)
			}
			// The limit allows for copies of the bytes read, but not for decoded objects.
			if limit := uint64(16*mebibyte + 8*min(len(tc.body), budget.MaxResponseBytes)); tc.encoding == "" && took > limit {
				t.Errorf("%d MiB were allocated for %d bytes, want at most %d MiB", took>>20, len(tc.body), limit>>20)
			}
			if ended := c.Limiter.WaitUntilExceeded(t.Context()); !errors.Is(ended, p) {
				t.Errorf("the link ended with %v, want %v", ended, p)
			}
		})
	}
}

func field(number byte, value []byte) []byte {
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value))), value...)
}

// An error response can contain a hostile object as well.
func TestHostileComplaints(t *testing.T) {
	for name, body := range map[string][]byte{
		"in protobuf": document("PodList", emptyItems(budget.MaxErrorResponseBytes-100)),
		"in JSON":     []byte(`{"apiVersion":"v1","kind":"PodList","items":[` + strings.Repeat("{},", budget.MaxErrorResponseBytes/3-100) + `{}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			contentType := budget.JSONType
			if name == "in protobuf" {
				contentType = budget.ProtobufType
			}
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", contentType)
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write(body)
			}))
			t.Cleanup(server.Close)
			c := membertest.ConnectToServer(t, server)
			var err error
			took := allocated(func() { err = c.Live.List(t.Context(), &corev1.PodList{}) })
			if err == nil || took > 8*mebibyte {
				t.Errorf("error is %v, %d MiB were allocated; want an error and at most 8 MiB", err, took>>20)
			}
		})
	}
}

// stream serves the frames of a watch. If endless is set, it repeats them forever.
func stream(t *testing.T, contentType string, endless bool, parts ...[]byte) *member.Connection {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for first := true; first || endless && r.Context().Err() == nil; first = false {
			for _, part := range parts {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return membertest.ConnectToServer(t, server)
}

func framed(frame []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

func added(kind string, raw []byte) []byte {
	return framed(append(field(1, []byte("ADDED")), field(2, field(1, document(kind, raw)))...))
}

func readWatch(t *testing.T, c *member.Connection) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config.Host+"/api/v1/pods?watch=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Watches.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

// Each watch event is weighed before it is decoded, like other responses.
func TestHostileWatches(t *testing.T) {
	const asProtobuf, asJSON = budget.ProtobufType + ";stream=watch", budget.JSONType
	small := added("Pod", field(1, field(1, []byte("web"))))
	for name, tc := range map[string]struct {
		contentType string
		endless     bool
		parts       [][]byte
		says        string
		passes      int
	}{
		"a large event":                      {asProtobuf, false, [][]byte{small, added("Pod", field(2, emptyItems(mebibyte)))}, "--member-answer-limit", len(small)},
		"a list as an event":                 {asProtobuf, false, [][]byte{small, added("PodList", emptyItems(mebibyte))}, "--member-answer-limit", len(small)},
		"an event that is too long":          {asProtobuf, false, [][]byte{small, binary.BigEndian.AppendUint32(nil, budget.MaxWatchEventBytes+1)}, "any API server", len(small)},
		"an invalid event":                   {asProtobuf, false, [][]byte{small, framed([]byte("nothing"))}, "cannot be read", len(small)},
		"a large event in JSON":              {asJSON, false, [][]byte{[]byte(`{"type":"ADDED","object":{"items":[` + strings.Repeat("{},", mebibyte) + `{}]}}`)}, "--member-answer-limit", 0},
		"an endless JSON event":              {asJSON, true, [][]byte{[]byte(`{"a":"` + strings.Repeat("x", mebibyte))}, "", 0},
		"an endless string in JSON":          {asJSON, true, [][]byte{bytes.Repeat([]byte(" "), mebibyte)}, "any API server", 0},
		"an encoding that was not requested": {"application/yaml", false, [][]byte{[]byte("{}")}, "cannot be read", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readWatch(t, stream(t, tc.contentType, tc.endless, tc.parts...))
			if p := access.AsConnectionProblem(err); p == nil || p.Reason != v1alpha1.ReasonAnswersRefused || !strings.Contains(p.Message, tc.says) {
				t.Errorf("error is %v, want a Problem with reason AnswersRefused that contains %q", err, tc.says)
			}
			if tc.passes > 0 && len(got) != tc.passes {
				t.Errorf("%d bytes passed, want %d", len(got), tc.passes)
			}
		})
	}
}

// endless are quantities that the decoder, or a comparison after it, takes minutes to compute.
var endless = []string{"1e-2147483647", "1000000000000000000000e900000000", "1e2000000001"}

// Xylem rejects a quantity that is out of range before it decodes the response, and ends the link.
func TestEndlessQuantities(t *testing.T) {
	for _, text := range endless {
		capacity := func(value string) string {
			return `{"apiVersion":"v1","spec":{"capacity":{"storage":` + value + `}},"kind":"PersistentVolume"}`
		}
		raw := field(2, field(1, append(field(1, []byte("storage")), field(2, field(1, []byte(text)))...)))
		for name, tc := range map[string]struct {
			contentType string
			object, list,
			event []byte
		}{
			"protobuf": {
				budget.ProtobufType, document("PersistentVolume", raw), document("PersistentVolumeList", field(2, raw)), added("PersistentVolume", raw),
			},
			"JSON": {
				budget.JSONType, []byte(capacity(`"` + text + `"`)), []byte(`{"items":[` + capacity(`"`+text+`"`) + `],"kind":"PersistentVolumeList","apiVersion":"v1"}`),
				[]byte(`{"object":` + capacity(`"`+text+`"`) + `,"type":"ADDED"}`),
			},
			"JSON numbers": {
				budget.JSONType, []byte(capacity(text)), []byte(`{"items":[` + capacity(text) + `],"kind":"PersistentVolumeList","apiVersion":"v1"}`),
				[]byte(`{"object":` + capacity(text) + `,"type":"ADDED"}`),
			},
		} {
			for how, read := range map[string]func() error{
				"get": func() error {
					return hostile(t, tc.contentType, "", tc.object).Live.Get(t.Context(), client.ObjectKey{Name: "pv"}, &corev1.PersistentVolume{})
				},
				"list": func() error {
					return hostile(t, tc.contentType, "", tc.list).Live.List(t.Context(), &corev1.PersistentVolumeList{})
				},
				"watch": func() error {
					return watched(t, stream(t, tc.contentType+";stream=watch", false, tc.event))
				},
			} {
				t.Run(how+" "+text+" in "+name, func(t *testing.T) {
					done := make(chan error, 1)
					go func() { done <- read() }()
					select {
					case err := <-done:
						if p := access.AsConnectionProblem(err); p == nil || p.Reason != v1alpha1.ReasonAnswersRefused || !strings.Contains(p.Message, "out of range") {
							t.Errorf("error is %v, want a Problem with reason AnswersRefused", err)
						}
					case <-time.After(10 * time.Second): // decoding cannot be canceled
						t.Fatal("the response is still being decoded")
					}
				})
			}
		}
	}
}

// watched waits until the watch ends, and returns the Problem that ended the link. It returns an error
// without a Problem if the client decodes an event.
func watched(t *testing.T, c *member.Connection) error {
	clientset, err := kubernetes.NewForConfigAndClient(c.Config, c.Watches)
	if err != nil {
		return err
	}
	w, err := clientset.CoreV1().PersistentVolumes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	if event, ok := <-w.ResultChan(); ok && event.Type == watch.Added {
		return errors.New("the client decoded the event")
	}
	return c.Limiter.WaitUntilExceeded(t.Context())
}

// podPage returns a list of n Pods, each with a label of the given length.
func podPage(n, label int) *corev1.PodList {
	list := &corev1.PodList{}
	for i := range n {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("web-%03d", i), Labels: map[string]string{"a": strings.Repeat("x", label)},
		}})
	}
	return list
}

// The total size of a member's objects in caches is limited. It decreases when objects are missing from the next
// list.
func TestCachesAreBounded(t *testing.T) {
	const labels = 10_000
	limits := budget.DefaultMemoryLimits
	limits.CacheBytes = 40 * 2 * labels
	h := &CacheBudget{Limiter: budget.NewMemoryLimiter(limits, clientgoscheme.Scheme)}
	pages := make(chan *corev1.PodList, 1)
	c := h.countedListWatch(&toolscache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (k8sruntime.Object, error) {
		if options.Limit != maxPageObjects || options.ResourceVersion != "" {
			t.Errorf("list options are %+v, want limit %d and no resourceVersion", options, maxPageObjects)
		}
		return <-pages, nil
	}}, kindReduction{reduce: dropManagedFields})
	list := func(page *corev1.PodList) error {
		pages <- page
		_, err := c.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		return err
	}
	if err := list(podPage(15, labels)); err != nil {
		t.Fatal(err)
	}
	one := h.total / 15
	if one < labels || one > 2*labels {
		t.Fatalf("a Pod of at least %d bytes counts as %d, want at most twice that", labels, one)
	}
	if err := list(podPage(15, labels)); err != nil || h.total != 15*one {
		t.Errorf("after a repeated list, the cache counts %d bytes, want %d; error %v", h.total, 15*one, err)
	}
	if err := list(podPage(10, labels)); err != nil || h.total != 10*one {
		t.Errorf("10 Pods count as %d, want %d; error %v", h.total, 10*one, err)
	}
	err := list(podPage(100, labels))
	if p := access.AsConnectionProblem(err); p == nil || p.Reason != v1alpha1.ReasonAnswersRefused || !strings.Contains(p.Message, "--member-cache-limit") {
		t.Errorf("error is %v for too many Pods, want a Problem that names --member-cache-limit", err)
	}
	if err := h.Limiter.WaitUntilExceeded(t.Context()); access.AsConnectionProblem(err) == nil {
		t.Errorf("the link ended with %v, want a Problem", err)
	}
}

// A member's normal responses do not exceed the limits.
func TestOrdinaryResponsesPass(t *testing.T) {
	page := podPage(500, 1000)
	page.APIVersion, page.Kind = "v1", "PodList"
	raw, err := page.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	c := hostile(t, budget.ProtobufType, "", document("PodList", raw))
	var got corev1.PodList
	if err := c.Live.List(t.Context(), &got, client.InNamespace("shop")); err != nil || len(got.Items) != len(page.Items) {
		t.Errorf("got %d Pods, error %v; want %d Pods", len(got.Items), err, len(page.Items))
	}
	if left := c.Limiter.InFlightBytes.Load(); left != 0 {
		t.Errorf("%d bytes are still in flight, want 0", left)
	}
	small := added("Pod", field(1, field(1, []byte("web"))))
	w := stream(t, budget.ProtobufType+";stream=watch", false, small, small)
	config := *w.Config
	config.ContentType = budget.ProtobufType
	clients, err := kubernetes.NewForConfigAndClient(&config, w.Watches)
	if err != nil {
		t.Fatal(err)
	}
	watching, err := clients.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for range 2 {
		if event := <-watching.ResultChan(); event.Type != watch.Added {
			t.Errorf("event is %+v, want type Added", event)
		}
	}
}

// A page that exceeds the limit of a response is divided, and does not end the link, because a host's
// tenants choose the sizes of their objects. A page of one object still ends it.
func TestPagesAreDivided(t *testing.T) {
	for name, tc := range map[string]struct {
		size   int // of each object, in bytes
		limits []string
		ends   bool
	}{
		"ordinary objects":                     {1 << 10, []string{"100", "100"}, false},
		"objects of the largest size":          {1 << 20, []string{"100", "25", "6", "1", "4", "1"}, false},
		"an object that no API server accepts": {budget.MaxResponseBytes, []string{"100", "25", "6", "1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var limits []string
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				limit := request.URL.Query().Get("limit")
				limits = append(limits, limit)
				n, _ := strconv.Atoi(limit)
				page := podPage(min(n, 5*mebibyte/tc.size+1), tc.size)
				page.APIVersion, page.Kind, page.Continue = "v1", "PodList", "next"
				raw, _ := page.Marshal()
				w.Header().Set("Content-Type", budget.ProtobufType)
				_, _ = w.Write(document("PodList", raw))
			}))
			defer server.Close()
			connection := membertest.ConnectToServer(t, server)
			config := *connection.Config
			config.ContentType = budget.ProtobufType
			clients, err := kubernetes.NewForConfigAndClient(&config, connection.Watches)
			if err != nil {
				t.Fatal(err)
			}
			h := &CacheBudget{Limiter: connection.Limiter}
			c := h.countedListWatch(&toolscache.ListWatch{ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (k8sruntime.Object, error) {
				return clients.CoreV1().Pods("").List(ctx, options)
			}}, kindReduction{reduce: dropManagedFields})
			_, err = c.ListWithContext(t.Context(), metav1.ListOptions{})
			if err == nil {
				_, err = c.ListWithContext(t.Context(), metav1.ListOptions{Continue: "next"})
			}
			if ended := access.AsConnectionProblem(err) != nil; ended != tc.ends || !ended && err != nil {
				t.Errorf("error is %v, want a Problem: %t", err, tc.ends)
			}
			if !slices.Equal(limits, tc.limits) {
				t.Errorf("the requests' limits are %v, want %v", limits, tc.limits)
			}
		})
	}
}
