package doctor

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// CheckConnection is the name of this check.
const CheckConnection Check = "Connection"

var connectionCheck = checkOf[*Member]{name: CheckConnection, judge: infallible(func(m *Member) []Finding {
	if m.Away != "" {
		return judgeUnreadMember(m)
	}
	return []Finding{judgeConnection(m)}
})}

// judgeUnreadMember reports a member that this machine could not read. If the manager can reach the member,
// this is not a problem of the installation.
func judgeUnreadMember(m *Member) []Finding {
	switch {
	case m.Secret:
		return []Finding{problem(Warning, "the checks in the member were skipped: "+m.Away, "Specify your own kubeconfig for the member with --member-kubeconfig, or ask for permission to read the Secret.")}
	case m.Own:
		return []Finding{problem(Error, "the member that your kubeconfig points to does not respond: "+m.Away, "Check the kubeconfig (--member-kubeconfig, --member-context) and the network.")}
	case m.isConnected():
		return []Finding{problem(Warning, "the checks in the member were skipped, because this machine cannot reach the member, although the manager can: "+m.Away, "Run this command on a machine that can reach the member, or specify your own kubeconfig for it with --member-kubeconfig.")}
	}
	return []Finding{problem(Error, "neither the manager nor this machine can connect to the member: "+m.Away, "Check the member's API server, the network between the clusters, and the credentials in the registration's Secret.")}
}

// isConnected reports whether the manager is connected to a member.
func (m *Member) isConnected() bool {
	for i := range m.host.Registrations.Items {
		if r := &m.host.Registrations.Items[i]; r.Name == m.Registration {
			return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionConnected)
		}
	}
	return false
}

func judgeConnection(m *Member) Finding {
	if m.Own {
		return passed("cluster %s responds to requests with your own kubeconfig", m.ID)
	}
	return passed("cluster %s responds to requests from this machine with the manager's kubeconfig", m.ID)
}
