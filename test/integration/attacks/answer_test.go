package attacks_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	// shippedLimit is the manager's memory limit in KiB, from config/manager.
	shippedLimit = 1 << 20
)

// fieldOf returns a length-delimited protobuf field.
func fieldOf(number byte, value []byte) []byte {
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value))), value...)
}

// wrapped returns a v1 object in Kubernetes' protobuf encoding.
func wrapped(kind string, raw []byte) []byte {
	typeMeta := append(fieldOf(1, []byte("v1")), fieldOf(2, []byte(kind))...)
	return append([]byte("k8s\x00"), append(fieldOf(1, typeMeta), fieldOf(2, raw)...)...)
}

// empties contains 1 MiB of empty objects in field 2, which holds a list's items or a PodSpec's
// containers.
var empties = bytes.Repeat([]byte{0x12, 0}, 1<<19)

// peak returns the manager's peak memory in KiB.
func peak() int {
	GinkgoHelper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.Manager.PID()))
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	Expect(found).NotTo(BeNil())
	kib, err := strconv.Atoi(string(found[1]))
	Expect(err).NotTo(HaveOccurred())
	return kib
}

// linked responds like a member's API server until the caches are filled: it returns the namespace
// xylem-system, and accepts the fence.
func linked(w http.ResponseWriter, r *http.Request, otherwise http.HandlerFunc) {
	switch {
	case r.Method != http.MethodGet: // return the fence as it was sent
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case strings.Contains(r.URL.Path, "/leases/"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	case r.URL.Path == "/api/v1/namespaces/"+v1alpha1.DefaultNamespace:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"xylem-system","uid":"u"}}`)
	default:
		otherwise(w, r)
	}
}

// forced sets the annotation that allows the deletion of a registration even though its member
// does not respond.
func forced(ctx SpecContext, name string) {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(patched(ctx, x.Host.API, cr, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationForceDeregister+`":"true"}}}`)).To(Succeed())
}

var _ = Describe("A compromised API server of a member tries to make the manager run out of memory", func() {
	DescribeTable("with responses that are small until they are decoded", func(ctx SpecContext, name string, hostile http.HandlerFunc) {
		id := "0d6c2a35-1111-4000-8000-" + fmt.Sprintf("%012x", GinkgoRandomSeed()+int64(len(name)))
		server := serving(identified(id, "v1.36.3", func(w http.ResponseWriter, r *http.Request) { linked(w, r, hostile) }))
		registered(ctx, name, kubeconfigOf(server.URL, certified(server), "token: t"))
		DeferCleanup(forced, name, NodeTimeout(settle))
		says(ctx, name, v1alpha1.ReasonAnswersRefused, "--member-answer-limit")
		By("checking that Xylem still serves the other members, within the manager's default memory limit")
		barrier(ctx)
		AddReportEntry("the manager's peak memory", fmt.Sprintf("%d MiB", peak()>>10))
		Expect(peak()).To(BeNumerically("<", shippedLimit))
	},
		Entry("lists of empty objects", SpecTimeout(attackTime), "empty-lists", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") != "" { // this server does not stream lists
				http.Error(w, "sendInitialEvents is not known here", http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", protobufType)
			_, _ = w.Write(wrapped("PersistentVolumeList", empties))
		}),
		Entry("watch events for objects with empty parts", SpecTimeout(attackTime), "empty-events", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", protobufType+";stream=watch")
			event := append(fieldOf(1, []byte("ADDED")), fieldOf(2, fieldOf(1, wrapped("Pod", fieldOf(2, empties))))...)
			_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}),
		Entry("lists in JSON", SpecTimeout(attackTime), "empty-json", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") != "" {
				http.Error(w, "sendInitialEvents is not known here", http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"PersistentVolumeList","items":[`+strings.Repeat("{},", 1<<19)+`{}]}`)
		}),
	)
})
