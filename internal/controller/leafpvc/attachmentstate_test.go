package leafpvc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

const driver = "disk.example.com"

var (
	now  = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	here = mirror.Member{Registration: "cluster38"}
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// attachment returns an attachment to a node that was requested a minute ago.
func attachment(node string, changes ...func(*storagev1.VolumeAttachment)) storagev1.VolumeAttachment {
	a := storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(time.Minute)},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node},
	}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func done(a *storagev1.VolumeAttachment) {
	a.Status.Attached = true
	a.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: "status", Time: new(ago(30 * time.Second))}}
}

func requested(d time.Duration) func(*storagev1.VolumeAttachment) {
	return func(a *storagev1.VolumeAttachment) { a.CreationTimestamp = ago(d) }
}

func deleted(d time.Duration) func(*storagev1.VolumeAttachment) {
	return func(a *storagev1.VolumeAttachment) { a.DeletionTimestamp = new(ago(d)) }
}

func attachFails(message string) func(*storagev1.VolumeAttachment) {
	return func(a *storagev1.VolumeAttachment) { a.Status.AttachError = &storagev1.VolumeError{Message: message} }
}

func detachFails(message string) func(*storagev1.VolumeAttachment) {
	return func(a *storagev1.VolumeAttachment) { a.Status.DetachError = &storagev1.VolumeError{Message: message} }
}

func shown(status corev1.ConditionStatus, reason string) *corev1.PersistentVolumeClaimCondition {
	return &corev1.PersistentVolumeClaimCondition{Status: status, Reason: reason, Message: "as before"}
}

const ask = ". Ask the member's admin to check the driver and the node"

func TestDecideAttached(t *testing.T) {
	type list = []storagev1.VolumeAttachment
	on := func(nodes ...string) (all list) {
		for _, n := range nodes {
			all = append(all, attachment(n, done))
		}
		return all
	}
	detached := &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonDetached, Message: `not attached to any node of member "cluster38": no Pod there needs the volume`}
	isAttached := &report.AttachedCondition{Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonAttached, Message: `attached to node "n1" of member "cluster38" since 2026-11-25T11:59:30Z`}
	before := shown(corev1.ConditionTrue, v1alpha1.ReasonAttached)
	unreadable := &mirror.Refusal{Reason: v1alpha1.ReasonAttachmentsUnreadable, Message: "forbidden"}
	for name, tc := range map[string]struct {
		in    attachments
		want  *report.AttachedCondition
		again time.Duration
	}{
		"a driver that attaches nothing":                                   {attachments{}, nil, 0},
		"attached":                                                         {attachments{found: on("n1")}, isAttached, 0},
		"an attached in-tree volume":                                       {attachments{driver: "", found: list{attachment("n1", done, func(a *storagev1.VolumeAttachment) { a.Spec.Attacher = "migrated.csi" })}}, isAttached, 0},
		"attached at an unknown time":                                      {attachments{found: list{attachment("n1", func(a *storagev1.VolumeAttachment) { a.Status.Attached = true })}}, &report.AttachedCondition{Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonAttached, Message: `attached to node "n1" of member "cluster38" since 2026-11-25T11:59:00Z`}, 0},
		"the Pod was deleted":                                              {attachments{shown: before}, detached, 0},
		"attached by another driver":                                       {attachments{driver: driver, found: list{attachment("n1", done, func(a *storagev1.VolumeAttachment) { a.Spec.Attacher = "other" })}}, nil, 0},
		"the volume was deleted":                                           {attachments{shown: before, gone: true, found: on("n1")}, &report.AttachedCondition{}, 0},
		"being attached for five seconds":                                  {attachments{found: list{attachment("n1", requested(5*time.Second))}}, nil, 10 * time.Second},
		"being attached again for five seconds":                            {attachments{shown: before, found: list{attachment("n1", requested(5*time.Second))}}, detached, 10 * time.Second},
		"being attached since a time in the future":                        {attachments{found: list{attachment("n1", requested(-time.Hour))}}, nil, attachPatience},
		"being attached for a long time":                                   {attachments{found: list{attachment("n1")}}, &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonAttaching, Message: `member "cluster38" has been attaching the volume to node "n1" since 2026-11-25T11:59:00Z`}, 0},
		"being detached for a second":                                      {attachments{shown: before, found: list{attachment("n1", done, deleted(time.Second))}}, isAttached, 14 * time.Second},
		"being detached for a long time":                                   {attachments{shown: before, found: list{attachment("n1", done, deleted(20*time.Second))}}, &report.AttachedCondition{Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonDetaching, Message: `member "cluster38" has been detaching the volume from node "n1" since 2026-11-25T11:59:40Z`}, 0},
		"deleted before the volume was attached":                           {attachments{found: list{attachment("n1", deleted(20*time.Second), attachFails("late"))}}, nil, 0},
		"deleted a second ago, before the volume was attached":             {attachments{found: list{attachment("n1", deleted(time.Second))}}, nil, 14 * time.Second},
		"cannot be attached":                                               {attachments{found: list{attachment("n1", attachFails("the cable is loose."))}}, &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonAttachFailed, Message: `member "cluster38" cannot attach the volume to node "n1": the cable is loose` + ask}, 0},
		"cannot be attached, and the driver reports no cause":              {attachments{found: list{attachment("n1", attachFails(" \n"))}}, &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonAttachFailed, Message: `member "cluster38" cannot attach the volume to node "n1": the driver reports no cause` + ask}, 0},
		"cannot be detached":                                               {attachments{found: list{attachment("n1", done, deleted(time.Second), detachFails("busy"))}}, &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonDetachFailed, Message: `member "cluster38" cannot detach the volume from node "n1": busy` + ask}, 0},
		"cannot be detached, and another node needs the volume":            {attachments{found: list{attachment("n1", done, deleted(time.Second), detachFails("busy")), attachment("n2", attachFails("in use"))}}, &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonAttachFailed, Message: `member "cluster38" cannot attach the volume to node "n2": in use; member "cluster38" cannot detach the volume from node "n1": busy` + ask}, 0},
		"still attached to another node":                                   {attachments{found: list{attachment("n1", done), attachment("n2", attachFails("in use"))}}, &report.AttachedCondition{Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonAttachFailed, Message: `member "cluster38" cannot attach the volume to node "n2": in use; attached to node "n1" of member "cluster38" since 2026-11-25T11:59:30Z` + ask}, 0},
		"attached to two nodes: sorted by name":                            {attachments{found: on("n2", "n1")}, &report.AttachedCondition{Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonAttached, Message: `attached to node "n1" of member "cluster38" since 2026-11-25T11:59:30Z; attached to node "n2" of member "cluster38" since 2026-11-25T11:59:30Z`}, 0},
		"attachments cannot be read":                                       {attachments{shown: before, unreadable: unreadable}, &report.AttachedCondition{Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonAttachmentsUnreadable, Message: "forbidden"}, 0},
		"attachments cannot be read, and the condition already reports it": {attachments{shown: shown(corev1.ConditionUnknown, v1alpha1.ReasonAttachmentsUnreadable), unreadable: unreadable}, nil, 0},
		"attachments of a new volume cannot be read":                       {attachments{unreadable: unreadable}, nil, 0},
		"the member is connected again, and the Pod was deleted":           {attachments{shown: shown(corev1.ConditionUnknown, v1alpha1.ReasonMemberAway)}, detached, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.member, tc.in.now = here, now
			got, again := decideAttached(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again != tc.again {
				t.Errorf("the next check is after %s, want %s", again, tc.again)
			}
		})
	}
}

// A volume may be attached to many nodes, and a member may report long errors, but the message is
// limited.
func TestDecideAttachedIsBounded(t *testing.T) {
	var all []storagev1.VolumeAttachment
	for range 500 {
		all = append(all, attachment("n"+strings.Repeat("x", len(all)), attachFails("one\ntwo\x1b[2J\u202e"+strings.Repeat("! ", 5000))))
	}
	got, _ := decideAttached(attachments{found: all, member: here, now: now})
	if limit := maxNodesInMessage * (maxDriverError + maxNodeName + 100); len(got.Message) > limit {
		t.Errorf("the message has %d bytes, want at most %d", len(got.Message), limit)
	}
	if strings.ContainsAny(got.Message, "\n\x1b\u202e") {
		t.Errorf("the message contains control characters: %q", got.Message)
	}
	if !strings.Contains(got.Message, "one two") || !strings.Contains(got.Message, "; and 496 other nodes") {
		t.Errorf("the message is %q, want the sanitized error and the number of other nodes", got.Message)
	}
}
