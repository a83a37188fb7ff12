package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
)

// records is a host with registrations and the records of their members' fences.
type records struct {
	registrations
	restored map[string]string // by the record's name
	fails    int
}

func (r *records) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.fails > 0 {
		r.fails--
		return errors.New("connection refused")
	}
	at, found := r.restored[key.Name]
	if !found || key.Namespace != "xylem-system" {
		return apierrors.NewNotFound(coordinationv1.Resource("leases"), key.Name)
	}
	into.SetAnnotations(map[string]string{v1alpha1.AnnotationHostRestored: at})
	return nil
}

// A restore of the host that one member detects concerns all members (I2, I3). Times after the
// start of this process are forged (I8).
func TestHostRestores(t *testing.T) {
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	before, after := start.Add(-time.Hour), start.Add(time.Hour)
	for name, tc := range map[string]struct {
		restored map[string]string
		noted    []time.Time
		own      time.Time
		want     time.Time
	}{
		"no member has detected a restore": {},
		"the record of an away member": {
			restored: map[string]string{"fence-id-away": before.Format(time.RFC3339)}, want: before,
		},
		"the latest of several records": {
			restored: map[string]string{"fence-id-1": before.Format(time.RFC3339), "fence-id-away": before.Add(time.Minute).Format(time.RFC3339)}, want: before.Add(time.Minute),
		},
		"a fence detects the restore":                 {noted: []time.Time{{}, before, {}}, want: before},
		"a member with a clock that is ahead":         {noted: []time.Time{after}, want: start},
		"a record from a member with such a clock":    {restored: map[string]string{"fence-id-1": after.Format(time.RFC3339)}, want: start},
		"the member itself has detected the last one": {noted: []time.Time{before}, own: before.Add(time.Minute), want: before.Add(time.Minute)},
		"a record that is not a time":                 {restored: map[string]string{"fence-id-1": "yesterday"}},
	} {
		t.Run(name, func(t *testing.T) {
			host := &records{restored: tc.restored}
			for registration, id := range map[string]string{"one": "id-1", "away": "id-away", "new": ""} {
				cr := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: registration}}
				cr.Status.ClusterID = id
				host.items = append(host.items, cr)
			}
			f := New(Config{HostLive: host, Namespace: "xylem-system", Clock: clocktesting.NewFakeClock(start)})
			f.restores.BeginLeading(start)
			f.readHostRestores(t.Context())
			for _, at := range tc.noted {
				f.restores.RecordRestore(at)
			}
			got := f.restores.AddHostRestores(fencing.RestoreTimes{Host: tc.own}, start)
			if !got.LastHostRestore().Equal(tc.want) || !got.Host.Equal(tc.own) {
				t.Errorf("the last restore is %s, and the member's own %s; want %s and %s", got.LastHostRestore(), got.Host, tc.want, tc.own)
			}
			leaf := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(before.Add(-time.Minute))}
			if lacks := got.MayLackRoot(leaf); lacks == tc.want.IsZero() {
				t.Errorf("an older leaf may lack its root: %t, want %t", lacks, !lacks)
			}
		})
	}
}

// The fleet connects no member before it has read the records.
func TestReadHostRestoresRetries(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	restored := c.Now().Add(-time.Hour)
	cr := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	cr.Status.ClusterID = "id-1"
	host := &records{registrations: registrations{items: []v1alpha1.ClusterRegistration{cr}}, fails: 1, restored: map[string]string{"fence-id-1": restored.Format(time.RFC3339)}}
	f := New(Config{HostLive: host, Namespace: "xylem-system", Clock: c})
	f.restores.BeginLeading(c.Now())
	read := make(chan struct{})
	go func() {
		defer close(read)
		f.readHostRestores(t.Context())
	}()
	for waiting := true; waiting; { // until it waits for the retry, then until it has read the record
		select {
		case <-read:
			waiting = false
		default:
			if c.HasWaiters() {
				c.Step(recordsRetryDelay)
			}
		}
	}
	if got := f.restores.AddHostRestores(fencing.RestoreTimes{}, c.Now()).HostAnywhere; !got.Equal(restored) {
		t.Errorf("the last restore is %s, want %s", got, restored)
	}
}

// A process that stands by does not detect a restore of the host. What it later learns from a member
// is not limited by when it started.
func TestRestoreWhileStandingBy(t *testing.T) {
	started := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	c := clocktesting.NewFakeClock(started)
	f := New(Config{HostLive: &records{}, Namespace: "xylem-system", Clock: c})
	restored := started.Add(time.Hour)
	c.SetTime(started.Add(2 * time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Start(ctx); err != nil {
		t.Fatal(err)
	}
	f.restores.RecordRestore(restored)
	if got := f.restores.AddHostRestores(fencing.RestoreTimes{}, c.Now()).HostAnywhere; !got.Equal(restored) {
		t.Errorf("the last restore is %s, want %s", got, restored)
	}
}

// Until the fence of each registered member was read, another restore may still be detected. A member
// that is lost or removed is not awaited, and no member for longer than restores.MaxFenceReadWait.
func TestRestoresMayBeUnknown(t *testing.T) {
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	older := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start.Add(-time.Second))}
	for name, tc := range map[string]struct {
		happens func(*Fleet)
		after   time.Duration
		obj     *metav1.ObjectMeta
		want    bool
	}{
		"no fence was read":                       {want: true},
		"one fence was read":                      {happens: func(f *Fleet) { f.restores.SettleMember("one") }, want: true},
		"both fences were read":                   {happens: func(f *Fleet) { f.restores.SettleMember("one"); f.restores.SettleMember("two") }},
		"a removed member has no link":            {happens: func(f *Fleet) { f.restores.SettleMember("one"); f.RemoveLink("two") }},
		"a member never responds, but is lost":    {happens: func(f *Fleet) { f.restores.SettleMember("one"); fail(f, "two", repeatedFailures) }},
		"a member has failed to respond once":     {happens: func(f *Fleet) { f.restores.SettleMember("one"); fail(f, "two", 1) }, want: true},
		"a member waits too long for the fence":   {after: fencing.MaxFenceReadWait},
		"the object is younger than this process": {obj: &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start)}},
	} {
		t.Run(name, func(t *testing.T) {
			host := &records{}
			for _, registration := range []string{"one", "two"} {
				host.items = append(host.items, v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: registration}})
			}
			f := New(Config{HostLive: host, Namespace: "xylem-system", Clock: clocktesting.NewFakeClock(start)})
			f.restores.BeginLeading(start)
			f.readHostRestores(t.Context())
			if tc.happens != nil {
				tc.happens(f)
			}
			if tc.obj == nil {
				tc.obj = older
			}
			if got := f.restores.AddHostRestores(fencing.RestoreTimes{}, start.Add(tc.after)).MayPrecedeHostRestore(tc.obj); got != tc.want {
				t.Errorf("unknown is %t, want %t", got, tc.want)
			}
		})
	}
}

// fail lets attempts to connect to a member fail.
func fail(f *Fleet, name string, times int) {
	s := &supervisor{fleet: f, name: name}
	for range times {
		_ = s.recordDisconnect(errors.New("connection refused"))
	}
}
