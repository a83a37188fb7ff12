package rootpv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

const grace = time.Minute

// unused returns a fulfilled promise whose disk is released with its last Pod. The Pod for
// which it was created is gone.
func unused(change ...func(*volume.Observed)) *volume.Observed {
	s := seen(phase(corev1.VolumeBound))
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}, Parameters: map[string]string{
		v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused,
		v1alpha1.ParameterReleaseGrace: grace.String(),
	}}
	consumer := pod("app", here.NodeName)
	s.Host = hostpv.FulfillPromise(hostpv.PromiseWithMember(hostpv.NewPromiseFor(root, class), here, &consumer), s.Leaf, deletes, here)
	s.Host.UID, s.Host.ResourceVersion = "host-pv-uid", "7"
	s.Host.Status.Phase = corev1.VolumeBound
	s.Root.Spec.VolumeName = s.Host.Name
	for _, c := range change {
		c(s)
	}
	if hostpv.IsReleasedOrFailed(s.Host) {
		s.Root = nil
	}
	return s
}

func pod(name, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "pod-uid"},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}},
	}
}

func usedOn(node string) func(*volume.Observed) {
	return func(s *volume.Observed) { s.PromiseUsers = append(s.PromiseUsers, pod("user", node)) }
}

func markedFor(d time.Duration) func(*volume.Observed) {
	return func(s *volume.Observed) {
		s.Host.Annotations[v1alpha1.AnnotationUnusedSince] = now.Add(-d).UTC().Format(time.RFC3339)
	}
}

func releasing(s *volume.Observed) {
	markedFor(2 * grace)(s)
	s.Host.Annotations[v1alpha1.AnnotationReleasing] = string(s.UID)
}

func without(key string) func(*volume.Observed) {
	return func(s *volume.Observed) { delete(s.Host.Annotations, key) }
}

// listed means that this process listed the Pods after the mark, the given time ago.
func listed(since time.Duration) func(*volume.Observed) {
	return func(s *volume.Observed) {
		s.Unused = volume.Unused{PodsListed: true, Duration: since, GracePeriod: grace}
	}
}

// saved means that a VolumeSnapshot of the claim is still to be taken.
func saved(s *volume.Observed) {
	s.Root = s.Root.DeepCopy()
	s.Root.Finalizers = append(s.Root.Finalizers, mirrorsnapshot.FinalizerSource)
}

// withoutFinalizer removes the PV's finalizers, as the deregistration of its cluster does.
func withoutFinalizer(s *volume.Observed) { s.Host.Finalizers = nil }

func leafClaimGone(s *volume.Observed) { s.LeafClaim = nil }

func TestDecideUnused(t *testing.T) {
	for name, tc := range map[string]struct {
		seen *volume.Observed
		want lifecycle.Step
	}{
		"no Pod uses the promise":                                                   {unused(), lifecycle.MarkUnused},
		"a Pod on the member's node":                                                {unused(usedOn(here.NodeName)), lifecycle.None},
		"a Pod without a node":                                                      {unused(usedOn("")), lifecycle.None},
		"marked for less than the grace period":                                     {unused(markedFor(grace/3), listed(grace/3)), lifecycle.None},
		"marked, but a Pod is on the member's node":                                 {unused(markedFor(2*grace), usedOn(here.NodeName)), lifecycle.Unmark},
		"marked, but a Pod has no node yet":                                         {unused(markedFor(2*grace), usedOn("")), lifecycle.Unmark},
		"the grace period is over":                                                  {unused(markedFor(grace), listed(grace)), lifecycle.MarkReleasing},
		"marked long ago, by another leader":                                        {unused(markedFor(24 * time.Hour)), lifecycle.CountGrace},
		"marked long ago, and Pods were just listed":                                {unused(markedFor(24*time.Hour), listed(0)), lifecycle.None},
		"the mark's time is in the future":                                          {unused(markedFor(-24 * time.Hour)), lifecycle.CountGrace},
		"an invalid mark, and Pods were listed":                                     {unused(listed(grace), func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationUnusedSince] = "ever" }), lifecycle.MarkUnused},
		"a Pod on a node that may be the member's":                                  {unused(usedOn("renamed")), lifecycle.None},
		"marked, but a Pod is on a node that may be the member's":                   {unused(markedFor(2*grace), usedOn("renamed")), lifecycle.Unmark},
		"an invalid mark, and a Pod on the member's node":                           {unused(usedOn(here.NodeName), func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationUnusedSince] = "ever" }), lifecycle.Unmark},
		"an invalid mark":                                                           {unused(func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationUnusedSince] = "ever" }), lifecycle.MarkUnused},
		"marked as releasing":                                                       {unused(releasing), lifecycle.SetDeleteUnused},
		"marked as releasing, but a Pod is on the member's node":                    {unused(releasing, usedOn(here.NodeName)), lifecycle.Unmark},
		"marked as releasing, perhaps before a restore of the host":                 {unused(releasing, func(s *volume.Observed) { s.Unused.MarkOutdated = true }), lifecycle.Unmark},
		"marked as releasing another disk":                                          {unused(markedFor(2*grace), func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationReleasing] = "other" }), lifecycle.CountGrace},
		"the leaf PV was set to Delete":                                             {unused(releasing, leafPolicy(deletes)), lifecycle.DeleteUnused},
		"the leaf PV was set to Delete, and an admin set Retain in the host":        {unused(releasing, leafPolicy(deletes), hostPolicy(retains)), lifecycle.SetRetain},
		"an admin set Retain in the host, and the leaf PV has policy Retain again":  {unused(releasing, hostPolicy(retains)), lifecycle.None},
		"the leaf PV was set to Delete, and a Pod is created":                       {unused(releasing, leafPolicy(deletes), usedOn(here.NodeName)), lifecycle.DeleteUnused},
		"the leaf claim is being deleted":                                           {unused(releasing, leafPolicy(deletes), func(s *volume.Observed) { s.LeafClaim.DeletionTimestamp = &now }), lifecycle.None},
		"the leaf claim is gone":                                                    {unused(releasing, leafPolicy(deletes), leafClaimGone), lifecycle.None},
		"the leaf PV is gone, but the leaf claim exists":                            {unused(releasing, noLeaf), lifecycle.DeleteUnused},
		"the leaf PV and the leaf claim are gone":                                   {unused(releasing, noLeaf, leafClaimGone), lifecycle.Unfulfil},
		"the cluster was deregistered, and is registered again":                     {unused(withoutFinalizer), lifecycle.None},
		"the cluster was deregistered during the release, and is registered again":  {unused(withoutFinalizer, releasing, leafPolicy(deletes)), lifecycle.UpdateHost},
		"the cluster was deregistered, and the leaf PV and the leaf claim are gone": {unused(withoutFinalizer, releasing, noLeaf, leafClaimGone), lifecycle.Unfulfil},
		"the cluster was deregistered, and a Pod is created in time":                {unused(withoutFinalizer, releasing, usedOn(here.NodeName)), lifecycle.UpdateHost},
		"the cluster was deregistered, and the promise is abandoned":                {unused(withoutFinalizer, releasing, noLeaf, leafClaimGone, abandon), lifecycle.None},
		"the cluster was deregistered, and the promise's claim is gone":             {unused(withoutFinalizer, releasing, noLeaf, leafClaimGone, phase(corev1.VolumeReleased)), lifecycle.DropHost},
		"the leaf PV and the leaf claim are gone, and Xylem did not delete them":    {unused(noLeaf, leafClaimGone), lifecycle.None},
		"no consumer was ever recorded":                                             {unused(without(v1alpha1.AnnotationConsumer)), lifecycle.None},
		"the leaf PV's original policy is Retain":                                   {unused(gave("Retain")), lifecycle.None},
		"the host PV has policy Retain":                                             {unused(hostPolicy(retains)), lifecycle.None},
		"an admin set Retain within the grace period":                               {unused(markedFor(2*grace), hostPolicy(retains)), lifecycle.None},
		"the leaf PV has no stamp":                                                  {unused(func(s *volume.Observed) { s.LeafStamped = false }), lifecycle.None},
		"the promise's claim is gone":                                               {unused(phase(corev1.VolumeReleased)), lifecycle.SetDelete},
		"the promise's claim is gone during the release":                            {unused(releasing, leafPolicy(deletes), phase(corev1.VolumeReleased)), lifecycle.DeleteClaim},
		// A snapshot or a clone of it must still be created, for example because the member's
		// snapshot-controller is down.
		"no Pod uses the promise, but it is being saved":                     {unused(saved), lifecycle.None},
		"the grace period is over, but it is being saved":                    {unused(markedFor(grace), listed(grace), saved), lifecycle.Unmark},
		"marked as releasing, but it is being saved":                         {unused(releasing, saved), lifecycle.Unmark},
		"the leaf PV was set to Delete, but it is being saved":               {unused(releasing, leafPolicy(deletes), saved), lifecycle.SetRetain},
		"the leaf claim is being deleted, although a snapshot was requested": {unused(releasing, noLeaf, saved), lifecycle.DeleteUnused},
		"no Pod uses the promise, but a claim is to be cloned from it":       {unused(func(s *volume.Observed) { s.Needs = []string{"copy"} }), lifecycle.None},
		"abandoned": {unused(func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationAbandon] = "true" }), lifecycle.None},
		"the promise's disk is released only with its claim": {unused(func(s *volume.Observed) { delete(s.Host.Spec.CSI.VolumeAttributes, v1alpha1.ParameterRelease) }), lifecycle.None},
	} {
		t.Run(name, func(t *testing.T) {
			if plan := lifecycle.NextPlan(tc.seen); plan.Step != tc.want && plan.StepOwnedBy(lifecycle.RootPV) != tc.want {
				t.Errorf("step is %q, want %q: %+v", plan.StepOwnedBy(lifecycle.RootPV), tc.want, plan)
			}
		})
	}
}

// If the policy is Retain, a disk that no Pod uses is kept, and one event reports this.
func TestKept(t *testing.T) {
	for name, s := range map[string]*volume.Observed{
		"the leaf PV's original policy is Retain":     unused(gave("Retain")),
		"the host PV has policy Retain":               unused(hostPolicy(retains)),
		"an admin set Retain within the grace period": unused(markedFor(2*grace), hostPolicy(retains)),
		"an admin set Retain after the mark":          unused(releasing, hostPolicy(retains)),
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(2)
			r := &reconciler{Link: &member.Link{Member: here, Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(now.Time)}, news: news.New(clocktesting.NewFakePassiveClock(now.Time)), options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}}
			for range 2 {
				if _, err := proceed(t, r, s); err != nil {
					t.Fatal(err)
				}
			}
			if got := <-recorder.Events; !strings.Contains(got, v1alpha1.ReasonReleaseRefused) {
				t.Errorf("event is %q, want reason %s", got, v1alpha1.ReasonReleaseRefused)
			}
			if len(recorder.Events) > 0 {
				t.Error("the event was emitted twice")
			}
		})
	}
}

// A disk is checked at intervals if the events of the only Pods that use it do not enqueue it.
func TestLooksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		seen *volume.Observed
		want time.Duration
	}{
		"a Pod on the member's node":                           {unused(usedOn(here.NodeName)), 0},
		"a Pod on the member's node, and a Pod without a node": {unused(usedOn(here.NodeName), usedOn("")), 0},
		"a Pod without a node":                                 {unused(usedOn("")), neededCheckInterval},
		"a Pod on a node that may be the member's":             {unused(usedOn("renamed")), neededCheckInterval},
		"a volume that is not a promise":                       {seen(phase(corev1.VolumeBound)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{Link: &member.Link{Member: here, Clock: clocktesting.NewFakePassiveClock(now.Time)}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}}
			result, err := proceed(t, r, tc.seen)
			if err != nil || result.RequeueAfter != tc.want {
				t.Errorf("the next check is after %s, want %s: %v", result.RequeueAfter, tc.want, err)
			}
		})
	}
}

// unfulfilled returns a promise in the member that has no disk, and whose claim is gone.
func unfulfilled(change ...func(*volume.Observed)) *volume.Observed {
	host := hostpv.PromiseWithMember(hostpv.NewPromiseFor(root, &storagev1.StorageClass{}), here, nil)
	host.UID, host.Status.Phase = "host-uid", corev1.VolumeReleased
	s := &volume.Observed{Member: here, Host: host}
	for _, c := range change {
		c(s)
	}
	return s
}

func TestDecideUnfulfilled(t *testing.T) {
	deleting := func(s *volume.Observed) { s.Host.DeletionTimestamp = &now }
	for name, tc := range map[string]struct {
		seen *volume.Observed
		want lifecycle.Step
	}{
		"the claim is gone":                                   {unfulfilled(), lifecycle.EndPromise},
		"the claim is gone, and the policy is Retain":         {unfulfilled(hostPolicy(retains)), lifecycle.EndPromise},
		"the claim exists":                                    {unfulfilled(phase(corev1.VolumeBound)), lifecycle.None},
		"the promise is being deleted, and its claim is gone": {unfulfilled(deleting), lifecycle.EndPromise},
		"the promise is being deleted, and an admin freed it": {unfulfilled(deleting, phase(corev1.VolumeAvailable)), lifecycle.DropFinalizer},
		"abandoned: host_volume releases the promise":         {unfulfilled(func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationAbandon] = "true" }), lifecycle.None},
	} {
		t.Run(name, func(t *testing.T) {
			if plan := lifecycle.NextPlan(tc.seen); plan.Step != tc.want && plan.StepOwnedBy(lifecycle.RootPV) != tc.want {
				t.Errorf("step is %q, want %q: %+v", plan.StepOwnedBy(lifecycle.RootPV), tc.want, plan)
			}
		})
	}
}

// accepts accepts every write.
type accepts struct{ client.Client }

func (accepts) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

// podReads also serves lists of Pods.
type podReads struct {
	reads
	pods []corev1.Pod
	err  error
}

func (r *podReads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.err != nil {
		return r.err
	}
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return r.reads.List(ctx, list, opts...)
	}
	pods.Items = r.pods
	return nil
}

// Each step of a release depends on live reads of the promise and of the Pods.
func TestReleaseProves(t *testing.T) {
	errList := errors.New("no list")
	finished := pod("done", here.NodeName)
	finished.Status.Phase = corev1.PodSucceeded
	other := pod("other", here.NodeName)
	other.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "others"
	daemon := pod("daemon", here.NodeName)
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: ptr.To(true)}}
	adopted := *daemon.DeepCopy()
	adopted.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		pods    []corev1.Pod
		listErr error
		// host changes the result of a live read of the promise.
		host      func(*corev1.PersistentVolume)
		suspended error
		written   bool
		fails     error
		requeued  bool
	}{
		"no Pod exists":                                     {written: true},
		"a Pod that has finished":                           {pods: []corev1.Pod{finished}, written: true},
		"a Pod that uses another claim":                     {pods: []corev1.Pod{other}, written: true},
		"a Pod in another member":                           {pods: []corev1.Pod{pod("far", "kosmos-cluster39")}, written: true},
		"a Pod on another node of this cluster":             {pods: []corev1.Pod{pod("user", "kosmos-older")}, requeued: true},
		"a Pod on a node that names no cluster":             {pods: []corev1.Pod{pod("user", "worker-1")}, requeued: true},
		"a Pod on a node that was deleted or renamed":       {pods: []corev1.Pod{pod("user", "gone")}, requeued: true},
		"a Pod on the member's node":                        {pods: []corev1.Pod{pod("user", here.NodeName)}, requeued: true},
		"a Pod without a node":                              {pods: []corev1.Pod{pod("user", "")}, requeued: true},
		"a DaemonSet's Pod, which has no leaf":              {pods: []corev1.Pod{daemon}, written: true},
		"a Pod that was pushed, and adopted by a DaemonSet": {pods: []corev1.Pod{adopted}, requeued: true},
		"the list fails":                                    {listErr: errList, fails: errList},
		"the promise has changed":                           {host: func(pv *corev1.PersistentVolume) { pv.ResourceVersion = "8" }},
		"the promise is gone":                               {host: func(pv *corev1.PersistentVolume) { *pv = corev1.PersistentVolume{} }},
		"destruction is suspended":                          {suspended: guarded.ErrSuspended, fails: guarded.ErrSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			s := unused(releasing)
			host := &podReads{pods: tc.pods, err: tc.listErr}
			host.nodes = map[string]string{"kosmos-cluster39": "id39", "kosmos-older": here.ClusterID, "worker-1": ""}
			live := s.Host.DeepCopy()
			if tc.host != nil {
				tc.host(live)
			}
			if live.Name != "" {
				host.volume = live
			}
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: host, Live: &reads{volume: s.Leaf}, Clock: clocktesting.NewFakePassiveClock(now.Time), CheckNotSuspended: func() error { return tc.suspended },
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
				HostWriter:   guarded.NewHostWriter(accepts{}, here.Registration, guarded.HostOnlyGuard{}),
			}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}}
			result, err := proceed(t, r, s)
			switch {
			case tc.written && !errors.Is(err, errWrite):
				t.Errorf("the leaf PV was not written: %v", err)
			case !tc.written && errors.Is(err, errWrite):
				t.Error("the leaf PV was written")
			case tc.fails != nil && !errors.Is(err, tc.fails):
				t.Errorf("error is %v, want %v", err, tc.fails)
			case !tc.written && tc.fails == nil && err != nil:
				t.Errorf("unexpected error: %v", err)
			}
			if requeued := result.RequeueAfter > 0; requeued != tc.requeued {
				t.Errorf("checked again: %t, want %t", requeued, tc.requeued)
			}
		})
	}
}

// patched records the annotations of the last patched PV, and accepts every write.
type patched struct {
	client.Client
	annotations map[string]string
}

func (p *patched) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	p.annotations = object.GetAnnotations()
	return nil
}

// Each process measures the grace period itself. After another leader's mark, it starts again,
// whatever that leader's clock shows, and a Pod that uses the claim ends it.
func TestGraceOfThisProcess(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(now.Time)
	s := unused(markedFor(24 * time.Hour))
	host, write := &podReads{reads: reads{volume: s.Host}}, &patched{}
	r := &reconciler{Link: &member.Link{
		Member: here, HostLive: host, Clock: clock, CheckNotSuspended: func() error { return nil },
		HostWriter: guarded.NewHostWriter(write, here.Registration, guarded.HostOnlyGuard{}),
	}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}}
	step := func(after time.Duration) time.Duration {
		t.Helper()
		clock.SetTime(clock.Now().Add(after))
		write.annotations = nil
		result, err := proceed(t, r, s)
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	for i, want := range []time.Duration{grace, grace, grace / 2} {
		if got := step(time.Duration(i/2) * grace / 2); got != want || write.annotations != nil {
			t.Fatalf("step %d: checked again after %s, want %s; annotations %v", i, got, want, write.annotations)
		}
	}
	step(grace / 2)
	if write.annotations[v1alpha1.AnnotationReleasing] != string(s.UID) {
		t.Errorf("not marked as releasing after the grace period: %v", write.annotations)
	}
	host.pods = []corev1.Pod{pod("user", here.NodeName)}
	s.PromiseUsers = host.pods
	step(0)
	if _, marked := write.annotations[v1alpha1.AnnotationUnusedSince]; write.annotations == nil || marked {
		t.Errorf("the mark was not removed when a Pod used it: %v", write.annotations)
	}
	host.pods, s.PromiseUsers = nil, nil
	if got := step(time.Hour); got != grace || write.annotations != nil {
		t.Errorf("checked again after %s with annotations %v, want the grace period to start again", got, write.annotations)
	}
}

// A mark is written unless a valid one exists, whatever time another leader has recorded in it.
func TestMarks(t *testing.T) {
	for name, tc := range map[string]struct {
		seen *volume.Observed
		want string // the written mark; empty if none is written
	}{
		"no mark":                            {unused(), now.UTC().Format(time.RFC3339)},
		"an invalid mark":                    {unused(func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationUnusedSince] = "ever" }), now.UTC().Format(time.RFC3339)},
		"marked long ago":                    {unused(markedFor(24 * time.Hour)), ""},
		"the mark's time is in the future":   {unused(markedFor(-24 * time.Hour)), ""},
		"marked as releasing another volume": {unused(markedFor(2*grace), func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationReleasing] = "other" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			write := &patched{}
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: &podReads{reads: reads{volume: tc.seen.Host}}, Clock: clocktesting.NewFakePassiveClock(now.Time),
				CheckNotSuspended: func() error { return nil }, HostWriter: guarded.NewHostWriter(write, here.Registration, guarded.HostOnlyGuard{}),
			}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}}
			result, err := proceed(t, r, tc.seen)
			if err != nil || write.annotations[v1alpha1.AnnotationUnusedSince] != tc.want {
				t.Errorf("mark is %q, want %q: %v", write.annotations[v1alpha1.AnnotationUnusedSince], tc.want, err)
			}
			if tc.want == "" && result.RequeueAfter != grace {
				t.Errorf("checked again after %s, want %s", result.RequeueAfter, grace)
			}
		})
	}
}

// A backup of the host may contain the mark that a disk is being released, although Pods have used the
// disk since, which the restored host has lost (I2).
func TestReleasingMarkFromBackup(t *testing.T) {
	for name, tc := range map[string]struct {
		seen   *volume.Observed
		age    time.Duration // of the disk at the restore; zero without a restore
		listed bool
		want   bool
	}{
		"the host was never restored":          {seen: unused(releasing)},
		"the host was restored":                {seen: unused(releasing), age: time.Hour, want: true},
		"the disk is younger than the restore": {seen: unused(releasing), age: -time.Hour},
		"this process has counted the grace":   {seen: unused(releasing), age: time.Hour, listed: true},
		"the promise is not marked":            {seen: unused(), age: time.Hour},
		"the disk is gone":                     {seen: unused(releasing, noLeaf), age: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var times fencing.RestoreTimes
			if tc.age != 0 {
				times.HostAnywhere = now.Add(tc.age)
			}
			if tc.seen.Leaf != nil {
				tc.seen.Leaf.CreationTimestamp = now
			}
			r := &reconciler{Link: &member.Link{Member: here, Clock: clocktesting.NewFakePassiveClock(now.Time), RestoreTimes: func() fencing.RestoreTimes { return times }}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}}
			if tc.listed {
				r.options.UnusedPromises.Begin(tc.seen.Host.UID, tc.seen.Host.Annotations[v1alpha1.AnnotationUnusedSince], now.Time)
			}
			if observeUnused(r, tc.seen); tc.seen.Unused.MarkOutdated != tc.want {
				t.Errorf("outdated is %t, want %t", tc.seen.Unused.MarkOutdated, tc.want)
			}
		})
	}
}

// Once the leaf PV has policy Delete, the release cannot be undone, even if the cache still shows
// policy Retain. The promise keeps its marks, and no Pod is pushed.
func TestReleaseCannotBeUndone(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		seen   *volume.Observed
		change func(leaf *reads)
		want   error
	}{
		"nothing has changed": {seen: unused(releasing), want: errWrite},
		"the leaf PV was just set to Delete": {seen: unused(releasing), change: func(leaf *reads) {
			leaf.volume.Spec.PersistentVolumeReclaimPolicy = deletes
		}},
		"the leaf PV was just deleted":               {seen: unused(releasing), change: func(leaf *reads) { leaf.volume = nil }},
		"the leaf PV was restored under another UID": {seen: unused(releasing), change: func(leaf *reads) { leaf.volume.UID = "restored" }},
		"the member does not respond":                {seen: unused(releasing), change: func(leaf *reads) { leaf.err = down }, want: down},
		"not marked as releasing yet":                {seen: unused(markedFor(grace)), change: func(leaf *reads) { leaf.err = down }, want: errWrite},
		"marked as releasing another disk":           {seen: unused(markedFor(grace), func(s *volume.Observed) { s.Host.Annotations[v1alpha1.AnnotationReleasing] = "other" }), change: func(leaf *reads) { leaf.err = down }, want: errWrite},
	} {
		for who, pod := range map[string]corev1.Pod{"seen": pod("user", here.NodeName), "found by the last list": pod("user", "")} {
			t.Run(name+", a Pod is "+who, func(t *testing.T) {
				s := tc.seen
				leaf := &reads{volume: s.Leaf.DeepCopy()}
				if tc.change != nil {
					tc.change(leaf)
				}
				if who == "seen" {
					s.PromiseUsers = []corev1.Pod{pod}
				}
				r := &reconciler{Link: &member.Link{
					Member: here, HostLive: &podReads{reads: reads{volume: s.Host}, pods: []corev1.Pod{pod}}, Live: leaf, Clock: clocktesting.NewFakePassiveClock(now.Time), CheckNotSuspended: func() error { return nil },
					HostWriter: guarded.NewHostWriter(writes{}, here.Registration, guarded.HostOnlyGuard{}),
				}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}}
				if _, err := proceed(t, r, s); !errors.Is(err, tc.want) {
					t.Errorf("error is %v, want %v", err, tc.want)
				}
			})
		}
	}
}

// The leaf claim and the disk are deleted only while the promise is marked.
func TestDeleteUnusedIsLive(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change func(host, leaf *reads)
		want   error
	}{
		"nothing has changed":                 {change: func(*reads, *reads) {}, want: errWrite},
		"the promise has changed":             {change: func(host, _ *reads) { host.volume.ResourceVersion = "8" }},
		"the promise was re-created":          {change: func(host, _ *reads) { host.volume.UID = "newer" }},
		"the promise is gone":                 {change: func(host, _ *reads) { host.volume = nil }},
		"the host does not respond":           {change: func(host, _ *reads) { host.err = down }, want: down},
		"the leaf PV has policy Retain again": {change: func(_, leaf *reads) { leaf.volume.Spec.PersistentVolumeReclaimPolicy = retains }},
		"another leaf PV has the same name":   {change: func(_, leaf *reads) { leaf.volume.UID = "restored" }},
		"the member does not respond":         {change: func(_, leaf *reads) { leaf.err = down }, want: down},
		"the leaf PV is already gone":         {change: func(_, leaf *reads) { leaf.volume = nil }, want: errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			s := unused(releasing, leafPolicy(deletes), usedOn(here.NodeName))
			host, leaf := &reads{volume: s.Host.DeepCopy()}, &reads{volume: s.Leaf.DeepCopy()}
			tc.change(host, leaf)
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: host, Live: leaf,
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if _, err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// indexed serves index lookups of host PVs. Its map is keyed by index value.
type indexed struct {
	client.Reader
	volumes map[string]*corev1.PersistentVolume
}

func (r indexed) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	pvs, ok := list.(*corev1.PersistentVolumeList)
	if !ok {
		return fmt.Errorf("list of %T", list)
	}
	for _, requirement := range asked.FieldSelector.Requirements() {
		if pv, found := r.volumes[requirement.Value]; found {
			pvs.Items = append(pvs.Items, *pv)
		}
	}
	return nil
}

// A promise that was released before it was fulfilled waits until the leaf claim is gone. Only the
// leaf claim's event can enqueue it then, because the promise itself does not change.
func TestEnqueuesByLeafClaim(t *testing.T) {
	placed := hostpv.PromiseWithMember(hostpv.NewPromiseFor(root, &storagev1.StorageClass{}), here, nil)
	elsewhere := hostpv.PromiseWithMember(placed, mirror.Member{ClusterID: "id39"}, nil)
	for name, tc := range map[string]struct {
		volumes map[string]*corev1.PersistentVolume
		claim   *corev1.PersistentVolumeClaim
		want    []string
	}{
		"the leaf claim is bound to a mirrored volume":             {map[string]*corev1.PersistentVolume{"id38/pv-1": seen().Host}, seen().LeafClaim, []string{"pv-1"}},
		"the leaf claim is unbound":                                {map[string]*corev1.PersistentVolume{"root-uid": placed}, unbound(seen().LeafClaim), []string{placed.Name}},
		"the leaf claim is bound to a volume that is not mirrored": {map[string]*corev1.PersistentVolume{"root-uid": placed}, seen().LeafClaim, []string{placed.Name}},
		"the promise belongs to another member":                    {map[string]*corev1.PersistentVolume{"root-uid": elsewhere}, unbound(seen().LeafClaim), nil},
		"the promise was fulfilled by another volume":              {map[string]*corev1.PersistentVolume{"root-uid": unused().Host}, unbound(seen().LeafClaim), nil},
		"the root has no promise":                                  {nil, unbound(seen().LeafClaim), nil},
		"the member's claim was not created by Xylem":              {map[string]*corev1.PersistentVolume{"root-uid": placed}, &corev1.PersistentVolumeClaim{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{Link: &member.Link{Member: here, Host: indexed{volumes: tc.volumes}}}
			var got []string
			for _, request := range r.leafClaimToHostVolumes(t.Context(), tc.claim) {
				got = append(got, request.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("enqueued (-want +got):\n%s", diff)
			}
		})
	}
}

func unbound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim.Spec.VolumeName = ""
	return claim
}

// proceed observes since when the promise is unused, and takes the next step.
func proceed(t *testing.T, r *reconciler, s *volume.Observed) (reconcile.Result, error) {
	t.Helper()
	observeUnused(r, s)
	return r.planAndExecute(t.Context(), s)
}

func observeUnused(r *reconciler, s *volume.Observed) {
	if r.options.UnusedPromises != nil {
		r.options.UnusedPromises.Observe(s, r.Clock.Now(), r.LastRestoreTimes().MayLackRoot)
	}
}

// leaf_pv passes the capacity of an expanded disk to its promise, whether or not a Pod uses the disk. It does not
// watch Pods.
func TestExpandedDiskUpdatesItsPromise(t *testing.T) {
	for name, change := range map[string][]func(*volume.Observed){
		"a Pod uses it": {usedOn(here.NodeName)}, "no Pod uses it": nil, "a Pod uses it again": {markedFor(grace), usedOn(here.NodeName)},
	} {
		t.Run(name, func(t *testing.T) {
			s := unused(change...)
			s.LeafClaim.Status.Phase = corev1.ClaimBound
			s.Leaf.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("500Gi")}
			if plan := lifecycle.NextPlan(s); plan.StepOwnedBy(lifecycle.LeafPV) != lifecycle.UpdateHost {
				t.Errorf("the next step is %s by %s, want %s", plan.Step, plan.Owner, lifecycle.UpdateHost)
			}
		})
	}
}
