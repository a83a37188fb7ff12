package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/text"
)

// unregistered is the name of a member without a registration.
const unregistered = "(not registered)"

// prepareAgain is the remedy for objects in a member that differ from this version's.
const prepareAgain = "Run `kubectl xylem register` for the member again, or upgrade the xylem-member chart in the member."

// member evaluates the facts about a member.
func judgeMember(m *Member, h *Host) ([]Finding, error) {
	name := cmp.Or(m.Registration, unregistered)
	if m.Away != "" {
		return judgeUnreadMember(m, h, name), nil
	}
	all := []Finding{judgeConnection(m, name)}
	all = append(all, judgeKubernetes(m.Version, name)...)
	all = append(all, judgeMemberClock(m, h, name)...)
	if m.Registration == "" {
		return append(all, judgeLeaves(m, name)...), nil
	}
	want, err := MemberPolicies(Base(m.Account))
	if err != nil {
		return nil, err
	}
	found, err := judgePolicies(&m.Cluster, want, name, prepareAgain)
	if err != nil {
		return nil, err
	}
	all = append(all, found...)
	all = append(all, judgeRights(m.Rights, m.Account.Name, name)...)
	all = append(all, judgeFence(m, h, name)...)
	return append(all, judgeMemberSnapshots(m, h, name)...), nil
}

// unread reports a member that this machine could not read. If the manager can reach the member,
// this is not a problem of the installation.
func judgeUnreadMember(m *Member, h *Host, name string) []Finding {
	switch {
	case m.Secret:
		return []Finding{Problem(Warning, CheckConnection, name, "the checks in the member were skipped: "+m.Away, "Specify your own kubeconfig for the member with --member-kubeconfig, or ask for permission to read the Secret.")}
	case m.Own:
		return []Finding{Problem(Error, CheckConnection, name, "the member that your kubeconfig points to does not respond: "+m.Away, "Check the kubeconfig (--member-kubeconfig, --member-context) and the network.")}
	case connected(m, h):
		return []Finding{Problem(Warning, CheckConnection, name, "the checks in the member were skipped, because this machine cannot reach the member, although the manager can: "+m.Away, "Run this command on a machine that can reach the member, or specify your own kubeconfig for it with --member-kubeconfig.")}
	}
	return []Finding{Problem(Error, CheckConnection, name, "neither the manager nor this machine can connect to the member: "+m.Away, "Check the member's API server, the network between the clusters, and the credentials in the registration's Secret.")}
}

// connected reports whether the manager is connected to a member.
func connected(m *Member, h *Host) bool {
	for i := range h.Registrations.Items {
		if r := &h.Registrations.Items[i]; r.Name == m.Registration {
			return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionConnected)
		}
	}
	return false
}

func judgeConnection(m *Member, name string) Finding {
	if m.Own {
		return Passed(CheckConnection, name, "cluster %s responds to requests with your own kubeconfig", m.ID)
	}
	return Passed(CheckConnection, name, "cluster %s responds to requests from this machine with the manager's kubeconfig", m.ID)
}

// clocks compares a member's clock with the host's.
func judgeMemberClock(m *Member, h *Host, name string) []Finding {
	if !m.Clock.Known || !h.Clock.Known {
		return nil
	}
	ahead, precision := m.Clock.Ahead-h.Clock.Ahead, m.Clock.Precision+h.Clock.Precision
	level := Warning
	switch surely := ahead.Abs() - precision; {
	case surely > skewLarge:
		level = Error
	case surely <= skewSmall:
		return []Finding{Passed(CheckClock, name, "the clocks of the member and the host differ by less than %s", within(ahead, precision))}
	}
	return []Finding{Problem(level, CheckClock, name, fmt.Sprintf("the member's clock is %s the host's, so tokens, Leases and the order of events are evaluated incorrectly", apart(ahead)), "Synchronize the clocks of both clusters (NTP).")}
}

// fence checks whether the manager holds its Lease in the member.
func judgeFence(m *Member, h *Host, name string) []Finding {
	if !m.Fence.Read || !connected(m, h) {
		return nil
	}
	now := m.At.Add(m.Clock.Ahead)
	if m.Fence.Item == nil || inspect.LeaseExpired(m.Fence.Item, now) {
		return []Finding{Problem(Error, CheckFence, name, fmt.Sprintf("the manager reports that it is connected, but nobody holds the fence: Lease \"%s/%s\" %s", h.Namespace, h.ID, inspect.LeaseRenewal(m.Fence.Item, now)),
			"Check that the manager is running, and that nobody deletes the Lease.")}
	}
	return []Finding{Passed(CheckFence, name, "the manager holds the fence")}
}

// memberSnapshots checks whether a member serves snapshots if the host does.
func judgeMemberSnapshots(m *Member, h *Host, name string) []Finding {
	switch {
	case m.Snapshots.Item == nil || h.Snapshots.Item == nil || !*h.Snapshots.Item:
		return nil
	case !*m.Snapshots.Item:
		return []Finding{Problem(Warning, CheckSnapshots, name, "the member does not serve VolumeSnapshots, but the host does, so users cannot take snapshots of the member's volumes",
			"Install the VolumeSnapshot CustomResourceDefinitions and the snapshot-controller in the member.")}
	}
	return []Finding{Passed(CheckSnapshots, name, "the member serves VolumeSnapshots")}
}

// leaves reports this host's objects in an unregistered member.
func judgeLeaves(m *Member, name string) []Finding {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(m.Leaves)) {
		parts = append(parts, text.Count(m.Leaves[kind], kind))
	}
	if len(parts) == 0 {
		return []Finding{Passed(CheckLeftovers, name, "the cluster has no objects of this host")}
	}
	return []Finding{Problem(Warning, CheckLeftovers, name, fmt.Sprintf("the cluster has %s of this host, but is not registered", strings.Join(parts, ", ")),
		"To use the objects, register the cluster again. To remove them, delete the Pods and claims in the cluster. The volumes keep their data, because they have policy Retain.")}
}
