package move

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestManifest(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "set-1"}}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", UID: "claim-1", ResourceVersion: "7", Finalizers: []string{"kubernetes.io/pvc-protection"},
			Labels: map[string]string{"app": "db", v1alpha1.LabelMove: "abcde"},
			Annotations: map[string]string{
				"note": "mine", v1alpha1.AnnotationPlacedIn: "one", v1alpha1.AnnotationMoveRun: "abcde", "pv.kubernetes.io/bind-completed": "yes",
				"volume.kubernetes.io/selected-node": "kosmos-one", "volume.beta.kubernetes.io/storage-provisioner": "csi.xylem.io",
				"volume.beta.kubernetes.io/storage-class": "fast",
			},
			OwnerReferences: owner,
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "pv-1", StorageClassName: ptr.To("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			DataSource: &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "other"},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	want := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", Labels: map[string]string{"app": "db"},
			Annotations: map[string]string{"note": "mine", "volume.beta.kubernetes.io/storage-class": "fast"}, OwnerReferences: owner,
		},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	if diff := cmp.Diff(want, manifest(claim)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNamesAreValid(t *testing.T) {
	for _, claim := range []string{"data", strings.Repeat("a", 253), strings.Repeat("a", 199) + ".b" + strings.Repeat("c", 50)} {
		r := &record{ID: "abcde", Run: "fghij", Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}}}
		for _, name := range []string{recordName(claim), copyName(claim, r.ID), podName(r, reads), podName(r, writes)} {
			if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
				t.Errorf("%q is not a valid name: %v", name, wrong)
			}
		}
	}
	a, b := strings.Repeat("a", 250)+"1", strings.Repeat("a", 250)+"2"
	if recordName(a) == recordName(b) {
		t.Error("two claims share a record")
	}
}

func TestCopyIsNotSmaller(t *testing.T) {
	for name, tc := range map[string]struct{ requested, has, want string }{
		"the volume is larger than the request":  {"1Gi", "2Gi", "2Gi"},
		"the volume is smaller than the request": {"3Gi", "2Gi", "3Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &record{Claim: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Resources: storageOf(tc.requested)}}}
			old := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{Capacity: storageOf(tc.has).Requests}}
			if diff := cmp.Diff(storageOf(tc.want), copyClaim(r, old).Spec.Resources); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func storageOf(size string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}
}

func TestUsing(t *testing.T) {
	pod := func(name, claim, id string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if id != "" {
			p.Labels = map[string]string{v1alpha1.LabelMove: id, v1alpha1.LabelManagedBy: manager}
		}
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		return p
	}
	ephemeral := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job"}}
	ephemeral.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	pods := []corev1.Pod{pod("a", "data", ""), pod("b", "other", ""), pod("mine", "data", "abcde"), pod("another-move", "data", "fghij"), ephemeral}
	if diff := cmp.Diff([]string{"a", "another-move"}, using(pods, "abcde", "data")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"job"}, using(pods, "", "job-scratch")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEnough(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClusterID: "two"}}}
	capacity := func(class, cluster, free, limit string) storagev1.CSIStorageCapacity {
		c := storagev1.CSIStorageCapacity{StorageClassName: class, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelClusterID: cluster}}}
		if free != "" {
			c.Capacity = ptr.To(resource.MustParse(free))
		}
		if limit != "" {
			c.MaximumVolumeSize = ptr.To(resource.MustParse(limit))
		}
		return c
	}
	for name, tc := range map[string]struct {
		all  []storagev1.CSIStorageCapacity
		want string
	}{
		"enough":              {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "20Gi", "")}, ""},
		"too little capacity": {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "5Gi", "")}, "only up to 5Gi, but the copy needs 10Gi"},
		"the maximum volume size takes precedence": {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "1Gi", "1Ti")}, ""},
		"capacity of another member":               {[]storagev1.CSIStorageCapacity{capacity("fast", "one", "20Gi", "")}, "has no capacity for StorageClass \"fast\""},
		"capacity of another class":                {[]storagev1.CSIStorageCapacity{capacity("slow", "two", "20Gi", "")}, "has no capacity"},
		"no capacity objects":                      {nil, "lacks its StorageClass \"gp3\""},
		"a capacity object without values":         {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "", "")}, "has no capacity"},
	} {
		t.Run(name, func(t *testing.T) {
			err := enough(tc.all, "fast", "gp3", "cluster39", node, resource.MustParse("10Gi"))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTolerations(t *testing.T) {
	got := tolerations([]corev1.Taint{
		{Key: "kosmos.io/node", Value: "true", Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: v1alpha1.TaintMemberAway, Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	})
	want := []corev1.Toleration{{Key: "kosmos.io/node", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStatefulSet(t *testing.T) {
	set := func(replicas, start int32) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
		s.Spec.Replicas = &replicas
		if start > 0 {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start}
		}
		for _, name := range []string{"wal", "data"} {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return s
	}
	var claims []corev1.PersistentVolumeClaim
	for _, name := range []string{"data-db-0", "wal-db-0", "data-db-10", "data-db-2", "data-db-x", "data-db-02", "data-other-1", "data-db", "wal-db--1"} {
		claims = append(claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if diff := cmp.Diff([]string{"wal-db-0", "data-db-0", "data-db-2", "data-db-10"}, claimsOf(set(0, 0), claims, 0, false)); diff != "" {
		t.Errorf("all claims, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"data-db-2"}, claimsOf(set(0, 0), claims, 2, true)); diff != "" {
		t.Errorf("claims of one Pod, -want +got:\n%s", diff)
	}
	deletes := set(0, 0)
	deletes.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	for name, tc := range map[string]struct {
		set     *appsv1.StatefulSet
		ordinal int
		one     bool
		want    string
	}{
		"scaled to 0":                       {set: set(0, 0)},
		"not scaled down":                   {set: set(2, 0), want: "--replicas=0"},
		"one Pod, which still exists":       {set: set(2, 0), ordinal: 1, one: true, want: "--replicas=1"},
		"one Pod, beyond the replicas":      {set: set(2, 0), ordinal: 2, one: true},
		"one Pod, ordinals start at 5":      {set: set(2, 5), ordinal: 5, one: true, want: "--replicas=0"},
		"one Pod, before the first ordinal": {set: set(2, 5), ordinal: 4, one: true},
		"claims are deleted on scale-down":  {set: deletes, want: "whenScaled"},
		"replicas default to 1":             {set: func() *appsv1.StatefulSet { s := set(0, 0); s.Spec.Replicas = nil; return s }(), want: "has 1 replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			err := scaledDown(tc.set, tc.ordinal, tc.one)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTail(t *testing.T) {
	end := &tail{}
	for _, s := range []string{"...", "\r1048576 bytes (1.0 MB, 1.0 MiB) copied, 1 s, 1 MB/s\n", "1+0 records in\n1+0 records out\n", "dd: error writing 'x':\n No space left on device\n"} {
		if n, err := end.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := ": dd: error writing 'x': No space left on device"; end.text() != want {
		t.Errorf("got %q, want %q", end.text(), want)
	}
	if got := (&tail{end: []byte("....")}).text(); got != "" {
		t.Errorf("dots are not removed: %q", got)
	}
	long := &tail{}
	_, _ = long.Write(bytes.Repeat([]byte("x"), 5*tailBytes))
	if len(long.end) != tailBytes {
		t.Errorf("kept %d bytes", len(long.end))
	}
}

func TestLine(t *testing.T) {
	for want, got := range map[string]string{
		"  copied 1.0 KiB": line(1024, 0, 0),
		"  [###############---------------]  50%  5.0 MiB of about 10.0 MiB, 2.5 MiB/s": line(5<<20, 10<<20, 2*time.Second),
		"  [##############################] 100%  2.0 GiB of about 1.0 GiB":             line(2<<30, 1<<30, 0),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	b := newBar(&out, clock.RealClock{}, 100)
	b.add(50)
	b.add(50)
	if b.end() != "100 B" || strings.Count(out.String(), "\r") != 2 {
		t.Errorf("%q", out.String())
	}
	newBar(nil, clock.RealClock{}, 100).add(1) // no terminal
}

// shellIn runs a script on a directory or file of this machine.
func shellIn(ctx context.Context, t *testing.T, volume, script string, in []byte, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "move"}, args...)...)
	c.Env, c.Stdin = append(os.Environ(), "VOLUME="+volume), bytes.NewReader(in)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Logf("%v: %s", err, complaints.String())
	}
	return string(out), err
}

func TestScriptsFail(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	for name, script := range map[string]string{
		"send": sendFiles, "receive": receiveFiles, "sum": sumFiles, "send a device": sendDevice, "sum a device": sumDevice, "read the size of a device": deviceBytes,
		"the first program in a pipe fails": "set -eu\n" + piped("{ echo some; false; }", "cat"), "the last program in a pipe fails": "set -eu\n" + piped("true", "false"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := shellIn(t.Context(), t, gone, script, nil, "1"); err == nil {
				t.Error("succeeded")
			}
		})
	}
	t.Run("VOLUME is empty", func(t *testing.T) {
		if _, err := shellIn(t.Context(), t, "", receiveFiles, nil); err == nil {
			t.Error("succeeded")
		}
	})
}

func TestReceivingCleansAndKeepsLostAndFound(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(from, "new"), filepath.Join(to, "left"), filepath.Join(to, ".hidden")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{filepath.Join(from, "lost+found"), filepath.Join(to, "lost+found", "inner"), filepath.Join(from, "deep", "lost+found")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := shellIn(t.Context(), t, from, sendFiles, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shellIn(t.Context(), t, to, receiveFiles, []byte(archive)); err != nil {
		t.Fatal(err)
	}
	var got []string
	entries, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff([]string{"deep", "lost+found", "new"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(to, "deep", "lost+found")); err != nil {
		t.Error("a user's directory named lost+found was not copied:", err)
	}
	sums := make([]string, 2)
	for i, dir := range []string{from, to} {
		if sums[i], err = shellIn(t.Context(), t, dir, sumFiles, nil); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("the checksums differ: %v", sums)
	}
	if err := os.Chmod(filepath.Join(to, "new"), 0o640); err != nil {
		t.Fatal(err)
	}
	if after, err := shellIn(t.Context(), t, to, sumFiles, nil); err != nil || after == sums[1] {
		t.Errorf("the checksum ignores file modes: %v", err)
	}
}
