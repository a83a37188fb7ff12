package moves

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/test/model/api"
)

// event is something that happens between the commands, or between two requests of a command.
type event struct {
	name string
	// do changes a world, and reports whether it could happen.
	do func(*world) bool
	// backup and restores are set for the events that make a backup, and restore it. uses is set for a
	// Pod that uses the claim.
	backup, restores, uses bool
}

// usual returns the events that do not count as disruptions, because they end one, or because they
// are what people do between commands.
func usual() []event {
	events := []event{
		{name: "a Pod uses the claim", uses: true, do: func(w *world) bool {
			claim := w.claim(name)
			return w.writes > 0 && claim != nil && claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound && w.startPod()
		}},
		{name: "the Pod is deleted", do: func(w *world) bool {
			pod := get[*corev1.Pod](w, pods, userPod)
			if pod == nil || pod.DeletionTimestamp != nil {
				return false
			}
			w.remove(pod)
			return true
		}},
		{name: "an admin confirms the restore", do: func(w *world) bool {
			if !w.unconfirmed {
				return false
			}
			w.unconfirmed = false
			w.restores++
			return true
		}},
		{name: "a backup of the host", backup: true, do: func(w *world) bool {
			if w.backup != nil || w.budget == 0 {
				return false
			}
			w.backup = maps.Clone(w.objects)
			return true
		}},
	}
	for n := range members {
		events = append(events, event{name: "member " + places[n].Registration + " is back", do: func(w *world) bool {
			was := w.away[n]
			w.away[n] = false
			return was
		}})
	}
	return events
}

// disruptions returns the events that count against a world's budget.
func disruptions(ctx context.Context) []event {
	events := []event{
		{name: "a user creates a Pod", do: func(w *world) bool { return w.claim(name) != nil && w.startPod() }},
		{name: "a user deletes the claim", do: func(w *world) bool {
			claim := w.claim(name)
			if claim == nil || claim.DeletionTimestamp != nil {
				return false
			}
			w.givesUp(claim)
			w.remove(claim)
			return true
		}},
		{name: "a user creates the claim", do: func(w *world) bool {
			if w.claim(name) != nil {
				return false
			}
			w.newest = ""
			w.put(newClaim(w.uid()))
			return true
		}},
		{name: "somebody deletes the second claim", do: func(w *world) bool {
			found := false
			for _, claim := range all[*corev1.PersistentVolumeClaim](w, claims) {
				if claim.Name != name && claim.DeletionTimestamp == nil {
					w.givesUp(claim)
					w.remove(claim)
					found = true
				}
			}
			return found
		}},
		{name: "somebody deletes the move's Pods", do: func(w *world) bool {
			found := false
			for _, pod := range all[*corev1.Pod](w, pods) {
				if pod.Name != userPod && pod.DeletionTimestamp == nil {
					w.remove(pod)
					found = true
				}
			}
			return found
		}},
		{name: "somebody deletes the record", do: func(w *world) bool {
			found := false
			for _, stored := range all[*corev1.ConfigMap](w, records) {
				w.remove(stored)
				found = true
			}
			return found
		}},
		{name: "the target's admin deletes the volumes", do: func(w *world) bool {
			return w.destroyTarget()
		}},
		{name: "the members are registered again", do: func(w *world) bool {
			w.restores++
			return true
		}},
		{name: "the host is restored", do: func(w *world) bool { return w.restore() }, restores: true},
	}
	for n := range members {
		events = append(events, event{name: "member " + places[n].Registration + " is away", do: func(w *world) bool {
			was := w.away[n]
			w.away[n] = true
			return !was
		}})
	}
	for _, v := range []verb{move, undo, deleteOld} {
		events = append(events, event{name: "another run of " + string(v), do: func(w *world) bool {
			h := newHost(w, true)
			deleting := w.deleting
			_ = execute(ctx, v, h) // an error is a possible result
			if deleting {
				w.consent() // the user did both at the same time
			}
			return true
		}})
	}
	return events
}

func (w *world) startPod() bool {
	if get[*corev1.Pod](w, pods, userPod) != nil {
		return false
	}
	w.put(newPod(w.uid()))
	return true
}

// restore replaces the host's objects by those of the backup.
func (w *world) restore() bool {
	if w.backup == nil {
		return false
	}
	gone := map[types.UID]bool{}
	for uid := range w.lost {
		gone[uid] = true
	}
	for _, claim := range all[*corev1.PersistentVolumeClaim](w, claims) {
		gone[claim.UID] = true
	}
	for _, d := range w.disks {
		if d.holder != "" {
			gone[d.holder] = true
		}
	}
	w.objects, w.backup = map[key]client.Object{}, maps.Clone(w.backup)
	for _, obj := range w.backup {
		if _, pod := obj.(*corev1.Pod); !pod { // the member's Pods of a lost host Pod end
			w.put(api.Copy(obj))
		}
	}
	w.backup = nil
	for _, claim := range all[*corev1.PersistentVolumeClaim](w, claims) {
		delete(gone, claim.UID)
	}
	w.lost, w.unconfirmed, w.newest, w.calm = gone, true, "", false
	return true
}

// givesUp records that a user deletes a claim, and with it the data of a volume with policy Delete.
func (w *world) givesUp(claim *corev1.PersistentVolumeClaim) {
	if claim.Name == name {
		w.newest = ""
	}
	pv := w.volume(claim.Spec.VolumeName)
	if pv == nil || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || w.lost[w.disks[pv.Name].holder] {
		return
	}
	content := w.disks[pv.Name].content
	w.data = slices.DeleteFunc(w.data, func(x written) bool { return x.content == content })
}

// destroyTarget destroys the disks in the target. If one is the claim's disk, its data is lost.
func (w *world) destroyTarget() bool {
	found := false
	for volume, d := range w.disks {
		if d.in != to || d.destroyed {
			continue
		}
		d.destroyed, found = true, true
		w.disks[volume] = d
		if pv := w.volume(volume); pv != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.Name == name || w.lost[d.holder] {
			w.newest = ""
		} else if d.content != existing {
			continue
		}
		w.data = slices.DeleteFunc(w.data, func(x written) bool { return x.content == d.content })
	}
	return found
}

// exists reports whether a disk has a content.
func (w *world) exists(content string) bool {
	for _, d := range w.disks {
		if !d.destroyed && d.content == content {
			return true
		}
	}
	return false
}

// check checks that the user's data exists.
func (w *world) check() {
	for _, x := range w.data {
		if !w.exists(x.content) {
			w.problem("the data is lost: no disk has content %q", x.content)
		}
	}
}

// consent removes the contents that the user allows the command to destroy: those of disks that are
// not the claim's, unless a cluster was restored after they were written.
func (w *world) consent() {
	current := ""
	if claim := w.claim(name); claim != nil {
		current = w.disks[claim.Spec.VolumeName].content
	}
	w.data = slices.DeleteFunc(w.data, func(x written) bool {
		return x.content != current && x.content != existing && x.restores == w.restores && !w.unconfirmed
	})
}

// undone records that the user wants the old data, if Pods may have written to the copy.
func (w *world) undone() {
	for _, stored := range all[*corev1.ConfigMap](w, records) {
		var r objects.Record
		if err := json.Unmarshal([]byte(stored.Data["move"]), &r); err == nil && r.Used {
			w.newest = ""
		}
	}
}
