package moves

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/model/api"
)

// The two members.
const (
	from = iota
	to
	members
)

// existing is the content of a disk of the target that existed before the move. No command may change or
// destroy it.
const existing = "existing"

// offeredDisk is the name of the disk that the target's admin offers.
const offeredDisk = "offered"

// key identifies an object of the host. Only one namespace has objects.
type key struct{ kind, name string }

// disk is a volume in a member.
type disk struct {
	in        int
	content   string
	destroyed bool
	// holder is the UID of the host's claim for which the member has a leaf claim, or "".
	holder types.UID
}

// written is the content of a disk after the user wrote to it.
type written struct {
	content string
	// restores is how many restores were confirmed before.
	restores int
}

// world is a state of the clusters. Objects never change: a write replaces them.
type world struct {
	objects map[key]client.Object
	disks   map[string]disk // by the name of the host PV
	backup  map[key]client.Object
	// lost are the claims that a restore of the host removed.
	lost map[types.UID]bool
	// restores counts the restores that an admin has confirmed. unconfirmed is set until then.
	restores    int
	unconfirmed bool
	away        [members]bool
	// data are the contents that must exist. newest is what a Pod must get, or "" if that is not known.
	data   []written
	newest string
	// writes is the number of Pods that can still write.
	writes int
	// uids and versions are the last UID and resourceVersion.
	uids, versions int
	// calm is set while no disruption and no Pod of the user has changed anything.
	calm   bool
	budget int
	// deleting is set while the user lets the command destroy old disks.
	deleting bool
	// policy is the reclaim policy of the class.
	policy corev1.PersistentVolumeReclaimPolicy
	// offered is set while the target's admin offers offeredDisk to any claim of the class.
	offered bool
	// problems are the violations that the last step found.
	problems []string
	// texts is common to all worlds of a search.
	texts texts
}

// problem records a violation.
func (w *world) problem(format string, args ...any) {
	if what := fmt.Sprintf(format, args...); !slices.Contains(w.problems, what) {
		w.problems = append(w.problems, what)
	}
}

func (w *world) clone() *world {
	c := *w
	c.objects, c.disks, c.backup, c.lost = maps.Clone(w.objects), maps.Clone(w.disks), maps.Clone(w.backup), maps.Clone(w.lost)
	c.data = slices.Clone(w.data)
	return &c
}

// random matches the random parts of names (k8s.io/apimachinery/pkg/util/rand), and UIDs.
var random = regexp.MustCompile(`\b([bcdfghjklmnpqrstvwxz2456789]{5}|uid-\d+)\b`)

// texts caches the texts of objects, because objects never change.
type texts map[client.Object][]string

// maxTexts limits the cache, because most objects do not exist in many worlds.
const maxTexts = 10_000

// of returns the parts of an object's text, without its resourceVersion.
func (t texts) of(obj client.Object) []string {
	if known := t[obj]; known != nil {
		return known
	}
	copied := api.Copy(obj)
	copied.SetResourceVersion("")
	text, err := json.Marshal(copied)
	if err != nil {
		panic(err)
	}
	if len(t) >= maxTexts {
		clear(t)
	}
	t[obj] = parts(string(text) + "\n")
	return t[obj]
}

// parts splits a text so that every second part is random.
func parts(text string) []string {
	var all []string
	end := 0
	for _, at := range random.FindAllStringIndex(text, -1) {
		all = append(all, text[end:at[0]], text[at[0]:at[1]])
		end = at[1]
	}
	return append(all, text[end:])
}

// id returns a text that is equal for worlds that differ only in random names, UIDs and
// resourceVersions.
func (w *world) id() string {
	var b strings.Builder
	known := map[string]int{}
	add := func(parts []string) {
		for n, part := range parts {
			if n%2 == 0 {
				b.WriteString(part)
				continue
			}
			if _, ok := known[part]; !ok {
				known[part] = len(known)
			}
			fmt.Fprintf(&b, "#%d", known[part])
		}
	}
	add(parts(fmt.Sprintf("%t %d %t %v %v %s %d %t %d\n", w.offered, w.restores, w.unconfirmed, w.away, w.data, w.newest, w.writes, w.calm, w.budget)))
	for _, objects := range []map[key]client.Object{w.objects, w.backup} {
		names := map[key]string{}
		for k := range objects {
			names[k] = masked(k)
		}
		for _, k := range slices.SortedFunc(maps.Keys(objects), func(a, b key) int { return strings.Compare(names[a], names[b]) }) {
			add(w.texts.of(objects[k]))
		}
		b.WriteString("--\n")
	}
	for _, name := range slices.SortedFunc(maps.Keys(w.disks), func(a, b string) int { return strings.Compare(w.diskWords(a), w.diskWords(b)) }) {
		add(parts(fmt.Sprintf("%s %v %t\n", name, w.disks[name], w.lost[w.disks[name].holder])))
	}
	return b.String()
}

func masked(k key) string { return k.kind + " " + random.ReplaceAllString(k.name, "#") }

func (w *world) diskWords(name string) string {
	d := w.disks[name]
	return fmt.Sprintf("%d %q %t", d.in, d.content, d.destroyed)
}

// get returns an object of the host, or nil. Do not modify it.
func get[T client.Object](w *world, kind, name string) T {
	obj, _ := w.objects[key{kind, name}].(T)
	return obj
}

func (w *world) claim(name string) *corev1.PersistentVolumeClaim {
	return get[*corev1.PersistentVolumeClaim](w, claims, name)
}

func (w *world) volume(name string) *corev1.PersistentVolume {
	return get[*corev1.PersistentVolume](w, volumes, name)
}

// all returns the objects of a kind, sorted by name.
func all[T client.Object](w *world, kind string) []T {
	var found []T
	for _, k := range slices.SortedFunc(maps.Keys(w.objects), func(a, b key) int { return strings.Compare(a.name, b.name) }) {
		if k.kind == kind {
			found = append(found, api.As[T](w.objects[k]))
		}
	}
	return found
}

// put stores an object with a new resourceVersion. The caller must not modify it afterwards.
func (w *world) put(obj client.Object) {
	w.versions++
	obj.SetResourceVersion(fmt.Sprint(w.versions))
	w.objects[keyOf(obj)] = obj
}

// change replaces an object by a changed copy.
func change[T client.Object](w *world, obj T, change func(T)) {
	changed := api.Copy(obj)
	change(changed)
	w.put(changed)
}

func (w *world) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("uid-%d", w.uids))
}

// withUID returns the claim with the given UID, or nil.
func (w *world) withUID(uid types.UID) *corev1.PersistentVolumeClaim {
	for _, claim := range all[*corev1.PersistentVolumeClaim](w, claims) {
		if claim.UID == uid {
			return claim
		}
	}
	return nil
}

// ownDisks returns the number of disks that were provisioned for the claim and its copies.
func (w *world) ownDisks() int {
	own := 0
	for _, d := range w.disks {
		if d.content != existing {
			own++
		}
	}
	return own
}

// connected reports whether the manager is connected to a member.
func (w *world) connected(member int) bool { return !w.away[member] && !w.unconfirmed }

// describe describes a world in a trace.
func (w *world) describe() string {
	var lines []string
	for _, claim := range all[*corev1.PersistentVolumeClaim](w, claims) {
		lines = append(lines, fmt.Sprintf("claim %s (%s): %s, volume %q%s", claim.Name, claim.UID, claim.Status.Phase, claim.Spec.VolumeName, deleting(claim)))
	}
	for _, pv := range all[*corev1.PersistentVolume](w, volumes) {
		ref := "none"
		if pv.Spec.ClaimRef != nil {
			ref = pv.Spec.ClaimRef.Name + " " + string(pv.Spec.ClaimRef.UID)
		}
		lines = append(lines, fmt.Sprintf("PV %s (%s): %s, %s, claimRef %s, annotations %v", pv.Name, pv.UID, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy, ref, pv.Annotations))
	}
	for _, pod := range all[*corev1.Pod](w, pods) {
		lines = append(lines, fmt.Sprintf("Pod %s: %s%s", pod.Name, pod.Status.Phase, deleting(pod)))
	}
	for _, record := range all[*corev1.ConfigMap](w, records) {
		lines = append(lines, fmt.Sprintf("record %v", record.Data))
	}
	for name, d := range w.disks {
		lines = append(lines, fmt.Sprintf("disk %s: in %d, content %q, destroyed %t, holder %q", name, d.in, d.content, d.destroyed, d.holder))
	}
	lines = append(lines, fmt.Sprintf("to keep: %v; newest: %q; lost: %v; unconfirmed restore: %t; away: %v", w.data, w.newest, w.lost, w.unconfirmed, w.away))
	return "    " + strings.Join(lines, "\n    ")
}

func deleting(obj client.Object) string {
	if obj.GetDeletionTimestamp() == nil {
		return ""
	}
	return ", being deleted"
}
