package panics_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/test/panics"
)

// careless is a reconcile function that panics, as root_pvc once did for a deleted root.
func careless(context.Context, reconcile.Request) (reconcile.Result, error) {
	roots := map[string]*corev1.PersistentVolumeClaim{}
	return reconcile.Result{}, errors.New(roots["gone"].Name)
}

// logOf returns a manager's log of n reconciles that panic, in the given encoding.
func logOf(t *testing.T, n int, encoder zap.Opts) string {
	t.Helper()
	var out bytes.Buffer
	ctx := logf.IntoContext(t.Context(), zap.New(zap.WriteTo(&out), zap.StacktraceLevel(zapcore.PanicLevel), encoder).WithName("manager"))
	c, err := controller.NewUnmanaged("careless", controller.Options{Reconciler: reconcile.Func(careless), SkipNameValidation: ptr.To(true)})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if _, err := c.Reconcile(ctx, reconcile.Request{}); err == nil {
			t.Fatal("the reconcile did not panic")
		}
	}
	return out.String()
}

// TestInFindsRecovered uses the manager's own controller-runtime and log encoders.
func TestInFindsRecovered(t *testing.T) {
	for name, encoder := range map[string]zap.Opts{"console": zap.ConsoleEncoder(), "JSON": zap.JSONEncoder()} {
		t.Run(name, func(t *testing.T) {
			found := panics.In("2026-11-22 INFO all is well\n" + logOf(t, 3, encoder) + "2026-11-22 INFO all is well\n")
			if len(found) != 1 {
				t.Fatalf("found %d panics, want one that occurs three times:\n%s", len(found), strings.Join(found, "\n"))
			}
			for _, want := range []string{"3 times", "nil pointer dereference", "panics_test.careless", "panics_test.go:"} {
				if !strings.Contains(found[0], want) {
					t.Errorf("no %q in:\n%s", want, found[0])
				}
			}
		})
	}
}

func TestIn(t *testing.T) {
	for name, tt := range map[string]struct {
		log  string
		want []string // a text in each panic that In finds
	}{
		"nothing": {log: ""},
		"errors, and text that only resembles a panic": {
			log: "2026-11-22 ERROR Reconciler error {\"error\": \"conflict\"}\n2026-11-22 INFO a Pod says \"panic: at the disco\"\n",
		},
		"a panic that ends the process": {
			log:  "2026-11-22 INFO begin\npanic: runtime error: index out of range [1] with length 1\n\ngoroutine 7 [running]:\nmain.main()\n\t/src/main.go:3 +0x1d\nexit status 2\n",
			want: []string{"main.go:3"},
		},
		"a modified cache object": {log: "panic: cache *v1.Pod modified\n\ngoroutine 1 [running]:\ncache.check()\n\t/src/cache.go:9\n", want: []string{"cache.go:9"}},
		"concurrent map writes":   {log: "fatal error: concurrent map writes\n\ngoroutine 1 [running]:\nmain.f()\n\t/src/f.go:9\n", want: []string{"f.go:9"}},
		"an HTTP handler":         {log: "2026/11/22 http: panic serving 127.0.0.1:1: boom\ngoroutine 1 [running]:\nnet/http.f()\n\t/src/h.go:9\n", want: []string{"h.go:9"}},
		"client-go's own format": {
			log:  "E1122 23:00:00.000000 1 panic.go:1] \"Observed a panic\" panic=\"boom\" stacktrace=<\n\tgoroutine 9 [running]:\n\tpanic({0x1, 0x2})\n\t\t/go/panic.go:1 +0x1\n\tclient.f()\n\t\t/src/k.go:9\n >\n",
			want: []string{"k.go:9"},
		},
		"two panics": {
			log:  "panic: a\n\ngoroutine 1 [running]:\nmain.f()\n\t/src/f.go:1\npanic: b\n\ngoroutine 1 [running]:\nmain.g()\n\t/src/g.go:2\n",
			want: []string{"f.go:1", "g.go:2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := panics.In(tt.log)
			if len(found) != len(tt.want) {
				t.Fatalf("found %q, want %d panics", found, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(found[i], want) {
					t.Errorf("no %q in:\n%s", want, found[i])
				}
			}
		})
	}
}
