package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
	"github.com/xylem-io/xylem/internal/cli/doctor/result"
	"github.com/xylem-io/xylem/internal/cli/doctor/shipped"
	"github.com/xylem-io/xylem/internal/cli/leader"
	"github.com/xylem-io/xylem/internal/text"
)

// unregistered is the name of a member without a registration.
const unregistered = "(not registered)"

// prepareAgain is the remedy for objects in a member that differ from this version's.
const prepareAgain = "Run `kubectl xylem register` for the member again, or upgrade the xylem-member chart in the member."

// member evaluates the facts about a member.
func member(m *facts.Member, h *facts.Host) ([]result.Finding, error) {
	name := cmp.Or(m.Registration, unregistered)
	if m.Away != "" {
		return unread(m, h, name), nil
	}
	all := []result.Finding{connection(m, name)}
	all = append(all, kubernetes(m.Version, name)...)
	all = append(all, clocks(m, h, name)...)
	if m.Registration == "" {
		return append(all, leaves(m, name)...), nil
	}
	want, err := shipped.MemberPolicies(facts.Base(m.Account))
	if err != nil {
		return nil, err
	}
	found, err := policies(&m.Cluster, want, name, prepareAgain)
	if err != nil {
		return nil, err
	}
	all = append(all, found...)
	all = append(all, rights(m.Rights, m.Account.Name, name)...)
	all = append(all, fence(m, h, name)...)
	return append(all, memberSnapshots(m, h, name)...), nil
}

// unread reports a member that this machine could not read. If the manager can reach the member,
// this is not a problem of the installation.
func unread(m *facts.Member, h *facts.Host, name string) []result.Finding {
	switch {
	case m.Secret:
		return []result.Finding{result.Problem(result.Warning, result.CheckConnection, name, "the checks in the member were skipped: "+m.Away, "Specify your own kubeconfig for the member with --member-kubeconfig, or ask for permission to read the Secret.")}
	case m.Own:
		return []result.Finding{result.Problem(result.Error, result.CheckConnection, name, "the member that your kubeconfig points to does not respond: "+m.Away, "Check the kubeconfig (--member-kubeconfig, --member-context) and the network.")}
	case connected(m, h):
		return []result.Finding{result.Problem(result.Warning, result.CheckConnection, name, "the checks in the member were skipped, because this machine cannot reach the member, although the manager can: "+m.Away, "Run this command on a machine that can reach the member, or specify your own kubeconfig for it with --member-kubeconfig.")}
	}
	return []result.Finding{result.Problem(result.Error, result.CheckConnection, name, "neither the manager nor this machine can connect to the member: "+m.Away, "Check the member's API server, the network between the clusters, and the credentials in the registration's Secret.")}
}

// connected reports whether the manager is connected to a member.
func connected(m *facts.Member, h *facts.Host) bool {
	for i := range h.Registrations.Items {
		if r := &h.Registrations.Items[i]; r.Name == m.Registration {
			return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionConnected)
		}
	}
	return false
}

func connection(m *facts.Member, name string) result.Finding {
	if m.Own {
		return result.Passed(result.CheckConnection, name, "cluster %s responds to requests with your own kubeconfig", m.ID)
	}
	return result.Passed(result.CheckConnection, name, "cluster %s responds to requests from this machine with the manager's kubeconfig", m.ID)
}

// clocks compares a member's clock with the host's.
func clocks(m *facts.Member, h *facts.Host, name string) []result.Finding {
	if !m.Clock.Known || !h.Clock.Known {
		return nil
	}
	ahead, precision := m.Clock.Ahead-h.Clock.Ahead, m.Clock.Precision+h.Clock.Precision
	level := result.Warning
	switch surely := ahead.Abs() - precision; {
	case surely > skewLarge:
		level = result.Error
	case surely <= skewSmall:
		return []result.Finding{result.Passed(result.CheckClock, name, "the clocks of the member and the host differ by less than %s", within(ahead, precision))}
	}
	return []result.Finding{result.Problem(level, result.CheckClock, name, fmt.Sprintf("the member's clock is %s the host's, so tokens, Leases and the order of events are evaluated incorrectly", apart(ahead)), "Synchronize the clocks of both clusters (NTP).")}
}

// fence checks whether the manager holds its Lease in the member.
func fence(m *facts.Member, h *facts.Host, name string) []result.Finding {
	if !m.Fence.Read || !connected(m, h) {
		return nil
	}
	now := m.At.Add(m.Clock.Ahead)
	if m.Fence.Item == nil || leader.Expired(m.Fence.Item, now) {
		return []result.Finding{result.Problem(result.Error, result.CheckFence, name, fmt.Sprintf("the manager reports that it is connected, but nobody holds the fence: Lease \"%s/%s\" %s", h.Namespace, h.ID, leader.Renewal(m.Fence.Item, now)),
			"Check that the manager is running, and that nobody deletes the Lease.")}
	}
	return []result.Finding{result.Passed(result.CheckFence, name, "the manager holds the fence")}
}

// memberSnapshots checks whether a member serves snapshots if the host does.
func memberSnapshots(m *facts.Member, h *facts.Host, name string) []result.Finding {
	switch {
	case m.Snapshots.Item == nil || h.Snapshots.Item == nil || !*h.Snapshots.Item:
		return nil
	case !*m.Snapshots.Item:
		return []result.Finding{result.Problem(result.Warning, result.CheckSnapshots, name, "the member does not serve VolumeSnapshots, but the host does, so users cannot take snapshots of the member's volumes",
			"Install the VolumeSnapshot CustomResourceDefinitions and the snapshot-controller in the member.")}
	}
	return []result.Finding{result.Passed(result.CheckSnapshots, name, "the member serves VolumeSnapshots")}
}

// leaves reports this host's objects in an unregistered member.
func leaves(m *facts.Member, name string) []result.Finding {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(m.Leaves)) {
		parts = append(parts, text.Count(m.Leaves[kind], kind))
	}
	if len(parts) == 0 {
		return []result.Finding{result.Passed(result.CheckLeftovers, name, "the cluster has no objects of this host")}
	}
	return []result.Finding{result.Problem(result.Warning, result.CheckLeftovers, name, fmt.Sprintf("the cluster has %s of this host, but is not registered", strings.Join(parts, ", ")),
		"To use the objects, register the cluster again. To remove them, delete the Pods and claims in the cluster. The volumes keep their data, because they have policy Retain.")}
}
